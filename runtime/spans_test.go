package runtime_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
	"github.com/grapnelhq/grapnel/sdk"
)

// tracing notes when runs begin, are told and end. The trace that it gives a run is its
// number.
type tracing struct {
	journal

	runs  atomic.Int64
	early atomic.Int64
}

type inRun struct{}

func (tr *tracing) begin(ctx context.Context, from phases.Trace, run *phases.Run) (context.Context, phases.Trace, func(*phases.Run, time.Time)) {
	began, name := time.Now(), run.Subscription
	told := phases.Trace{Parent: fmt.Sprintf("%s#%d", name, tr.runs.Add(1))}
	outer, _ := ctx.Value(inRun{}).(string)
	tr.add(strings.TrimSpace("begin " + name + " in " + outer + " from " + cut(from.Parent)))
	return context.WithValue(ctx, inRun{}, name), told, func(run *phases.Run, at time.Time) {
		if at.Before(began) || at.After(time.Now()) {
			tr.early.Add(1)
		}
		tr.add("end " + run.Subscription + " " + string(run.State))
	}
}

// cut takes the number off a trace.
func cut(trace string) string {
	name, _, _ := strings.Cut(trace, "#")
	return name
}

func (tr *tracing) event(ev runtime.Event) {
	if ev.Kind == runtime.EventRun {
		tr.add("told " + ev.Subscription + " " + ev.State)
	}
}

// traced is an engine that notes its runs.
func traced(t *testing.T, h *hosted) (*runtime.Engine, *tracing) {
	t.Helper()
	tr := &tracing{}
	h.opts.BeginRun, h.opts.OnEvent = tr.begin, tr.event
	eng := h.start(t)
	t.Cleanup(func() {
		if n := tr.early.Load(); n != 0 {
			t.Errorf("%d runs ended at a time that they were not over", n)
		}
	})
	return eng, tr
}

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
			var told atomic.Value
			hook := on("h", phases.PrePolicy, func(_ context.Context, c *sdk.Call, _ phases.Input) ([]phases.Contribution, error) {
				told.Store(c.Trace.Parent)
				return nil, nil
			})
			tt.hook(&hook)
			eng, tr := traced(t, newHosted(plugin("p", hook)))
			dispatch(t, eng, &phases.PrePolicyInput{})
			want := []string{"begin p.h in  from", "told p.h " + string(tt.state), "end p.h " + string(tt.state)}
			checkSame(t, "runs", tr.all(), want)
			if got := told.Load(); tt.name == "ran" && got != "p.h#1" {
				t.Errorf("the plugin was told %v, want p.h#1", got)
			}
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
