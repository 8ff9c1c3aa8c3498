package runtime_test

import (
	"context"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/sdk"
)

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
