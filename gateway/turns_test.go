package gateway

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/internal/rpc"
	"github.com/grapnelhq/grapnel/internal/tests/storetest"
	"github.com/grapnelhq/grapnel/internal/tree"
	"github.com/grapnelhq/grapnel/phases"
)

// fakeTurn notes how it is ended.
type fakeTurn struct {
	hostTurn

	mu   sync.Mutex
	ends []phases.PostTurnInput

	ledger int
}

func (f *fakeTurn) LedgerBytes() int { return f.ledger }

func (f *fakeTurn) End(_ context.Context, in *phases.PostTurnInput) (*phases.Outcome, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ends = append(f.ends, *in)
	return &phases.Outcome{Phase: phases.PostTurn}, nil
}

// ended are the states with which it was ended.
func (f *fakeTurn) ended() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []string
	for _, in := range f.ends {
		all = append(all, string(in.Status)+" "+in.UserText.Text)
	}
	return strings.Join(all, ", ")
}

// ears is a connection that keeps what it is told of turns.
type ears struct {
	ctx  context.Context
	name string

	mu    sync.Mutex
	heard []TurnEnded
}

func (e *ears) Context() context.Context { return e.ctx }
func (e *ears) Caller() *rpc.Caller      { return &rpc.Caller{Name: e.name, Open: e.name == ""} }

func (e *ears) Notify(_, _ string, params any) {
	told, ok := params.(TurnEnded)
	if !ok {
		panic("not about a turn")
	}
	told.EndedAt, told.idle = time.Time{}, 0
	e.mu.Lock()
	defer e.mu.Unlock()
	e.heard = append(e.heard, told)
}

func (e *ears) all() []TurnEnded {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]TurnEnded(nil), e.heard...)
}

// keeper is a gateway for its turns alone; nothing of it runs.
func keeper(t *testing.T, o Options) *Gateway {
	t.Helper()
	o.Tree = storetest.Tree(t, nil)
	return must(New(o))(t)
}

// keepOne keeps a fake turn for a caller.
func (g *Gateway) keepOne(t *testing.T, c *rpc.Caller, id string) (*keptTurn, *fakeTurn) {
	t.Helper()
	k := must(g.turns.reserve(c))(t)
	f := &fakeTurn{}
	if !g.turns.keep(c, k, f, phases.Context{WorkspaceID: "w", ThreadID: "t", TurnID: id}) {
		t.Fatal("the gateway stops")
	}
	return k, f
}

// reason is why a handle has no turn, and the message of that.
func (g *Gateway) reason(c *rpc.Caller, handle string) (reason, message string) {
	_, _, leave, err := g.turns.enter(context.Background(), c, handle)
	if err == nil {
		leave()
		return "", ""
	}
	e, _ := errors.AsType[*rpc.Error](err)
	return fmt.Sprint(e.Code, " ", e.Data["reason"]), e.Message
}

// TestTurnIdle: a turn without a call is ended as interrupted when its time is over,
// whoever used it or watches is told, and late calls learn what became of it. A call on
// its way is no idleness.
func TestTurnIdle(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		g := keeper(t, Options{TurnIdle: 10 * time.Minute})
		ctx, cancel := context.WithCancel(t.Context())
		var sweeping sync.WaitGroup
		sweeping.Go(func() { g.sweep(ctx) })
		defer sweeping.Wait()
		defer cancel()
		open := &rpc.Caller{Open: true}
		used, f := g.keepOne(t, open, "1")
		busy, other := g.keepOne(t, open, "2")
		user, watcher, stranger := &ears{ctx: ctx}, &ears{ctx: ctx}, &ears{ctx: ctx, name: "eve"}
		used.conns[user] = struct{}{}
		g.hub.of = map[string]map[conn]tree.Seq{"w": {watcher: 0, stranger: 0}}

		_, _, leave, err := g.turns.enter(ctx, open, busy.handle)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(9 * time.Minute)
		if reason, _ := g.reason(open, used.handle); reason != "" { // which is a call
			t.Fatalf("after 9 minutes: %s", reason)
		}
		time.Sleep(10*time.Minute - time.Nanosecond)
		synctest.Wait()
		if got := f.ended(); got != "" {
			t.Fatalf("too early: %s", got)
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if got := f.ended() + other.ended(); got != "interrupted " {
			t.Errorf("ended: %q", got)
		}
		reason, message := g.reason(open, used.handle)
		if reason != "turn_unknown idle" || !strings.Contains(message, "idle for 10m0s") || !strings.Contains(message, time.Now().UTC().Format(time.RFC3339)) {
			t.Errorf("a late call: %s, %s", reason, message)
		}
		want := []TurnEnded{{Handle: used.handle, WorkspaceID: "w", ThreadID: "t", TurnID: "1", Reason: endIdle}}
		if diff := cmp.Diff([][]TurnEnded{user.all(), watcher.all(), stranger.all()}, [][]TurnEnded{want, want, nil}, cmp.AllowUnexported(TurnEnded{})); diff != "" {
			t.Errorf("told (-got +want):\n%s", diff)
		}
		leave()
		if got := g.turns.status(); got != (TurnsKept{Open: 1, Limit: defaultTurns, IdleSeconds: 600, EndedIdle: 1}) {
			t.Errorf("%+v", got)
		}
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if got := other.ended(); got != "interrupted " {
			t.Errorf("behind its call: %q", got)
		}
		if len(g.turns.held) != 0 {
			t.Errorf("places are held: %v", g.turns.held)
		}
	})
}

// TestTurnEndWaits: the end of a turn waits for its calls; it cancels those that take
// long, and does not wait for one that ignores that.
func TestTurnEndWaits(t *testing.T) {
	t.Parallel()

	open := &rpc.Caller{Open: true}
	for _, tt := range []struct {
		name string
		// takes is how long the call takes; deaf is one that ignores its context.
		takes time.Duration
		deaf  bool
		gone  bool // whoever ends the turn has gone
		cut   bool
		want  time.Duration
	}{
		{"a short one", time.Second, false, false, false, time.Second},
		{"a long one", time.Hour, false, false, true, turnPatience},
		{"one that ignores its context", time.Hour, true, false, true, turnPatience + turnCut},
		{"nobody waits", time.Hour, false, true, true, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			synctest.Test(t, func(t *testing.T) {
				g := keeper(t, Options{})
				kept, f := g.keepOne(t, open, "1")
				ctx, _, leave, err := g.turns.enter(t.Context(), open, kept.handle)
				if err != nil {
					t.Fatal(err)
				}
				var calling sync.WaitGroup
				calling.Go(func() {
					defer leave()
					done := ctx.Done()
					if tt.deaf {
						done = nil
					}
					select {
					case <-time.After(tt.takes):
					case <-done:
					}
				})
				synctest.Wait()
				must(g.turns.take(open, kept.handle))(t)
				if reason, _ := g.reason(open, kept.handle); reason != "turn_unknown ended" {
					t.Errorf("a further call: %s", reason)
				}
				by, cancel := context.WithCancel(t.Context())
				defer cancel()
				if tt.gone {
					cancel()
				}
				began := time.Now()
				must(g.turns.finish(by, kept, &phases.PostTurnInput{Status: phases.TurnSucceeded}))(t)
				if took := time.Since(began); took != tt.want || f.ended() != "succeeded " {
					t.Errorf("it took %v, want %v; ended %q", took, tt.want, f.ended())
				}
				if cut := errors.Is(context.Cause(ctx), errTurnEnds); cut != tt.cut {
					t.Errorf("the call was cut short: %v", cut)
				}
				calling.Wait()
			})
		})
	}
}

// TestTurnLimits: a gateway keeps so many turns and no more, and one token leaves half
// of them to others. A place is free again when a turn has ended.
func TestTurnLimits(t *testing.T) {
	t.Parallel()

	g := keeper(t, Options{Turns: 4})
	ada, bob, eve := token("ada", []string{"*"}).Caller(nil), token("bob", []string{"*"}).Caller(nil), token("eve", []string{"*"}).Caller(nil)
	first, _ := g.keepOne(t, ada, "1")
	g.keepOne(t, ada, "2")
	full := func(c *rpc.Caller, word string) {
		t.Helper()
		_, err := g.turns.reserve(c)
		e, ok := errors.AsType[*rpc.Error](err)
		if !ok || e.Code != rpc.CodeUnavailable || e.Data["reason"] != "turns" || !strings.Contains(e.Message, word) || !strings.Contains(e.Message, "turn/end") {
			t.Errorf("%s: %v", c.Name, e)
		}
	}
	full(ada, `the token "ada" has 2 turns`)
	g.keepOne(t, bob, "3")
	g.keepOne(t, eve, "4")
	full(bob, "keeps at most 4 turns")
	must(g.turns.take(ada, first.handle))(t)
	full(bob, "keeps at most 4 turns") // it has not ended yet
	must(g.turns.finish(t.Context(), first, &phases.PostTurnInput{}))(t)
	g.keepOne(t, bob, "5")
	open := keeper(t, Options{Turns: 2})
	for range 2 {
		open.keepOne(t, &rpc.Caller{Open: true}, "x")
	}
}

// TestEndedTurnsFloodOfOneToken: a token that ends many turns pushes out its own, and none
// of another one, of those that are remembered.
func TestEndedTurnsFloodOfOneToken(t *testing.T) {
	t.Parallel()

	g := keeper(t, Options{})
	end := func(c *rpc.Caller) string {
		k, _ := g.keepOne(t, c, "1")
		must(g.turns.take(c, k.handle))(t)
		g.turns.release(k)
		return k.handle
	}
	quiet, flood := token("quiet", []string{"*"}).Caller(nil), token("flood", []string{"*"}).Caller(nil)
	others, oldest := end(quiet), end(flood)
	for range mostEnded - 1 {
		end(flood)
	}
	if reason, _ := g.reason(quiet, others); reason != "turn_unknown ended" {
		t.Errorf("the other token's turn: %s", reason)
	}
	if reason, _ := g.reason(flood, oldest); reason != "turn_unknown unknown" {
		t.Errorf("its own oldest turn: %s", reason)
	}
}

// TestLedgersOfOneToken: what the ledgers of a token's turns take together is bounded,
// and is free again when turns end.
func TestLedgersOfOneToken(t *testing.T) {
	t.Parallel()

	g := keeper(t, Options{})
	flood, other := token("flood", []string{"*"}).Caller(nil), token("other", []string{"*"}).Caller(nil)
	call := func(c *rpc.Caller, k *keptTurn) error {
		_, _, leave, err := g.turns.enter(t.Context(), c, k.handle)
		if err == nil {
			leave()
		}
		return err
	}
	first, turn := g.keepOne(t, flood, "1")
	second, _ := g.keepOne(t, flood, "2")
	foreign, _ := g.keepOne(t, other, "3")
	for _, turn.ledger = range []int{1 << 20, mostLedgers} {
		if err := call(flood, first); err != nil {
			t.Fatal(err)
		}
	}
	for _, k := range []*keptTurn{first, second} {
		if e, ok := errors.AsType[*rpc.Error](call(flood, k)); !ok || e.Code != rpc.CodeUnavailable || e.Data["reason"] != "turns" {
			t.Errorf("%s: %v", k.context.TurnID, e)
		}
	}
	if err := call(other, foreign); err != nil {
		t.Errorf("another token: %v", err)
	}
	must(g.turns.take(flood, first.handle))(t)
	must(g.turns.finish(t.Context(), first, &phases.PostTurnInput{}))(t)
	if err := call(flood, second); err != nil {
		t.Errorf("after the end: %v", err)
	}
	if _, left := g.turns.of("flood"); left >= mostLedgers {
		t.Errorf("left over: %d", left)
	}
}

// TestTurnIsItsTokens: the handle of a turn is of no use to another token, whatever its
// workspaces, and of none to its own without the workspace; neither learns that there
// is such a turn, or was.
func TestTurnIsItsTokens(t *testing.T) {
	t.Parallel()

	o := Options{Tree: treeOf(t, "w", "v")}
	o.Engine = engine(t, o.Tree, nil)
	rights := rpc.Rights()
	s := serve(t, o.with(token("ada", []string{"w"}, rights...), token("bob", []string{"*"}, rights...)))
	ada, bob := s.post(t, "ada"), s.post(t, "bob")
	handle := do[begunTurn](t, ada, "turn/begin", object{"turn": turnOf(nil)}).Handle
	refused := func(c *caller) {
		t.Helper()
		for _, h := range []string{handle, "never"} {
			for method, more := range map[string]object{
				"turn/compile": {}, "turn/dispatch": {"phase": "turn.pre_policy"}, "tool/call": {"tool": "measure"}, "turn/report": {}, "turn/end": {"end": object{}},
			} {
				more["handle"] = h
				if _, bad := c.call(t, method, more); bad.code() != rpc.CodeTurnUnknown || bad.Message != turnUnknown(h).Error() || bad.Data["reason"] != "unknown" {
					t.Errorf("%s: %+v", method, bad)
				}
			}
		}
	}
	refused(bob)
	if err := s.g.SetTokens([]rpc.Token{token("ada", []string{"v"}, rights...), token("bob", []string{"*"}, rights...)}); err != nil {
		t.Fatal(err)
	}
	refused(ada)
	if err := s.g.SetTokens([]rpc.Token{token("ada", []string{"w"}, rights...), token("bob", []string{"*"}, rights...)}); err != nil {
		t.Fatal(err)
	}
	do[any](t, ada, "turn/end", object{"handle": handle, "end": object{"status": "succeeded"}})
	refused(bob) // nor what became of it
	if _, bad := ada.call(t, "turn/end", object{"handle": handle, "end": object{}}); bad.code() != rpc.CodeTurnUnknown || !strings.Contains(bad.Message, "by turn/end") || bad.Data["reason"] != "ended" {
		t.Errorf("ended twice: %+v", bad)
	}
}
