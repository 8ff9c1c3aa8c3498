package runtime_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
	"github.com/grapnelhq/grapnel/sdk"
)

// TestAnswersBesideOneThatNeverComes: what the others have answered in time counts, although it is collected when the
// time of all is over.
func TestAnswersBesideOneThatNeverComes(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var hooks []sdk.Hook
		want := []string{"p.a timed_out timeout", "p.b failed plugin_error"}
		hooks = append(hooks, on("a", phases.PrePromptCompile, deaf(release)), on("b", phases.PrePromptCompile, failing(sdk.Fail("own", "no"))))
		for i := range 8 {
			name := fmt.Sprintf("c%d", i)
			h := section(name, name, "text")
			answer := h.PrePromptCompile
			h.PrePromptCompile = func(ctx context.Context, c *sdk.Call, in *phases.PrePromptCompileInput) ([]phases.Contribution, error) {
				ctx, cancel := context.WithTimeout(ctx, time.Minute)
				defer cancel()
				return answer(ctx, c, in)
			}
			hooks, want = append(hooks, h), append(want, "p."+name+" succeeded")
		}
		eng := newHosted(plugin("p", hooks...)).start(t)
		out := dispatch(t, eng, &phases.PrePromptCompileInput{})
		checkSame(t, "ledger", states(out), want)
		close(release)
		synctest.Wait()
	})
}

// broken is an error whose methods panic.
type broken struct{ text *string }

func (b *broken) Error() string { return *b.text }

// TestAnswersThatPanic: neither an error nor an answer of a plugin inside the host that cannot even be looked at ends
// the host.
func TestAnswersThatPanic(t *testing.T) {
	t.Parallel()

	for _, inline := range []bool{false, true} {
		h := newHosted(
			plugin("error", on("h", phases.PrePromptCompile, failing((*broken)(nil)))),
			plugin("nil", on("h", phases.PrePromptCompile, reply((*phases.PromptSection)(nil)), phases.KindPromptSection)),
		)
		if inline {
			h.opts.Inline = []string{"error", "nil"}
		}
		out := dispatch(t, h.start(t), &phases.PrePromptCompileInput{})
		for _, id := range []string{"error.h", "nil.h"} {
			if run := runOf(t, out, id); run.State != phases.StateFailed || run.PluginCode != phases.PluginCodePanic {
				t.Errorf("inline %v: %+v", inline, run)
			}
		}
	}
}

// TestTimesBesideASlowHook: spans and exchanges of hooks end when their answers come, not when they are collected.
func TestTimesBesideASlowHook(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		h := newHosted(plugin("p", on("slow", phases.PrePromptCompile, taking(100*ms)), on("swift", phases.PrePromptCompile, taking(ms))))
		begin, ends, took := time.Now(), map[string]time.Duration{}, map[string]time.Duration{}
		h.opts.BeginRun = func(ctx context.Context, _ phases.Trace, _ *phases.Run) (context.Context, phases.Trace, func(*phases.Run, time.Time)) {
			return ctx, phases.Trace{}, func(run *phases.Run, end time.Time) { ends[run.Subscription] = end.Sub(begin) }
		}
		h.opts.OnExchange = func(x *runtime.Exchange) error {
			took[x.Subscription] = x.Took
			return nil
		}
		dispatch(t, h.start(t), &phases.PrePromptCompileInput{})
		want := map[string]time.Duration{"p.slow": 100 * ms, "p.swift": ms}
		delete(took, "")
		checkSame(t, "ends", ends, want)
		checkSame(t, "times", took, want)
	})
}
