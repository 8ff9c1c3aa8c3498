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
		if diff := cmp.Diff(states(out), want); diff != "" {
			t.Errorf("ledger (-got +want):\n%s", diff)
		}
		if diff := cmp.Diff(codes(out), []string{"fail_open p.slow", "fail_open p.stubborn"}); diff != "" {
			t.Errorf("diagnostics (-got +want):\n%s", diff)
		}
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
		if diff := cmp.Diff(states(out), want); diff != "" {
			t.Errorf("ledger (-got +want):\n%s", diff)
		}
		spent := phases.BudgetUse{GrantedMS: 400, UsedMS: 400, SpentBy: []phases.Spent{{Subscription: "p.greedy", MS: 400}}}
		if diff := cmp.Diff(out.Budget, spent); diff != "" {
			t.Errorf("budget (-got +want):\n%s", diff)
		}
		if out.Error != nil {
			t.Errorf("best-effort hooks failed the phase: %v", out.Error)
		}
	})
}

// TestFailClosedWithoutTime: a fail-closed hook that got no time fails the phase.
func TestFailClosedWithoutTime(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		greedy := on("greedy", phases.PrePromptCompile, taking(time.Hour))
		guard := on("guard", phases.PrePromptCompile, reply())
		guard.After, guard.OnFailure = []string{"p.greedy"}, word(phases.FailClosed)
		h := newHosted(plugin("p", greedy, guard)).phase(phases.PrePromptCompile, budget(400*ms))

		out := dispatch(t, h.start(t), &phases.PrePromptCompileInput{})
		if got := errorCode(out); got != "budget_exhausted p.guard" {
			t.Errorf("error = %q", got)
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
				if diff := cmp.Diff(states(out), tt.want); diff != "" {
					t.Errorf("ledger (-got +want):\n%s", diff)
				}
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
		turn, err := h.start(t).BeginTurn(t.Context(), host())
		if err != nil {
			t.Fatal(err)
		}
		got := outcome(t)(turn.PrePromptContext(t.Context(), &phases.PrePromptContextInput{}))
		time.Sleep(time.Hour) // the host works
		tool := outcome(t)(turn.ToolPreCall(t.Context(), &phases.ToolPreCallInput{Tool: "x"}))
		text := outcome(t)(turn.Dispatch(t.Context(), &phases.PrePromptCompileInput{}))
		after := outcome(t)(turn.PrePolicy(t.Context(), &phases.PrePolicyInput{}))

		granted := []float64{got.Budget.GrantedMS, tool.Budget.GrantedMS, text.Budget.GrantedMS, after.Budget.GrantedMS}
		if diff := cmp.Diff(granted, []float64{1000, 1000, 400, 0}); diff != "" {
			t.Errorf("granted ms (-got +want):\n%s", diff)
		}
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
		if diff := cmp.Diff(states(out), want); diff != "" {
			t.Errorf("ledger (-got +want):\n%s", diff)
		}
		if out.Budget.GrantedMS != 80 || out.Error != nil {
			t.Errorf("granted %v ms, error %v", out.Budget.GrantedMS, out.Error)
		}

		out = outcome(t)(eng.Dispatch(expired(t), host(), &phases.PrePolicyInput{}))
		want = []string{"p.slow budget_exhausted budget_exhausted", "p.check budget_exhausted budget_exhausted"}
		if diff := cmp.Diff(states(out), want); diff != "" {
			t.Errorf("ledger of an expired context (-got +want):\n%s", diff)
		}
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
// counted, leaves no mark, and returns what is known.
func TestCancellation(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		first := section("first", "s", "text")
		slow := on("slow", phases.PrePromptCompile, taking(time.Hour))
		slow.OnFailure, slow.After = word(phases.FailClosed), []string{"p.first"}
		later := on("later", phases.PrePromptCompile, reply())
		later.After = []string{"p.slow"}
		eng := newHosted(plugin("p", first, slow, later)).start(t)

		for range 8 { // more often than any breaker would bear
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(10*ms, cancel)
			out := outcome(t)(eng.Dispatch(ctx, host(), &phases.PrePromptCompileInput{}))
			want := []string{"p.first succeeded", "p.slow cancelled cancelled", "p.later cancelled cancelled"}
			if diff := cmp.Diff(states(out), want); diff != "" {
				t.Fatalf("ledger (-got +want):\n%s", diff)
			}
			if got := errorCode(out); got != "cancelled" || len(out.Diagnostics) > 0 {
				t.Errorf("error = %q, diagnostics %v", got, codes(out))
			}
			if diff := cmp.Diff(sectionIDs(out), []string{"s"}); diff != "" {
				t.Errorf("partial merge (-got +want):\n%s", diff)
			}
		}
		if rows := eng.Plugins(); rows[0].State != phases.PluginReady || rows[0].Restarts != 0 {
			t.Errorf("plugin = %+v", rows[0])
		}
	})
}

// TestCancelledDecision: a phase that was cancelled has not decided.
func TestCancelledDecision(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		guard := on("guard", phases.PrePolicy, taking(time.Hour), phases.KindDecision)
		eng := newHosted(plugin("p", guard)).start(t)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(10*ms, cancel)
		out := outcome(t)(eng.Dispatch(ctx, host(), &phases.PrePolicyInput{}))
		if out.Decision != nil || errorCode(out) != "cancelled" {
			t.Errorf("decision = %+v, error = %q", out.Decision, errorCode(out))
		}
	})
}

// TestCharsOfTurn: the operator's budget of characters bounds what all sections
// come to, and the plugin is told the room that it has.
func TestCharsOfTurn(t *testing.T) {
	t.Parallel()

	room := make(chan int, 1)
	text := section("text", "s", longText(900))
	answer := text.PrePromptCompile
	text.PrePromptCompile = func(ctx context.Context, c *sdk.Call, in *phases.PrePromptCompileInput) ([]phases.Contribution, error) {
		room <- c.Budget.MaxChars
		return answer(ctx, c, in)
	}
	h := newHosted(plugin("p", text))
	h.cfg.Budgets.Turn.Chars = 600
	turn, err := h.start(t).BeginTurn(t.Context(), host())
	if err != nil {
		t.Fatal(err)
	}
	out := outcome(t)(turn.Dispatch(t.Context(), &phases.PrePromptCompileInput{}))
	got := out.Merged.Sections[0]
	if n := len([]rune(got.Content)); n > 600 || got.Truncation == nil || got.Truncation.Limit != phases.LimitTotal || <-room != 600 {
		t.Errorf("%d characters, %+v", n, got.Truncation)
	}
	if cut := runOf(t, out, "p.text").Cut; len(cut) != 1 || cut[0].Original != 900 {
		t.Errorf("cut = %+v", cut)
	}
}

// longText is a text of n characters in lines.
func longText(n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = 'x'
		if i%60 == 59 {
			b[i] = '\n'
		}
	}
	b[n-1] = '.'
	return string(b)
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

// TestOverloaded: beyond the bound of waiting calls the answer is immediate.
func TestOverloaded(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		hook := on("h", phases.ToolPreCall, taking(500*ms))
		h := newHosted(plugin("p", hook))
		h.plugin("p").Limits.Concurrency = 2
		eng := h.start(t)
		const calls = 2 + 1024 + 7
		found := make(chan string, calls)
		for range calls {
			go func() {
				out, err := eng.Dispatch(t.Context(), host(), &phases.ToolPreCallInput{Tool: "x"})
				if err != nil {
					found <- err.Error()
					return
				}
				found <- states(out)[0]
			}()
		}
		got := map[string]int{}
		for range calls {
			got[<-found]++
		}
		// Two at a time, half a second each, in a phase of one second.
		want := map[string]int{"p.h succeeded": 2, "p.h failed overloaded": 7}
		for state, n := range want {
			if got[state] < n {
				t.Errorf("%s: %d, want at least %d of %v", state, got[state], n, got)
			}
		}
		if got["p.h failed overloaded"] != 7 {
			t.Errorf("overloaded: %v", got)
		}
	})
}
