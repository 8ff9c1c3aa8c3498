package gateway

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/grapnelhq/grapnel/internal/agents/bridge"
	"github.com/grapnelhq/grapnel/internal/recent"
	"github.com/grapnelhq/grapnel/internal/rpc"
	"github.com/grapnelhq/grapnel/loop"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

const (
	defaultTurnIdle = 10 * time.Minute
	defaultTurns    = 1024
)

const mostLedgers = 64 << 20 // bounds the ledgers of one token's turns together, in bytes

const (
	// turnPatience is how long an ending turn waits for its calls before it cancels them, and
	// turnCut how long it then waits for them to return.
	turnPatience = 3 * time.Second
	turnCut      = time.Second
)

// hostTurn is the gateway's view of a *loop.Turn.
type hostTurn interface {
	Compile(ctx context.Context, in runtime.CompileInput) (*runtime.Compiled, error)
	Dispatch(ctx context.Context, in phases.Input) (*phases.Outcome, error)
	CallTool(ctx context.Context, call phases.ToolCall) (*phases.ToolResult, error)
	CheckTool(ctx context.Context, c loop.Call) (loop.Call, *loop.Refused, error)
	RunTool(ctx context.Context, c loop.Call, run func(ctx context.Context, c loop.Call) (string, bool, error)) (loop.Result, error)
	FinishTool(ctx context.Context, c loop.Call, text string, isError bool, took time.Duration) (loop.Result, error)
	Used(ctx context.Context, u phases.Usage, changes ...manifest.RequestChange) error
	End(ctx context.Context, in *phases.PostTurnInput) (*phases.Outcome, error)
	LedgerBytes() int
}

var _ hostTurn = (*loop.Turn)(nil)

// keptTurn is a turn that a client has begun. The table's lock guards what is below round.
type keptTurn struct {
	hostTurn

	handle   string
	token    string // the name of the token that began it: only its callers may use it
	context  phases.Context
	round    chan struct{}              // held by a compilation
	appended atomic.Int64               // how many entries it has appended to a conversation
	sent     atomic.Pointer[sentWindow] // nil if there is nothing to learn from the next report

	calls   map[*context.CancelCauseFunc]struct{} // those in flight, by what ends their contexts
	ledger  int                                   // its ledger's size after the last call
	used    time.Time                             // when the last call ended, or the turn began
	conns   map[conn]struct{}                     // the connections that began or used it
	drained chan struct{}                         // closed when the last call has returned; nil until the turn is detached
}

// turnTable holds kept turns. The lock is never held while the engine works.
type turnTable struct {
	idle     time.Duration
	patience time.Duration // with calls of an ending turn
	most     int
	now      func() time.Time
	log      *slog.Logger

	mu   sync.Mutex
	open map[string]*keptTurn
	held map[*keptTurn]struct{} // the open ones, and those that begin or end
	// ended are the last ended turns by handle, so that a late call gets the reason. A token
	// that ends many loses its own first.
	ended   recent.Map[endedTurn]
	idled   int
	stopped bool
}

func newTurnTable(o *Options) *turnTable {
	return &turnTable{
		idle: cmp.Or(o.TurnIdle, defaultTurnIdle), patience: turnPatience, most: cmp.Or(o.Turns, defaultTurns), now: o.Now, log: o.Logger,
		open: map[string]*keptTurn{}, held: map[*keptTurn]struct{}{}, ended: recent.New[endedTurn](mostEnded),
	}
}

// mostOfToken is half of all turns, so that a client that forgets to end its turns leaves some for others.
func (t *turnTable) mostOfToken(c *rpc.Caller) int {
	if c.Open {
		return t.most
	}
	return max(1, t.most/2)
}

// of returns how many turns a token has, and the size of their ledgers. The lock is held.
func (t *turnTable) of(token string) (turns, ledgers int) {
	for k := range t.held {
		if k.token == token {
			turns++
			ledgers += k.ledger
		}
	}
	return turns, ledgers
}

// reserve makes a place for a turn that the caller is about to begin; release gives it back.
func (t *turnTable) reserve(c *rpc.Caller) (*keptTurn, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	own, _ := t.of(c.Name)
	switch {
	case t.stopped:
		return nil, rpc.Errorf(rpc.CodeUnavailable, "the gateway is stopping")
	case len(t.held) >= t.most:
		return nil, tooManyTurns("this gateway keeps at most %d turns (serve.turns); end those that are over (turn/end), or try again", t.most)
	case own >= t.mostOfToken(c):
		return nil, tooManyTurns("the token %q has %d turns, and may have no more (half of serve.turns); end those that are over (turn/end)", c.Name, own)
	}
	k := &keptTurn{
		handle: rand.Text(), token: c.Name, round: make(chan struct{}, 1), calls: map[*context.CancelCauseFunc]struct{}{}, conns: map[conn]struct{}{},
	}
	t.held[k] = struct{}{}
	return k, nil
}

func (t *turnTable) release(k *keptTurn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.held, k)
}

// keep opens a turn that has begun. It reports false if the gateway stops.
func (t *turnTable) keep(c *rpc.Caller, k *keptTurn, turn hostTurn, where phases.Context) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stopped {
		return false
	}
	k.hostTurn, k.context, k.used = turn, where, time.Now()
	k.usedBy(c)
	t.open[k.handle] = k
	return true
}

// usedBy notes the caller's connection, and forgets closed ones. The lock is held.
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

// find returns an open turn. An unknown handle and one of another token give the same error. The lock is held.
func (t *turnTable) find(c *rpc.Caller, handle string) (*keptTurn, error) {
	if k := t.open[handle]; k != nil && mayUse(c, k.token, k.context.WorkspaceID) {
		return k, nil
	}
	if e, ok := t.ended.Get(handle); ok && mayUse(c, e.token, e.WorkspaceID) {
		return nil, turnEndedError(e)
	}
	return nil, turnUnknown(handle)
}

// mayUse reports whether a turn is the caller's token's, and the token still has the workspace.
func mayUse(c *rpc.Caller, token, workspace string) bool {
	return c.Name == token && c.MayWorkspace(workspace)
}

// enter begins a call in a turn. Its context ends with the caller's, or when the ending turn
// has waited long enough. The caller must call leave.
func (t *turnTable) enter(ctx context.Context, c *rpc.Caller, handle string) (inner context.Context, k *keptTurn, leave func(), err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if k, err = t.find(c, handle); err != nil {
		return nil, nil, nil, err
	}
	if _, ledgers := t.of(k.token); ledgers >= mostLedgers {
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
		k.ledger = k.LedgerBytes()
		k.used = time.Now()
		if len(k.calls) == 0 && k.drained != nil {
			close(k.drained)
		}
	}, nil
}

// detach removes a turn from the table. The caller must finish it. The lock is held.
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

func (t *turnTable) take(c *rpc.Caller, handle string) (*keptTurn, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	k, err := t.find(c, handle)
	if err == nil {
		t.detach(k, endAsked)
	}
	return k, err
}

var errTurnEnds = &rpc.Error{Code: rpc.CodeTurnUnknown, Message: "the turn ended before this call did"}

// finish ends a detached turn. Calls that take too long, or whose caller waits no longer, are
// cancelled. The plugins are notified in any case.
func (t *turnTable) finish(ctx context.Context, k *keptTurn, end *phases.PostTurnInput) (*phases.Outcome, error) {
	defer t.release(k)
	if !k.wait(ctx, t.patience) {
		t.cancel(k)
		k.wait(context.WithoutCancel(ctx), turnCut) // a call that ignores its context must not block the end
	}
	return k.End(ctx, end)
}

// wait reports false if calls of the turn take too long.
func (k *keptTurn) wait(ctx context.Context, patience time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	select {
	case <-k.drained:
		return true
	case <-ctx.Done():
		return false
	}
}

func (t *turnTable) cancel(k *keptTurn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for cancel := range k.calls {
		(*cancel)(errTurnEnds)
	}
}

// notifyTurn reports a turn that its client did not end.
const notifyTurn = "turn/ended"

type endReason string

const (
	endAsked    endReason = "ended"    // by its client
	endIdle     endReason = "idle"     // without calls for too long
	endStopping endReason = "stopping" // the gateway stops
)

// TurnEnded are the params of turn/ended.
type TurnEnded struct {
	Handle      string    `json:"handle"`
	WorkspaceID string    `json:"workspace_id"`
	ThreadID    string    `json:"thread_id"`
	TurnID      string    `json:"turn_id"`
	Reason      endReason `json:"reason"       jsonschema:"idle: no call for as long as serve.turn_idle allows; stopping: the gateway stops"`
	EndedAt     time.Time `json:"ended_at"`

	idle time.Duration
}

// words is the reason for people.
func (e *TurnEnded) words() string {
	switch e.Reason {
	case endIdle:
		return fmt.Sprintf("idle for %v", e.idle)
	case endStopping:
		return "the gateway is stopping"
	default:
		return "by turn/end"
	}
}

type endedTurn struct {
	TurnEnded

	token string
}

const mostEnded = 4096 // how many ended turns are remembered

// turnUnknown is for an unknown handle, which may be another token's.
func turnUnknown(handle string) error {
	return &rpc.Error{Code: rpc.CodeTurnUnknown, Data: map[string]any{"reason": "unknown"}, Message: fmt.Sprintf(
		"there is no turn %.64q here: it was begun at another gateway, or before a restart, or never. Begin the turn again (turn/begin); each gateway keeps its own turns, so send all calls of a turn to the one that began it", handle)}
}

func turnEndedError(e endedTurn) error {
	return &rpc.Error{
		Code: rpc.CodeTurnUnknown, Data: map[string]any{"reason": e.Reason, "ended_at": e.EndedAt},
		Message: fmt.Sprintf("the turn ended at %s: %s; begin another one (turn/begin)", e.EndedAt.Format(time.RFC3339), e.words()),
	}
}

func tooManyTurns(format string, args ...any) error {
	err := rpc.Errorf(rpc.CodeUnavailable, format, args...)
	err.Data = map[string]any{"reason": "turns"}
	return err
}

const endsAtOnce = 16

// endingTurn is a detached turn, with what clients are notified of.
type endingTurn struct {
	turn *keptTurn
	end  endedTurn
}

func (g *Gateway) sweep(ctx context.Context) {
	timer := time.NewTimer(g.turns.idle)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		idle, next := g.turns.takeIdle(time.Now())
		g.notifyEnded(idle)
		g.endAll(ctx, idle)
		g.endHooks(ctx, (*bridge.Bridge).Sweep)
		timer.Reset(next)
	}
}

// endHooks ends turns of agents that call hooks.
func (g *Gateway) endHooks(ctx context.Context, which func(*bridge.Bridge, context.Context) error) {
	if g.bridge == nil {
		return
	}
	if err := which(g.bridge, ctx); err != nil {
		g.opts.Logger.Warn("turns of agents that call hooks could not be ended", "error", err)
	}
}

// takeIdle detaches idle turns, and returns how long it takes until the next can be idle.
func (t *turnTable) takeIdle(now time.Time) (idle []endingTurn, next time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	next = t.idle // a turn that begins now
	for _, k := range t.open {
		if len(k.calls) > 0 {
			continue // its time begins when they return
		}
		left := t.idle - now.Sub(k.used)
		if left > 0 {
			next = min(next, left)
			continue
		}
		idle = append(idle, endingTurn{k, t.detach(k, endIdle)})
	}
	return idle, next
}

// stop refuses further turns, and detaches all.
func (t *turnTable) stop() []endingTurn {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stopped = true
	all := make([]endingTurn, 0, len(t.open))
	for _, k := range t.open {
		all = append(all, endingTurn{k, t.detach(k, endStopping)})
	}
	return all
}

// notifyEnded logs and counts turns that their clients did not end, and notifies the
// connections of their tokens that have used them or watch their workspaces.
func (g *Gateway) notifyEnded(list []endingTurn) {
	slices.SortFunc(list, func(a, b endingTurn) int { return cmp.Compare(a.end.Handle, b.end.Handle) })
	for _, l := range list {
		e := &l.end
		g.metrics.turns.WithLabelValues(string(e.Reason)).Inc()
		g.opts.Logger.Info("a turn that its client did not end was ended", slog.String("workspace", e.WorkspaceID),
			slog.String("thread", e.ThreadID), slog.String("turn", e.TurnID), slog.String("reason", e.words()))
		for c := range g.listeners(l.turn) {
			c.Notify("", notifyTurn, e.TurnEnded)
		}
	}
}

func (g *Gateway) listeners(k *keptTurn) map[conn]struct{} {
	all := g.hub.watching(k.context.WorkspaceID, k.token)
	g.turns.mu.Lock()
	defer g.turns.mu.Unlock()
	for c := range k.conns {
		all[c] = struct{}{}
	}
	return all
}

func (h *hub) watching(workspace, token string) map[conn]struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	found := map[conn]struct{}{}
	for c := range h.of[workspace] {
		if c.Caller().Name == token {
			found[c] = struct{}{}
		}
	}
	return found
}

// endAll ends turns as interrupted: the hooks of turn.post_turn run.
func (g *Gateway) endAll(ctx context.Context, list []endingTurn) {
	var running sync.WaitGroup
	slots := make(chan struct{}, endsAtOnce)
	for _, l := range list {
		slots <- struct{}{}
		running.Go(func() {
			defer func() { <-slots }()
			if _, err := g.finishTurn(ctx, l.turn, &phases.PostTurnInput{Status: phases.TurnInterrupted}); err != nil {
				g.opts.Logger.Warn("the end of a turn failed", slog.String("turn", l.end.TurnID), slog.Any("error", err))
			}
		})
	}
	running.Wait()
}
