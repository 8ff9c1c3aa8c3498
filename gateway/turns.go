package gateway

import (
	"cmp"
	"context"
	"crypto/rand"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/grapnelhq/grapnel/gateway/rpc"
	"github.com/grapnelhq/grapnel/internal/recent"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

// Defaults of Options.
const (
	defaultTurnIdle = 10 * time.Minute
	defaultTurns    = 1024
)

// mostLedgers is how many bytes the ledgers of one token's turns may have together.
const mostLedgers = 64 << 20

// Times of the end of a turn.
const (
	// turnPatience is how long the end of a turn waits for its calls before it cancels
	// them; turnCut is how long it then waits for them to return.
	turnPatience = 3 * time.Second
	turnCut      = time.Second
)

// hostTurn is what the gateway needs of a *runtime.Turn.
type hostTurn interface {
	Round(ctx context.Context, in runtime.CompileInput) (*runtime.Compiled, error)
	Dispatch(ctx context.Context, in phases.Input) (*phases.Outcome, error)
	CallTool(ctx context.Context, call phases.ToolCall) (*phases.ToolResult, error)
	End(ctx context.Context, in *phases.PostTurnInput) (*phases.Outcome, error)
	LedgerBytes() int
}

var _ hostTurn = (*runtime.Turn)(nil)

// keptTurn is a turn that a client has begun and not ended yet. What is below mu of
// the table is guarded by it.
type keptTurn struct {
	hostTurn

	handle string
	// token is the name of the token that began it: nobody else gets at it.
	token   string
	context phases.Turn
	// round is held by a compilation, so that rounds wait for each other.
	round chan struct{}

	// calls are those on their way, with what ends their contexts.
	calls map[*context.CancelCauseFunc]struct{}
	// ledger is what its ledger took when the last call ended.
	ledger int
	// gone says that the turn is over, and its ledger counts no more.
	gone bool
	// used is when the last call ended, or the turn began.
	used time.Time
	// conns are the connections that began or used it.
	conns map[conn]struct{}
	// userText is the user's message, of the first prompt that was compiled, as far as
	// the end of the turn needs it.
	userText phases.Preview
	// drained is closed when the last call has returned; nil until the turn is
	// detached.
	drained chan struct{}
}

// turnTable holds the turns that clients have begun, each until it is ended: by its
// client, because it was idle, or because the gateway stops. The lock is never held
// while the engine works.
type turnTable struct {
	idle time.Duration
	most int
	now  func() time.Time
	log  *slog.Logger

	mu   sync.Mutex
	open map[string]*keptTurn
	// held counts the turns that are open or on their way out, by token; all is their
	// sum.
	held map[string]int
	all  int
	// ledgers is what the ledgers of those turns take, by token, as of their last calls.
	ledgers map[string]int
	// ended are the last ones that have ended, by handle, so that a late call learns what
	// became of its turn. A token that ends many forgets its own first.
	ended recent.Map[endedTurn]
	// idled counts the turns that ended because they were idle.
	idled   int
	stopped bool
}

func newTurnTable(o *Options) *turnTable {
	return &turnTable{
		idle: cmp.Or(o.TurnIdle, defaultTurnIdle), most: cmp.Or(o.Turns, defaultTurns), now: o.Now, log: o.Logger,
		open: map[string]*keptTurn{}, held: map[string]int{}, ledgers: map[string]int{}, ended: recent.New[endedTurn](mostEnded),
	}
}

// mostOfToken is how many turns one token may have: half of all, so that one client
// that forgets to end its turns leaves room for others. Without tokens nobody is told
// apart.
func (t *turnTable) mostOfToken(c *rpc.Caller) int {
	if c.Open {
		return t.most
	}
	return max(1, t.most/2)
}

// reserve takes the place of a turn that is about to begin; release gives it back.
func (t *turnTable) reserve(c *rpc.Caller) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.stopped:
		return rpc.Errorf(rpc.CodeUnavailable, "the gateway is stopping")
	case t.all >= t.most:
		return tooManyTurns("this gateway keeps %d turns and no more (serve.turns); end those that are over (turn/end), or try again", t.most)
	case t.held[c.Name] >= t.mostOfToken(c):
		return tooManyTurns("the token %q has %d turns, and may have no more (half of serve.turns); end those that are over (turn/end)", c.Name, t.held[c.Name])
	}
	t.held[c.Name]++
	t.all++
	return nil
}

func (t *turnTable) release(token string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.all--
	if t.held[token]--; t.held[token] == 0 {
		delete(t.held, token)
	}
}

// keep puts a turn that has begun into the table, in the place that was reserved for
// it. It reports false when the gateway stops.
func (t *turnTable) keep(c *rpc.Caller, turn hostTurn, where phases.Turn) (*keptTurn, bool) {
	k := &keptTurn{
		hostTurn: turn, handle: rand.Text(), token: c.Name, context: where, round: make(chan struct{}, 1),
		calls: map[*context.CancelCauseFunc]struct{}{}, conns: map[conn]struct{}{}, used: time.Now(),
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stopped {
		return k, false
	}
	k.usedBy(c)
	t.open[k.handle] = k
	return k, true
}

// usedBy notes the caller's connection, and forgets those that have ended. The lock is
// held.
func (k *keptTurn) usedBy(c *rpc.Caller) {
	for other := range k.conns {
		if other.Context().Err() != nil {
			delete(k.conns, other)
		}
	}
	if c.Conn != nil {
		k.conns[c.Conn] = struct{}{}
	}
}

// find returns the open turn of a handle, or why there is none. The answer is the same
// for a handle that was never given and for one of another token. The lock is held.
func (t *turnTable) find(c *rpc.Caller, handle string) (*keptTurn, error) {
	if k := t.open[handle]; k != nil && mayUse(c, k.token, k.context.WorkspaceID) {
		return k, nil
	}
	if e, ok := t.ended.Get(handle); ok && mayUse(c, e.token, e.WorkspaceID) {
		return nil, turnEndedError(e)
	}
	return nil, turnUnknown(handle)
}

// mayUse reports whether a caller may use a turn: it is its token's, and that still
// has the workspace.
func mayUse(c *rpc.Caller, token, workspace string) bool {
	return c.Name == token && c.MayWorkspace(workspace)
}

// enter begins a call in a turn: its context ends with the caller's, or when the turn
// ends and has waited for the call long enough. The call must leave.
func (t *turnTable) enter(ctx context.Context, c *rpc.Caller, handle string) (inner context.Context, k *keptTurn, leave func(), err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if k, err = t.find(c, handle); err != nil {
		return nil, nil, nil, err
	}
	if t.ledgers[k.token] >= mostLedgers {
		return nil, nil, nil, tooManyTurns("the ledgers of the turns of the token %q have %d MiB, and may have no more; end those that are over (turn/end)", k.token, mostLedgers>>20)
	}
	inner, cancel := context.WithCancelCause(ctx)
	k.calls[&cancel] = struct{}{}
	k.usedBy(c)
	return inner, k, func() {
		cancel(nil)
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(k.calls, &cancel)
		t.weigh(k, k.LedgerBytes())
		k.used = time.Now()
		if len(k.calls) == 0 && k.drained != nil {
			close(k.drained)
		}
	}, nil
}

// weigh notes what the ledger of a turn takes. The lock is held.
func (t *turnTable) weigh(k *keptTurn, bytes int) {
	if k.gone {
		return
	}
	t.ledgers[k.token] += bytes - k.ledger
	k.ledger = bytes
	if t.ledgers[k.token] == 0 {
		delete(t.ledgers, k.token)
	}
}

// detach takes a turn out of the table: no call finds it any more. Whoever detaches a
// turn finishes it. The lock is held.
func (t *turnTable) detach(k *keptTurn, reason endReason) endedTurn {
	delete(t.open, k.handle)
	k.drained = make(chan struct{})
	if len(k.calls) == 0 {
		close(k.drained)
	}
	e := endedTurn{token: k.token, TurnEnded: TurnEnded{
		Handle: k.handle, WorkspaceID: k.context.WorkspaceID, ThreadID: k.context.ThreadID, TurnID: k.context.TurnID,
		Reason: reason, EndedAt: t.now().UTC(), idle: t.idle,
	}}
	if reason == endIdle {
		t.idled++
	}
	t.ended.Put(e.token, e.Handle, e)
	return e
}

// take detaches a turn for the client that ends it.
func (t *turnTable) take(c *rpc.Caller, handle string) (*keptTurn, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	k, err := t.find(c, handle)
	if err == nil {
		t.detach(k, endAsked)
	}
	return k, err
}

// errTurnEnds is why the contexts of a turn's calls end.
var errTurnEnds = &rpc.Error{Code: rpc.CodeTurnUnknown, Message: "the turn ended before this call did"}

// finish ends a turn that was detached. Its calls may return first; those that take
// too long, or whose turn's end nobody waits for any more, are cancelled. Plugins are
// told in any case.
func (t *turnTable) finish(ctx context.Context, k *keptTurn, end *phases.PostTurnInput) (*phases.Outcome, error) {
	defer t.release(k.token)
	defer t.drop(k)
	if !k.wait(ctx, turnPatience) {
		t.cancel(k)
		k.wait(context.WithoutCancel(ctx), turnCut) // a call that ignores its context does not hold the end up
	}
	if end.UserText.Text == "" {
		t.mu.Lock()
		end.UserText = k.userText
		t.mu.Unlock()
	}
	return k.End(ctx, end)
}

// drop forgets what the ledger of a turn took.
func (t *turnTable) drop(k *keptTurn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.weigh(k, 0)
	k.gone = true
}

// wait waits until no call of the turn is on its way, and reports false if that takes
// too long.
func (k *keptTurn) wait(ctx context.Context, patience time.Duration) bool {
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case <-k.drained:
		return true
	case <-late.C:
	case <-ctx.Done():
	}
	return false
}

// cancel ends the contexts of a turn's calls.
func (t *turnTable) cancel(k *keptTurn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for cancel := range k.calls {
		(*cancel)(errTurnEnds)
	}
}

// said keeps the user's message, for an end that does not repeat it.
func (t *turnTable) said(k *keptTurn, userText string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if k.userText.IsZero() {
		k.userText = phases.NewPreview(userText, phases.MaxTurnText)
		k.userText.Text = strings.Clone(k.userText.Text) // not a piece of the whole message, which would stay in memory
	}
}
