package runtime

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/sdk"
)

// slow fails its first start, for which a reload waits, and the second one succeeds when it is released.
func slow(name string, release <-chan struct{}, before ...string) *sdk.Plugin {
	answer := func(context.Context, *sdk.Call, phases.Input) ([]phases.Contribution, error) { return nil, nil }
	starts := 0
	return &sdk.Plugin{
		Name: name, Version: "1", Hooks: []sdk.Hook{{Name: "h", Phase: phases.PrePromptCompile, Any: answer, Before: before}},
		OnConfigure: func(context.Context, *phases.Configuration) (sdk.Setup, error) {
			if starts++; starts == 1 {
				return sdk.Setup{}, phases.Errorf(phases.CauseUnavailable, "not yet")
			}
			<-release
			return sdk.Setup{}, nil
		},
	}
}

// TestDescribedBeforeInForce: between the plan of a generation and the moment
// that it is in force a plugin describes itself whose hooks do not fit. It goes
// into quarantine, and the innocent one after it still gets its hooks.
func TestDescribedBeforeInForce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		cfg := &config.Config{Version: 1, Plugins: []config.Plugin{{Name: "culprit"}, {Name: "innocent"}}}
		o := Options{WaitFor: WaitRequired, InProcess: map[string]Plugin{"culprit": slow("culprit", release, "culprit.x"), "innocent": slow("innocent", release)}}
		e, err := New(t.Context(), &config.Config{Version: 1}, o)
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := e.Close(context.WithoutCancel(t.Context())); err != nil {
				t.Errorf("Close: %v", err)
			}
		}()
		g, err := e.load(t.Context(), cfg, e.current.Load())
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second) // they are being started again
		close(release)
		synctest.Wait()
		if !e.install(g) {
			t.Fatal("not installed")
		}
		e.refresh(g)
		synctest.Wait()

		rows := e.Plugins()
		if got, want := rows[0].State, phases.PluginQuarantined; got != want || rows[0].Code != string(phases.CauseInvalidReply) {
			t.Errorf("the culprit is %+v, want %s", rows[0], want)
		}
		if got, want := rows[1].State, phases.PluginReady; got != want {
			t.Errorf("the innocent one is %s, want %s", got, want)
		}
		if e.Descriptions()["culprit"] != nil {
			t.Error("the description that does not fit is still there")
		}
		planned := e.current.Load().planned.Load()
		if planned.plan.Subscription("innocent.h") == nil || planned.plan.Subscription("culprit.h") != nil {
			t.Error("the plan has the wrong hooks")
		}
	})
}

// TestLateHostCallIsNotTheSuccessors: what a replaced process asks for, after its call
// was abandoned, is not reported as if its successor had asked.
func TestLateHostCallIsNotTheSuccessors(t *testing.T) {
	t.Parallel()

	var reported *Exchange
	o := Options{InProcess: map[string]Plugin{"p": &sdk.Plugin{Name: "p", Version: "1.0.0"}}, OnExchange: func(x *Exchange) error { reported = x; return nil }}
	e, err := New(t.Context(), &config.Config{Version: 1, Plugins: []config.Plugin{{Name: "p"}}}, o)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := e.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Errorf("Close: %v", err)
		}
	}()
	in := e.current.Load().byName["p"]
	live := in.Live()
	for incarnation, start := range map[uint64]uint64{live.Number + 7: 0, live.Number: live.Start} {
		ctx := e.calls.New(t.Context(), site{subscription: "p.h", incarnation: incarnation}, time.Now().Add(time.Minute))
		(&hostFor{engine: e, in: in}).reportHostCall(ctx, HostCall{Service: "state"}, time.Now(), nil)
		ctx.Cancel()
		if reported == nil || reported.Incarnation != incarnation || reported.Start != start || live.Start == 0 {
			t.Errorf("reported %+v, want incarnation %d of start %d", reported, incarnation, start)
		}
	}
}
