//go:build unix

package runtime_test

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"testing"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
	"github.com/grapnelhq/grapnel/sdk"
	process "github.com/grapnelhq/grapnel/sdk/serve"
)

// modelProgram is a plugin that asks the host's model in a hook, in a tool and in
// the background, and tells what it heard.
func modelProgram() int {
	asks := func(ctx context.Context, host phases.Host, input string) string {
		return said(sdk.Complete(ctx, host, phases.CompletionRequest{Input: input}))
	}
	p := offering("asker", tool("ask", func(ctx context.Context, c *sdk.ToolCall) (*phases.ToolResult, error) {
		policy, _ := c.Policy("memory", "turn_policy")
		return sdk.Text(fmt.Sprintf("%s; policy %s, outside %v", asks(ctx, c.Host, "tool"), policy, c.OutsideTurn)), nil
	}))
	p.Hooks = append(p.Hooks,
		on("h", phases.PrePolicy, func(ctx context.Context, c *sdk.Call, _ phases.Input) ([]phases.Contribution, error) {
			return sdk.Reply(&phases.Policy{Common: phases.Common{Domain: "memory"}, Key: "turn_policy", Value: raw(fmt.Sprintf("%q", asks(ctx, c.Host, "hook")))})
		}, phases.KindPolicy),
		on("late", phases.PostTurn, func(ctx context.Context, c *sdk.Call, _ phases.Input) ([]phases.Contribution, error) {
			return nil, sdk.Fail("heard", asks(ctx, c.Host, "late"))
		}))
	if err := process.Serve(p); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// TestModelOfProcess: a plugin in a process of its own asks in the name of the call
// that it works on, whose turn has the rows; what it asks in the background is told.
func TestModelOfProcess(t *testing.T) {
	b := newBench(t)
	asker := bad(t, "asker", "model")
	asker.Grants.Host = []string{"model.complete"}
	cfg := patient(asker)
	cfg.Budgets.Phases[phases.PrePolicy], cfg.Budgets.Phases[phases.PreTools] = budget(2*generous), budget(2*generous)
	var asked atomic.Int32
	eng := b.startWith(t, cfg, runtime.Options{Complete: func(_ context.Context, rq phases.CompletionRequest) (phases.CompletionResponse, error) {
		asked.Add(1)
		return phases.CompletionResponse{Text: "re " + rq.Input, Model: "m", Usage: phases.Usage{OutputTokens: 2}}, nil
	}})
	turn := begin(t, eng)
	outcome(t)(turn.Dispatch(t.Context(), &phases.PrePolicyInput{}))
	outcome(t)(turn.Dispatch(t.Context(), &phases.PreToolsInput{ToolCalling: true}))
	res, err := turn.CallTool(t.Context(), phases.ToolCall{Tool: "ask"})
	if err != nil || string(res.Content) != `"re tool (m, end); policy \"re hook (m, end)\", outside false"` {
		t.Errorf("the tool in the turn: %s, %v", res.Content, err)
	}
	rows := hostRuns(compiled(t, turn).Manifest.Runs)
	checkSame(t, "ledger", rowsOf(rows), []string{"asker.h/model.complete succeeded", "asker.ask/model.complete succeeded"})
	for _, r := range rows {
		if r.Incarnation != 1 || r.BytesIn == 0 || r.BytesOut == 0 || r.Usage.OutputTokens != 2 || r.PluginVersion != "1.0.0" {
			t.Errorf("a row: %+v", r)
		}
	}
	if res, err := eng.CallTool(t.Context(), "asker", phases.ToolCall{Tool: "ask"}); err != nil || string(res.Content) != `"re tool (m, end); policy , outside true"` {
		t.Errorf("the tool outside the turn: %s, %v", res.Content, err)
	}
	outcome(t)(turn.End(t.Context(), &phases.PostTurnInput{Status: phases.TurnSucceeded}))
	told := b.await(t, "the row of the background", func(e runtime.Event) bool {
		return e.Kind == runtime.EventRun && e.Subscription == "asker.late/model.complete"
	})
	if told.State != string(phases.StateSucceeded) || told.Run.Usage.OutputTokens != 2 || asked.Load() != 4 {
		t.Errorf("asked %d times; told %+v", asked.Load(), told)
	}
}
