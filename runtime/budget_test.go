package runtime_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/sdk"
)

const ms = time.Millisecond

// budget is a phase's time.
func budget(d time.Duration) config.PhaseBudget { return config.PhaseBudget{Time: phases.Duration(d)} }

// TestHookTimeout: a hook gets its own time and not a moment more, also when it
// does not listen; the phase goes on without it.
func TestHookTimeout(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		defer close(release)
		slow := on("slow", phases.PrePromptCompile, taking(time.Hour))
		slow.Timeout = 300 * ms
		stubborn := on("stubborn", phases.PrePromptCompile, deaf(release))
		stubborn.Timeout = 200 * ms
		var told time.Duration
		quick := section("quick", "s", "text")
		quick.Timeout = 100 * ms
		answer := quick.PrePromptCompile
		quick.PrePromptCompile = func(ctx context.Context, c *sdk.Call, in *phases.PrePromptCompileInput) ([]phases.Contribution, error) {
			told = c.Remaining
			return answer(ctx, c, in)
		}
		eng := newHosted(plugin("p", slow, stubborn, quick)).start(t)

		begin := time.Now()
		out := dispatch(t, eng, &phases.PrePromptCompileInput{})
		if took := time.Since(begin); took != 300*ms || told != 100*ms {
			t.Errorf("the phase took %v; the quick hook was told %v", took, told)
		}
		want := []string{"p.quick succeeded", "p.slow timed_out timeout", "p.stubborn timed_out timeout"}
		checkSame(t, "ledger", states(out), want)
		checkSame(t, "diagnostics", codes(out), []string{"fail_open p.slow", "fail_open p.stubborn"})
		if run := runOf(t, out, "p.slow"); run.DurationMS != 300 {
			t.Errorf("duration = %v ms", run.DurationMS)
		}
	})
}

// TestPhaseEnd: who was started when the phase's time ended has timed out, who
// never started had no budget; the ledger says who spent it (row 31).
func TestPhaseEnd(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		greedy := on("greedy", phases.PrePromptCompile, taking(time.Hour))
		late := on("late", phases.PrePromptCompile, reply())
		late.After = []string{"p.greedy"}
		h := newHosted(plugin("p", greedy, late)).phase(phases.PrePromptCompile, budget(400*ms))

		out := dispatch(t, h.start(t), &phases.PrePromptCompileInput{})
		want := []string{"p.greedy timed_out timeout", "p.late budget_exhausted budget_exhausted"}
		checkSame(t, "ledger", states(out), want)
		spent := phases.BudgetUse{GrantedMS: 400, UsedMS: 400, SpentBy: []phases.Spent{{Subscription: "p.greedy", MS: 400}}}
		checkSame(t, "budget", out.Budget, spent)
		if out.Error != nil {
			t.Errorf("best-effort hooks failed the phase: %v", out.Error)
		}
	})
}

// TestLastQuarter: earlier stages leave the last quarter of the phase to a later
// stage that may fail it, and only to such a one.
func TestLastQuarter(t *testing.T) {
	t.Parallel()

	for _, tt := range []struct {
		name   string
		policy phases.FailureWord
		greedy float64
		want   []string
	}{
		{"fail closed", phases.FailClosed, 300, []string{"p.greedy timed_out timeout", "p.check succeeded"}},
		{"best effort", phases.BestEffort, 400, []string{"p.greedy timed_out timeout", "p.check budget_exhausted budget_exhausted"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			synctest.Test(t, func(t *testing.T) {
				greedy := on("greedy", phases.PrePolicy, taking(time.Hour))
				check := on("check", phases.PrePolicy, taking(50*ms, allow()), phases.KindDecision)
				check.Role, check.OnFailure = phases.RoleValidate, word(tt.policy)
				h := newHosted(plugin("p", greedy, check)).phase(phases.PrePolicy, budget(400*ms))

				out := dispatch(t, h.start(t), &phases.PrePolicyInput{})
				checkSame(t, "ledger", states(out), tt.want)
				if got := runOf(t, out, "p.greedy").DurationMS; got != tt.greedy {
					t.Errorf("the first stage took %v ms, want %v", got, tt.greedy)
				}
			})
		})
	}
}

// TestTurnTime: blocking phases use the turn's time up, the host's own work and
// tool phases do not.
func TestTurnTime(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		h := newHosted(plugin("p",
			on("recall", phases.PrePromptContext, taking(600*ms)),
			on("tool", phases.ToolPreCall, taking(900*ms)),
			on("text", phases.PrePromptCompile, taking(time.Hour)),
		))
		h.cfg.Budgets.Turn.Time = phases.Duration(time.Second)
		turn := beginAt(t, h.start(t), host())
		got := outcome(t)(turn.Dispatch(t.Context(), &phases.PrePromptContextInput{}))
		time.Sleep(time.Hour) // the host works
		tool := outcome(t)(turn.Dispatch(t.Context(), &phases.ToolPreCallInput{Tool: "x"}))
		text := outcome(t)(turn.Dispatch(t.Context(), &phases.PrePromptCompileInput{}))
		after := outcome(t)(turn.Dispatch(t.Context(), &phases.PrePolicyInput{}))

		granted := []float64{got.Budget.GrantedMS, tool.Budget.GrantedMS, text.Budget.GrantedMS, after.Budget.GrantedMS}
		checkSame(t, "granted ms", granted, []float64{1000, 1000, 400, 0})
		if run := runOf(t, text, "p.text"); run.State != phases.StateTimedOut || run.DurationMS != 400 {
			t.Errorf("run = %+v", run)
		}
	})
}

// TestCallersDeadline: the caller's deadline is one more budget: the phase is
// over then, and failure policies apply.
func TestCallersDeadline(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		slow := on("slow", phases.PrePolicy, taking(time.Hour))
		check := on("check", phases.PrePolicy, reply(allow()), phases.KindDecision)
		check.Role = phases.RoleValidate
		eng := newHosted(plugin("p", slow, check)).start(t)
		ctx, cancel := context.WithTimeout(t.Context(), 80*ms)
		defer cancel()

		out := outcome(t)(eng.Dispatch(ctx, host(), &phases.PrePolicyInput{}))
		want := []string{"p.slow timed_out timeout", "p.check succeeded"}
		checkSame(t, "ledger", states(out), want)
		if out.Budget.GrantedMS != 80 || out.Error != nil {
			t.Errorf("granted %v ms, error %v", out.Budget.GrantedMS, out.Error)
		}

		out = outcome(t)(eng.Dispatch(expired(t), host(), &phases.PrePolicyInput{}))
		want = []string{"p.slow budget_exhausted budget_exhausted", "p.check budget_exhausted budget_exhausted"}
		checkSame(t, "ledger of an expired context", states(out), want)
		if got := errorCode(out); got != "budget_exhausted p.check" {
			t.Errorf("error = %q", got)
		}
	})
}

// expired is a context whose deadline is over.
func expired(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), -1)
	t.Cleanup(cancel)
	return ctx
}

// TestCancellation: the caller's cancellation is nobody's failure. It is not
// counted, leaves no mark, decides nothing, and returns what is known.
func TestCancellation(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		first := on("first", phases.PrePolicy, reply(policyOf("k", "1")), phases.KindPolicy)
		slow := on("slow", phases.PrePolicy, taking(time.Hour), phases.KindDecision)
		slow.OnFailure, slow.After = word(phases.FailClosed), []string{"p.first"}
		later := on("later", phases.PrePolicy, reply())
		later.After = []string{"p.slow"}
		eng := newHosted(plugin("p", first, slow, later)).start(t)

		for range 8 { // more often than any breaker would bear
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(10*ms, cancel)
			out := outcome(t)(eng.Dispatch(ctx, host(), &phases.PrePolicyInput{}))
			want := []string{"p.first succeeded", "p.slow cancelled cancelled", "p.later cancelled cancelled"}
			if diff := cmp.Diff(states(out), want); diff != "" {
				t.Fatalf("ledger (-got +want):\n%s", diff)
			}
			if got := errorCode(out); got != "cancelled" || len(out.Diagnostics) > 0 {
				t.Errorf("error = %q, diagnostics %v", got, codes(out))
			}
			if len(out.Merged.Policies) != 1 || out.Decision != nil {
				t.Errorf("partial merge %+v, decision %+v", out.Merged.Policies, out.Decision)
			}
		}
		if rows := eng.Plugins(); rows[0].State != phases.PluginReady || rows[0].Restarts != 0 {
			t.Errorf("plugin = %+v", rows[0])
		}
	})
}

// TestQueueTimeCountsAgainstThePhase: waiting for a slot is no part of the hook's
// own time, but of the phase's.
func TestQueueTimeCountsAgainstThePhase(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		a := on("a", phases.PrePromptCompile, taking(300*ms))
		b := on("b", phases.PrePromptCompile, taking(300*ms))
		c := on("c", phases.PrePromptCompile, taking(300*ms))
		a.Timeout, b.Timeout, c.Timeout = 350*ms, 350*ms, 350*ms
		h := newHosted(plugin("p", a, b, c)).phase(phases.PrePromptCompile, budget(500*ms))
		h.plugin("p").Limits.Concurrency = 1
		out := dispatch(t, h.start(t), &phases.PrePromptCompileInput{})

		got := map[phases.RunState]int{}
		queued := 0.0
		for _, run := range out.Runs {
			got[run.State]++
			queued += run.QueueMS
		}
		want := map[phases.RunState]int{phases.StateSucceeded: 1, phases.StateTimedOut: 1, phases.StateBudgetExhausted: 1}
		if diff := cmp.Diff(got, want); diff != "" {
			t.Errorf("states (-got +want):\n%s\n%v", diff, states(out))
		}
		if queued != 300+500 {
			t.Errorf("queued %v ms in all", queued)
		}
	})
}
