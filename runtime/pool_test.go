package runtime

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/internal/engine/pool"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/sdk"
)

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

// TestRedactorOfToolRemarks: remarks of a tool's answer hold no secrets, and those
// that a plugin inside the host may still use are not touched.
func TestRedactorOfToolRemarks(t *testing.T) {
	t.Parallel()

	declared := config.Plugin{Name: "p", Env: config.Env{Set: map[string]config.Secret{"A": {Value: "correct horse", FromEnv: "LONG"}}}}
	in := pool.New(pool.Options{
		Local: func(string) pool.Plugin { return nil }, Host: func(*pool.Instance) phases.Host { return nil },
	}).Instance(declared, false, false)
	c := toolCall{in: in, run: phases.Run{Subscription: "p.tool"}}
	own := []phases.Diagnostic{{Code: "x", Message: "a correct horse", Plugin: "somebody else"}}
	res := &phases.ToolResult{Diagnostics: own}
	c.stamp(res)
	if diff := cmp.Diff([]phases.Diagnostic{{
		Code: "x", Severity: "info", Message: phases.HiddenRemark, Detail: "a ***", Plugin: "p", Subscription: "p.tool", Visibility: phases.VisibilityUserVisible,
	}}, res.Diagnostics); diff != "" {
		t.Errorf("remarks (-want +got):\n%s", diff)
	}
	if own[0].Message != "a correct horse" || own[0].Plugin != "somebody else" {
		t.Errorf("the plugin's own remark became %+v", own[0])
	}
}
