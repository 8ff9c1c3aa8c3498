package runtime_test

import (
	"context"
	"runtime/debug"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/sdk"
)

// lasting is a plugin whose hook answers after so long, or at its deadline.
func lasting(name string, d, timeout time.Duration) *sdk.Plugin {
	return plugin(name, sdk.Hook{
		Name: "h", Kinds: []phases.Kind{phases.KindPromptSection}, Timeout: timeout,
		PrePromptCompile: func(ctx context.Context, _ *sdk.Call, _ *phases.PrePromptCompileInput) ([]phases.Contribution, error) {
			select {
			case <-time.After(d):
				return sdk.Reply(&phases.PromptSection{SectionID: name, Content: name})
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		},
	})
}

// TestLayerTimes: the hooks of a layer run at the same time, each ends by its own deadline, and the ledger has the time
// of each, whichever the caller waited for first.
func TestLayerTimes(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		eng := newHosted(
			lasting("slow", 300*time.Millisecond, 400*time.Millisecond), lasting("quick", 10*time.Millisecond, 500*time.Millisecond),
			lasting("never", time.Hour, 50*time.Millisecond), lasting("middle", 60*time.Millisecond, 70*time.Millisecond),
		).start(t)
		begin := time.Now()
		out := dispatch(t, eng, &phases.PrePromptCompileInput{})
		if took := time.Since(begin); took != 300*time.Millisecond {
			t.Errorf("the phase took %v", took)
		}
		for id, want := range map[string]struct {
			ms    float64
			state phases.RunState
		}{
			"slow.h": {300, phases.StateSucceeded}, "quick.h": {10, phases.StateSucceeded}, "never.h": {50, phases.StateTimedOut}, "middle.h": {60, phases.StateSucceeded},
		} {
			if run := runOf(t, out, id); run.DurationMS != want.ms || run.State != want.state {
				t.Errorf("%s: %s after %v ms, want %s after %v", id, run.State, run.DurationMS, want.state, want.ms)
			}
		}
	})
}

// TestInline: hooks of an inline plugin run on the dispatching goroutine, others do not; a panic of theirs is a failed
// run all the same.
func TestInline(t *testing.T) {
	t.Parallel()

	stack := func(name string) *sdk.Plugin {
		return plugin(name, sdk.Hook{
			Name: "h", Kinds: []phases.Kind{phases.KindPromptSection},
			PrePromptCompile: func(context.Context, *sdk.Call, *phases.PrePromptCompileInput) ([]phases.Contribution, error) {
				return sdk.Reply(&phases.PromptSection{SectionID: name, Content: string(debug.Stack())})
			},
		})
	}
	h := newHosted(stack("here"), stack("there"), plugin("panics", sdk.Hook{
		Name: "h", Kinds: []phases.Kind{phases.KindPromptSection},
		PrePromptCompile: func(context.Context, *sdk.Call, *phases.PrePromptCompileInput) ([]phases.Contribution, error) {
			panic("oh")
		},
	}))
	h.opts.Inline = []string{"here", "panics"}
	out := dispatch(t, h.start(t), &phases.PrePromptCompileInput{})
	for id, want := range map[string]bool{"here": true, "there": false} {
		if got := strings.Contains(contentOf(out, id), "(*Engine).Dispatch("); got != want {
			t.Errorf("%s runs on the caller's goroutine: %v", id, got)
		}
	}
	if run := runOf(t, out, "panics.h"); run.State != phases.StateFailed || run.PluginCode != phases.PluginCodePanic {
		t.Errorf("the panic: %+v", run)
	}
}
