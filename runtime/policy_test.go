package runtime_test

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
	"github.com/grapnelhq/grapnel/sdk"
)

// TestFailurePolicies: what a failed hook does to its phase, by word and cause.
func TestFailurePolicies(t *testing.T) {
	t.Parallel()

	spare := []phases.Contribution{&phases.PromptSection{SectionID: "spare", Title: "Spare", Content: "spare"}}
	byCause := func(c phases.Cause, w phases.FailureWord) phases.OnFailure {
		return phases.OnFailure{Default: phases.BestEffort, ByCause: map[phases.Cause]phases.FailureWord{c: w}}
	}
	tests := []struct {
		name     string
		policy   phases.OnFailure
		err      string
		sections []string
		open     bool
	}{
		{name: "default is best effort", sections: []string{"other"}, open: true},
		{name: "best effort", policy: word(phases.BestEffort), sections: []string{"other"}, open: true},
		{name: "fail closed", policy: word(phases.FailClosed), err: "plugin_error p.h", sections: []string{"other"}},
		{name: "fallback", policy: word(phases.UseInstead), sections: []string{"spare", "other"}, open: true},
		{name: "this cause", policy: byCause(phases.CausePluginError, phases.FailClosed), err: "plugin_error p.h", sections: []string{"other"}},
		{name: "another cause", policy: byCause(phases.CauseCrash, phases.FailClosed), sections: []string{"other"}, open: true},
		{name: "fallback by cause", policy: byCause(phases.CausePluginError, phases.UseInstead), sections: []string{"spare", "other"}, open: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			h := on("h", phases.PrePromptCompile, failing(sdk.Fail("down", "it is down")), phases.KindPromptSection)
			h.OnFailure, h.Priority = tt.policy, 1
			if tt.policy.Uses(phases.UseInstead) {
				h.Fallback = spare
			}
			out := dispatch(t, newHosted(plugin("p", h, section("other", "other", "text"))).start(t), &phases.PrePromptCompileInput{})
			if got := errorCode(out); got != tt.err {
				t.Errorf("error = %q, want %q", got, tt.err)
			}
			checkSame(t, "sections", sectionIDs(out), tt.sections)
			want := []string{}
			if tt.open {
				want = append(want, "fail_open p.h")
			}
			checkSame(t, "diagnostics", codes(out), want)
			if run := runOf(t, out, "p.h"); run.State != phases.StateFailed || run.Code != "plugin_error" {
				t.Errorf("run = %+v", run)
			}
		})
	}
}

// TestFailedClosed: a phase that takes decisions denies when it fails closed, with the cause as the code, beside what
// others had decided. Later stages do not run, and say why.
func TestFailedClosed(t *testing.T) {
	t.Parallel()

	var j journal
	guard := on("guard", phases.ToolPreCall, failing(sdk.Fail("x", "x")), phases.KindDecision)
	other := on("other", phases.ToolPreCall, reply(allow()), phases.KindDecision)
	check := on("check", phases.ToolPreCall, j.noting("validate", reply()), phases.KindDecision)
	check.Role = phases.RoleValidate
	watch := on("watch", phases.ToolPreCall, j.noting("observe", reply()))
	watch.Role = phases.RoleObserve
	eng := newHosted(plugin("p", guard, other, check, watch)).start(t)
	out := dispatch(t, eng, &phases.ToolPreCallInput{Tool: "x"})
	waitBackground(t, eng)
	want := []string{"p.guard failed plugin_error", "p.other succeeded", "p.check cancelled phase_failed", "p.watch cancelled phase_failed"}
	checkSame(t, "ledger", states(out), want)
	checkSame(t, "decision", out.Decision, &phases.Decided{Verdict: phases.VerdictDeny, Reasons: []phases.Reason{
		{Subscription: "p.other", Verdict: phases.VerdictAllow, ContributionID: "p.other#0"},
		{Subscription: "p.guard", Verdict: phases.VerdictDeny, Reason: "the phase failed closed", ReasonCode: "plugin_error"},
	}})
	if ran := j.all(); len(ran) > 0 || out.Error.Phase != phases.ToolPreCall {
		t.Errorf("ran all the same: %v, error %+v", ran, out.Error)
	}
}

// TestRetry: only as often as allowed, with the wait between, only for failures
// that may pass, and within the phase's time.
func TestRetry(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name     string
		err      error
		attempts int
		backoff  time.Duration
		want     string
		calls    int32
		took     time.Duration
	}{
		{name: "passes at the third", err: &phases.Error{Code: phases.CauseOverloaded}, attempts: 3, backoff: 50 * ms, want: "p.h succeeded", calls: 3, took: 100 * ms},
		{name: "too few attempts", err: &phases.Error{Code: phases.CauseOverloaded}, attempts: 2, backoff: 50 * ms, want: "p.h failed overloaded", calls: 2, took: 50 * ms},
		{name: "not retryable", err: sdk.Fail("x", "x"), attempts: 3, want: "p.h failed plugin_error", calls: 1},
		{name: "says that it is retryable", err: &phases.Error{Code: phases.CausePluginError, Retryable: true}, attempts: 3, want: "p.h succeeded", calls: 3},
		{name: "no time left", err: &phases.Error{Code: phases.CauseOverloaded}, attempts: 3, backoff: 2 * time.Second, want: "p.h failed overloaded", calls: 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			synctest.Test(t, func(t *testing.T) {
				var calls atomic.Int32
				h := on("h", phases.PrePromptCompile, func(_ context.Context, c *sdk.Call, _ phases.Input) ([]phases.Contribution, error) {
					if n := calls.Add(1); int(n) != c.Attempt {
						t.Errorf("attempt %d is call %d", c.Attempt, n)
					} else if n < 3 {
						return nil, tt.err
					}
					return nil, nil
				})
				h.Idempotent, h.Retry = true, &phases.Retry{Attempts: tt.attempts, Backoff: phases.Duration(tt.backoff)}
				eng := newHosted(plugin("p", h)).start(t)
				begin := time.Now()
				out := dispatch(t, eng, &phases.PrePromptCompileInput{})
				if took := time.Since(begin); took != tt.took {
					t.Errorf("took %v, want %v", took, tt.took)
				}
				if got := states(out)[0]; got != tt.want || calls.Load() != tt.calls || runOf(t, out, "p.h").Attempts != int(tt.calls) {
					t.Errorf("%q after %d calls, want %q after %d", got, calls.Load(), tt.want, tt.calls)
				}
			})
		})
	}
}

// TestRequired: a phase fails closed when what it requires did not complete,
// whatever the reason (row 34: also when the plugin was never up).
func TestRequired(t *testing.T) {
	t.Parallel()

	filtered, shadow := on("h", phases.PrePolicy, reply()), on("h", phases.PrePolicy, reply())
	filtered.When, shadow.Shadow = "false", true
	tests := []struct {
		name string
		hook sdk.Hook
		want string
	}{
		{"succeeded", on("h", phases.PrePolicy, reply()), ""},
		{"denied", on("h", phases.PrePolicy, reply(deny("no")), phases.KindDecision), ""},
		{"failed, though best effort", on("h", phases.PrePolicy, failing(sdk.Fail("x", "x"))), "required_missing p.h"},
		{"filtered", filtered, "required_missing p.h"},
		{"shadow", shadow, "required_missing p.h"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			h := newHosted(plugin("p", tt.hook)).phase(phases.PrePolicy, config.PhaseBudget{Require: []string{"p.h"}})
			out := dispatch(t, h.start(t), &phases.PrePolicyInput{})
			if got := errorCode(out); got != tt.want {
				t.Errorf("error = %q, want %q", got, tt.want)
			}
			denied := out.Decision != nil && out.Decision.Verdict == phases.VerdictDeny
			if denied != (tt.want != "" || tt.name == "denied") {
				t.Errorf("decision = %+v", out.Decision)
			}
		})
	}
}

// rude is a plugin written against the engine's own interface, without the sdk's
// manners.
type rude struct {
	*sdk.Plugin
	dispatch func() (*phases.Result, error)
}

var _ runtime.Plugin = rude{}

func (r rude) Dispatch(context.Context, *phases.Dispatch) (*phases.Result, error) {
	return r.dispatch()
}

// TestRudePlugin: what an answer may be that no kit has looked at.
func TestRudePlugin(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name   string
		answer func() (*phases.Result, error)
		want   string
	}{
		{"nothing at all", func() (*phases.Result, error) { return nil, nil }, "p.h succeeded"},
		{"panic", func() (*phases.Result, error) { panic("x") }, "p.h failed plugin_error"},
		{"plain error", func() (*phases.Result, error) { return nil, context.Canceled }, "p.h failed plugin_error"},
		{"nil contribution", func() (*phases.Result, error) {
			return &phases.Result{Contributions: []phases.Contribution{nil}}, nil
		}, "p.h failed invalid_reply"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			p := plugin("p", on("h", phases.PrePromptCompile, reply(), phases.KindPromptSection))
			h := newHosted(p)
			h.opts.InProcess["p"] = rude{p, tt.answer}
			out := dispatch(t, h.start(t), &phases.PrePromptCompileInput{})
			if got := states(out)[0]; got != tt.want {
				t.Errorf("ledger: %q, want %q", got, tt.want)
			}
		})
	}
}

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
		check := func(name, state string, verdict phases.Verdict, called int32) {
			t.Helper()
			out := dispatch(t, eng, &phases.ToolPreCallInput{Tool: "x"})
			if states(out)[0] != state || out.Decision.Verdict != verdict || calls.Load() != called {
				t.Errorf("%s: %q, %s after %d calls", name, states(out)[0], out.Decision.Verdict, calls.Load())
			}
		}
		for n := range int32(5) {
			check("closed", "p.guard timed_out timeout", phases.VerdictDeny, n+1)
		}
		check("open", "p.guard unavailable breaker_open", phases.VerdictDeny, 5)
		time.Sleep(11 * time.Second)
		check("probe that fails", "p.guard timed_out timeout", phases.VerdictDeny, 6)
		healthy.Store(true)
		check("open again", "p.guard unavailable breaker_open", phases.VerdictDeny, 6)
		time.Sleep(11 * time.Second)
		check("probe that passes", "p.guard succeeded", phases.VerdictAllow, 7)
		check("closed again", "p.guard succeeded", phases.VerdictAllow, 8)
	})
}

// TestFailOpenMark: the mark of a hook that failed and did not stop its phase says
// how much of it was kept, as the ledger has it: contributions beside one that was
// dropped stay in force.
func TestFailOpenMark(t *testing.T) {
	t.Parallel()
	text := func(ids ...string) []phases.Contribution {
		var list []phases.Contribution
		for _, id := range ids {
			list = append(list, &phases.PromptSection{SectionID: id, Title: id, Content: id})
		}
		return list
	}
	tests := []struct {
		name     string
		answer   []phases.Contribution
		fallback []phases.Contribution
		cause    phases.Cause
		kept     int
		want     string
	}{
		{"all are forbidden", text("not_granted"), nil, phases.CauseForbidden, 0, "nothing of it was kept"},
		{"one of three is forbidden", text("s", "not_granted", "s2"), nil, phases.CauseForbidden, 2, "2 of its 3 contributions were kept"},
		{"one of two slots is lost", text("s", "taken"), nil, phases.CauseConflict, 1, "1 of its 2 contributions were kept"},
		{"the only slot is lost", text("taken"), nil, phases.CauseConflict, 0, "nothing of it was kept"},
		{"a fallback", text("not_granted"), text("spare"), phases.CauseForbidden, 1, "its fallback was used"},
		{"a fallback beside a part", text("s", "not_granted"), text("spare"), phases.CauseForbidden, 2, "2 of its 3 contributions were kept, its fallback included"},
		{"a fallback that loses its slot", text("not_granted"), text("taken"), phases.CauseForbidden, 0, "nothing of it was kept, nor of its fallback"},
		{"a fallback that is refused", text("not_granted"), text("not_granted"), phases.CauseForbidden, 0, "its fallback was refused, and nothing of it was kept"},
		{"a part, and a fallback that is refused", text("s", "not_granted"), text("not_granted"), phases.CauseForbidden, 1, "its fallback was refused; 1 of its"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h := on("h", phases.PrePromptCompile, reply(tt.answer...), phases.KindPromptSection)
			h.OnFailure = word(phases.BestEffort)
			if tt.fallback != nil {
				h.OnFailure, h.Fallback = word(phases.UseInstead), tt.fallback
			}
			hosted := newHosted(plugin("owner", section("o", "taken", "text")), plugin("p", h))
			hosted.cfg.Plugins[1].Grants.Sections = []string{"s", "s2", "spare", "taken"}
			out := dispatch(t, hosted.start(t), &phases.PrePromptCompileInput{})
			i := slices.IndexFunc(out.Diagnostics, func(d phases.Diagnostic) bool { return d.Code == phases.CodeFailOpen })
			if i < 0 {
				t.Fatalf("no mark: %+v", out.Diagnostics)
			}
			mark := out.Diagnostics[i]
			if mark.Cause != tt.cause || mark.Slot != "" || mark.Subscription != "p.h" {
				t.Errorf("the mark is %+v", mark)
			}
			if _, says, _ := strings.Cut(mark.Message, "); "); !strings.HasPrefix(says, tt.want) {
				t.Errorf("it says %q, want %q", says, tt.want)
			}
			if kept := len(runOf(t, out, "p.h").Contributions); kept != tt.kept {
				t.Errorf("the ledger says that %d were kept, want %d", kept, tt.kept)
			}
		})
	}
}
