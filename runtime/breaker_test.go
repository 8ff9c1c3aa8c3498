package runtime_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/sdk"
)

// TestBreaker: only time-outs, crashes and invalid answers in a row open it, and
// of one subscription only.
func TestBreaker(t *testing.T) {
	t.Parallel()

	bad := &phases.PromptSection{SectionID: "s", Title: "s", Content: "x", Stability: "shaky"}
	tests := []struct {
		name string
		h    handler
		open bool
	}{
		{"time-outs", taking(time.Hour), true},
		{"invalid answers", reply(bad), true},
		{"the plugin's errors", failing(sdk.Fail("x", "x")), false},
		{"denials", reply(deny("no")), false},
		{"refused contributions", reply(&phases.Audit{EventKind: "e"}), false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			synctest.Test(t, func(t *testing.T) {
				phase, kinds := phases.PrePromptCompile, []phases.Kind{phases.KindPromptSection}
				if tt.name == "denials" {
					phase, kinds = phases.PrePolicy, []phases.Kind{phases.KindDecision}
				}
				hook := on("h", phase, tt.h, kinds...)
				hook.Timeout = 100 * ms
				eng := newHosted(plugin("p", hook, on("sibling", phase, reply()))).start(t)
				var last *phases.Outcome
				for range 6 {
					last = dispatch(t, eng, inputOf(t, phase))
				}
				if open := runOf(t, last, "p.h").Code == string(phases.CauseBreakerOpen); open != tt.open {
					t.Errorf("after five: %v", states(last))
				}
				if got := runOf(t, last, "p.sibling").State; got != phases.StateSucceeded {
					t.Errorf("the sibling: %s", got)
				}
			})
		})
	}
}

// TestBreakerOfGuard: a guard whose breaker is open denies; after a while one
// probe decides whether it is asked again.
func TestBreakerOfGuard(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		var healthy atomic.Bool
		var calls atomic.Int32
		guard := on("guard", phases.ToolPreCall, func(ctx context.Context, c *sdk.Call, in phases.Input) ([]phases.Contribution, error) {
			calls.Add(1)
			if healthy.Load() {
				return sdk.Reply(allow())
			}
			return taking(time.Hour)(ctx, c, in)
		}, phases.KindDecision)
		guard.Timeout = 100 * ms
		eng := newHosted(plugin("p", guard)).start(t)
		ask := func() (string, phases.Verdict) {
			out := dispatch(t, eng, &phases.ToolPreCallInput{Tool: "x"})
			return states(out)[0], out.Decision.Verdict
		}
		steps := []struct {
			name    string
			before  func()
			state   string
			verdict phases.Verdict
			calls   int32
		}{
			{"fifth", func() {
				for range 4 {
					ask()
				}
			}, "p.guard timed_out timeout", phases.VerdictDeny, 5},
			{"open", func() {}, "p.guard unavailable breaker_open", phases.VerdictDeny, 5},
			{"probe that fails", func() { time.Sleep(11 * time.Second) }, "p.guard timed_out timeout", phases.VerdictDeny, 6},
			{"open again", func() { healthy.Store(true) }, "p.guard unavailable breaker_open", phases.VerdictDeny, 6},
			{"probe that passes", func() { time.Sleep(11 * time.Second) }, "p.guard succeeded", phases.VerdictAllow, 7},
			{"closed", func() {}, "p.guard succeeded", phases.VerdictAllow, 8},
		}
		for _, step := range steps {
			step.before()
			state, verdict := ask()
			if state != step.state || verdict != step.verdict || calls.Load() != step.calls {
				t.Errorf("%s: %q, %s after %d calls", step.name, state, verdict, calls.Load())
			}
		}
	})
}
