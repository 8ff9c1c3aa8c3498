package runtime_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
	"github.com/grapnelhq/grapnel/sdk"
)

// TestBeginRunOfHooks begins, tells and ends each row of the ledger once, whether or
// not its hook ran.
func TestBeginRunOfHooks(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		hook  func(*sdk.Hook)
		state phases.RunState
	}{
		{"ran", func(*sdk.Hook) {}, phases.StateSucceeded},
		{"failed", func(h *sdk.Hook) { h.Any = failing(sdk.Fail("mood", "no")) }, phases.StateFailed},
		{"timed out", func(h *sdk.Hook) { h.Any, h.Timeout = taking(time.Minute), ms }, phases.StateTimedOut},
		{"filtered", func(h *sdk.Hook) { h.When = `turn.mode == "chat"` }, phases.StateFiltered},
		{"condition", func(h *sdk.Hook) { h.When = `int(turn.id + "x") == 0` }, phases.StateFailed},
		{"tried three times", func(h *sdk.Hook) {
			h.Any, h.Timeout, h.Idempotent, h.Retry = taking(time.Minute), ms, true, &phases.Retry{Attempts: 3}
		}, phases.StateTimedOut},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var lines journal
			hook := on("h", phases.PrePolicy, func(_ context.Context, c *sdk.Call, _ phases.Input) ([]phases.Contribution, error) {
				lines.add("called with " + c.Trace.Parent)
				return nil, nil
			})
			tt.hook(&hook)
			h := newHosted(plugin("p", hook))
			h.opts.BeginRun = func(ctx context.Context, _ phases.Trace, run *phases.Run) (context.Context, phases.Trace, func(*phases.Run, time.Time)) {
				began := time.Now()
				lines.add("begin " + run.Subscription)
				return ctx, phases.Trace{Parent: "the span"}, func(run *phases.Run, at time.Time) {
					if at.Before(began) || at.After(time.Now()) {
						t.Error("it ended at a time that it was not over")
					}
					lines.add("end " + string(run.State))
				}
			}
			h.opts.OnEvent = func(ev runtime.Event) {
				if ev.Kind == runtime.EventRun {
					lines.add("told " + ev.State)
				}
			}
			dispatch(t, h.start(t), &phases.PrePolicyInput{})
			want := []string{"begin p.h", "told " + string(tt.state), "end " + string(tt.state)}
			if tt.name == "ran" {
				want = slices.Insert(want, 1, "called with the span")
			}
			checkSame(t, "runs", lines.all(), want)
		})
	}
}

// TestEventDispatch tells how long a phase took and how it ended.
func TestEventDispatch(t *testing.T) {
	t.Parallel()
	guard := on("guard", phases.ToolPreCall, failing(sdk.Fail("mood", "no")), phases.KindDecision)
	h := newHosted(plugin("p", guard, section("s", "s", "text")))
	var lines journal
	h.opts.OnEvent = func(ev runtime.Event) {
		if ev.Kind == runtime.EventDispatch {
			lines.add(fmt.Sprintf("%s %s %s %v", ev.Phase, ev.State, ev.Code, ev.Took > 0 && ev.Took < time.Minute))
		}
	}
	eng := h.start(t)
	dispatch(t, eng, &phases.PrePromptCompileInput{})
	dispatch(t, eng, &phases.ToolPreCallInput{Tool: "shell"})
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	outcome(t)(eng.Dispatch(gone, host(), &phases.PrePromptCompileInput{}))
	want := []string{
		"turn.pre_prompt_compile succeeded  true", "tool.pre_call failed plugin_error true", "turn.pre_prompt_compile cancelled cancelled true",
	}
	checkSame(t, "dispatches", lines.all(), want)
}
