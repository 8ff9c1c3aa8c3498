package gateway

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/internal/explain"
	"github.com/grapnelhq/grapnel/internal/rpc"
	"github.com/grapnelhq/grapnel/internal/tree"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
	"github.com/grapnelhq/grapnel/sdk"
	"github.com/grapnelhq/grapnel/store"
)

// endings are the ends of turns that a plugin was told of.
type endings struct {
	mu   sync.Mutex
	list []string
}

func (e *endings) add(line string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.list = append(e.list, line)
}

func (e *endings) String() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return strings.Join(e.list, ", ")
}

// listening is an engine whose plugin notes the ends of turns, and whose guard of
// tools waits until it is let go.
func listening(t *testing.T, ends *endings, entered chan<- struct{}) *runtime.Engine {
	t.Helper()
	all := []string{"*"}
	p := &sdk.Plugin{Name: "p", Version: "1.0.0", Hooks: []sdk.Hook{
		{Name: "end", PostTurn: func(_ context.Context, c *sdk.Call, in *phases.PostTurnInput) ([]phases.Contribution, error) {
			ends.add(c.Context.TurnID + " " + string(in.Status))
			return nil, nil
		}},
		{
			Name: "guard", Kinds: []phases.Kind{phases.KindDecision}, Timeout: time.Minute,
			ToolPreCall: func(ctx context.Context, _ *sdk.Call, _ *phases.ToolPreCallInput) ([]phases.Contribution, error) {
				entered <- struct{}{}
				<-ctx.Done()
				return nil, ctx.Err()
			},
		},
	}}
	cfg := &config.Config{
		Version: 1, Plugins: []config.Plugin{{Name: "p", Grants: phases.Grants{Contribute: all, See: all}}},
		Budgets: config.Budgets{Phases: map[phases.Phase]config.PhaseBudget{phases.ToolPreCall: {Time: phases.Duration(time.Minute)}}},
	}
	eng := must(runtime.New(t.Context(), cfg, runtime.Options{InProcess: map[string]runtime.Plugin{"p": p}}))(t)
	t.Cleanup(func() { _ = eng.Close(context.Background()) })
	return eng
}

// TestTurnsStop: when a gateway stops its turns end, with the calls that are on their
// way, and those who began them are told while there is a connection.
func TestTurnsStop(t *testing.T) {
	t.Parallel()

	var ends endings
	entered := make(chan struct{}, 1)
	eng := listening(t, &ends, entered)
	g := must(New(Options{Tree: treeOf(t, "w"), Engine: eng}))(t)
	g.turns.patience = time.Millisecond
	tcp := must((&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0"))(t)
	ctx, stop := context.WithCancel(t.Context())
	finished := make(chan error, 1)
	go func() { finished <- g.Serve(ctx, tcp) }()
	s := &served{g, tcp.Addr().String(), ""}
	c, busy := s.dial(t, ""), s.dial(t, "")
	first := do[begunTurn](t, c, "turn/begin", object{"turn": turnOf(object{"turn_id": "idle"})})
	second := do[begunTurn](t, busy, "turn/begin", object{"turn": turnOf(object{"turn_id": "busy"})})
	answered := make(chan *wireErr, 1)
	go func() {
		_, bad := busy.call(t, "turn/dispatch", object{"handle": second.Handle, "phase": "tool.pre_call", "input": object{"tool": "x"}})
		answered <- bad
	}()
	<-entered
	stop()
	if got := decoded[TurnEnded](t, c.note(t).Params); got.Handle != first.Handle || got.Reason != endStopping {
		t.Errorf("told %+v", got)
	}
	if bad := <-answered; bad.code() != rpc.CodeTurnUnknown {
		t.Errorf("the call on its way: %+v", bad)
	}
	if err := <-finished; err != nil {
		t.Error(err)
	}
	if err := eng.WaitBackground(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := ends.String(); got != "idle interrupted, busy interrupted" {
		t.Errorf("the plugin was told %q", got)
	}
	if _, err := g.turns.reserve(&rpc.Caller{Open: true}); err == nil {
		t.Error("a turn begins behind the end")
	}
}

// TestUnknownWorkspace: what is not in the tree, or not any more, is an error, in the
// words of what is not the caller's, and leaves no manifest. A thread that is not in
// the tree counts as one at the root.
func TestUnknownWorkspace(t *testing.T) {
	t.Parallel()

	model, log := treeOf(t, "w", "gone"), logStore(t)
	c := serve(t, Options{Tree: model, Engine: engine(t, model, log), Log: log}).post(t, "")
	kept := do[begunTurn](t, c, "turn/begin", object{"turn": turnOf(object{"workspace_id": "gone"})})
	must(model.DeleteWorkspace(t.Context(), tree.DeleteWorkspace{WorkspaceID: "gone"}))(t)
	for _, id := range []string{"none", "gone"} {
		where := object{"workspace_id": id, "session_id": "s"}
		for method, params := range map[string]object{
			"turn/compile": {"turn": turnOf(object{"workspace_id": id})}, "turn/begin": {"turn": turnOf(object{"workspace_id": id})},
			"session/start": {"context": where}, "session/resume": {"context": where}, "session/end": {"context": where},
			"phase/dispatch": {"phase": "turn.pre_policy", "context": where},
		} {
			if _, bad := c.call(t, method, params); bad.code() != rpc.CodeNotFound || bad.Message != fmt.Sprintf("there is no workspace %q", id) {
				t.Errorf("%s of %s: %+v", method, id, bad)
			}
		}
	}
	if _, bad := c.call(t, "turn/compile", object{"handle": kept.Handle}); bad.code() != rpc.CodeNotFound {
		t.Errorf("a turn of a workspace that was deleted: %+v", bad)
	}
	do[any](t, c, "turn/end", object{"handle": kept.Handle, "end": object{"status": "interrupted"}})
	if list := must(log.List(t.Context(), store.Filter{}))(t); len(list) != 0 {
		t.Errorf("manifests were kept: %+v", list)
	}
	do[any](t, c, "turn/compile", object{"turn": turnOf(object{"thread_id": "in no tree"})})
	do[any](t, c, "phase/dispatch", object{"phase": "turn.pre_policy"})                                 // of no workspace
	local := do[begunTurn](t, c, "turn/begin", object{"turn": turnOf(object{"workspace_id": "local"})}) // where agents' records are
	do[any](t, c, "turn/end", object{"handle": local.Handle, "end": object{}})
	if list := must(log.List(t.Context(), store.Filter{}))(t); len(list) != 1 || list[0].WorkspaceID != "w" {
		t.Errorf("kept: %+v", list)
	}
}

// TestTurnOverReload: a turn goes on with the configuration that it began with.
func TestTurnOverReload(t *testing.T) {
	t.Parallel()

	model := treeOf(t, "w")
	eng := engine(t, model, nil)
	c := serve(t, Options{Tree: model, Engine: eng}).post(t, "")
	begun := do[begunTurn](t, c, "turn/begin", object{"turn": turnOf(nil)})
	if err := eng.Reload(t.Context(), &config.Config{Version: 1}); err != nil {
		t.Fatal(err)
	}
	type rows struct{ Runs []phases.Run }
	if got := do[rows](t, c, "turn/dispatch", object{"handle": begun.Handle, "phase": "turn.pre_policy"}); len(got.Runs) != 1 || got.Runs[0].State != phases.StateSucceeded {
		t.Errorf("the turn from before: %+v", got)
	}
	if got := do[rows](t, c, "phase/dispatch", object{"phase": "turn.pre_policy"}); len(got.Runs) != 0 {
		t.Errorf("behind the reload: %+v", got)
	}
	do[any](t, c, "turn/end", object{"handle": begun.Handle, "end": object{"status": "succeeded"}})
}

// TestTurnReport: what a client reports of a round's request is in the records; what makes no sense is refused.
func TestTurnReport(t *testing.T) {
	t.Parallel()

	model, log := treeOf(t, "w"), logStore(t)
	c := serve(t, Options{Tree: model, Engine: engine(t, model, log), Log: log}).post(t, "")
	handle := do[begunTurn](t, c, "turn/begin", object{"turn": turnOf(nil)}).Handle
	refused := func(name string, more object, code, word string) {
		t.Helper()
		more["handle"] = handle
		if _, bad := c.call(t, "turn/report", more); bad.code() != code || !strings.Contains(bad.Message, word) {
			t.Errorf("%s: %+v", name, bad)
		}
	}
	refused("before a prompt", object{}, rpc.CodeInvalid, "no prompt")
	do[any](t, c, "turn/compile", object{"handle": handle})
	changes := []manifest.RequestChange{{Kind: manifest.RequestToolGone, ID: "last"}}
	do[any](t, c, "turn/report", object{"handle": handle, "changes": changes, "usage": object{"input_tokens": 7}})
	refused("an unknown kind", object{"changes": []object{{"kind": "colour"}}}, rpc.CodeInvalid, "colour")
	refused("a count below 0", object{"usage": object{"input_tokens": -1}}, rpc.CodeInvalid, "below 0")
	do[any](t, c, "turn/end", object{"handle": handle, "end": object{"status": "succeeded"}})
	refused("an ended turn", object{}, rpc.CodeTurnUnknown, "turn/end")
	list := must(log.List(t.Context(), store.Filter{}))(t)
	if len(list) != 2 {
		t.Fatalf("%d records", len(list))
	}
	events := do[manifest.Manifest](t, c, "manifest/get", object{"workspace_id": "w", "manifest_id": list[1].ManifestID})
	want := []manifest.Request{{ManifestID: list[0].ManifestID, Changes: changes}}
	if diff := cmp.Diff(events.Requests, want); diff != "" {
		t.Errorf("requests (-got +want):\n%s", diff)
	}
	// An answer from the prompt names the record of events that was asked about.
	if e := do[explain.Result](t, c, "manifest/explain", object{"manifest_id": list[1].ManifestID, "id": "identity"}); e.ManifestID != list[0].ManifestID || e.Asked != list[1].ManifestID {
		t.Errorf("the answer is of %s, asked %q", e.ManifestID, e.Asked)
	}
	entries := 0
	for e, err := range log.Entries(t.Context(), store.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		if entries++; e.Outline.Sent && (e.Usage == nil || e.Usage.InputTokens != 7) {
			t.Errorf("usage %+v", e.Usage)
		}
	}
	if entries != 2 {
		t.Errorf("%d entries", entries)
	}
}

// TestTurnHammer uses turns of one gateway from many clients at once, with ends at any
// time: each call succeeds, or says that the turn is over.
func TestTurnHammer(t *testing.T) {
	t.Parallel()

	o := Options{Tree: treeOf(t, "w"), Turns: 8}
	o.Engine = engine(t, o.Tree, nil)
	s := serve(t, o)
	var clients sync.WaitGroup
	for n := range 4 {
		clients.Go(func() {
			c := s.post(t, "")
			for i := range 5 {
				raw, bad := c.call(t, "turn/begin", object{"turn": turnOf(object{"turn_id": fmt.Sprint(n, "-", i)})})
				if bad != nil {
					t.Errorf("begin: %+v", bad)
					return
				}
				handle := decoded[begunTurn](t, raw).Handle
				var calls sync.WaitGroup
				for method, more := range map[string]object{
					"turn/compile": {"input": object{"user_text": "hi"}}, "turn/dispatch": {"phase": "turn.pre_policy"},
					"tool/call": {"tool": "measure"}, "turn/end": {"end": object{"status": "succeeded"}},
				} {
					more["handle"] = handle
					calls.Go(func() {
						if _, bad := s.post(t, "").call(t, method, more); bad != nil && bad.code() != rpc.CodeTurnUnknown {
							t.Errorf("%s: %+v", method, bad)
						}
					})
				}
				calls.Wait()
			}
		})
	}
	clients.Wait()
	if got := s.g.turns.status(); got.Open != 0 {
		t.Errorf("%+v", got)
	}
}
