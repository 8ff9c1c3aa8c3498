package plugintest_test

import (
	"context"
	"fmt"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/sdk"
	"github.com/grapnelhq/grapnel/sdk/plugintest"
)

// printing is a test that prints its reports; yours is a *testing.T.
type printing struct{}

func (printing) Helper()                  {}
func (printing) Context() context.Context { return context.Background() }
func (printing) Errorf(format string, args ...any) {
	fmt.Printf(format+"\n", args...)
}

func ExampleRun() {
	plugin := &sdk.Plugin{
		Name:    "weather",
		Version: "1.0.0",
		Hooks: []sdk.Hook{{
			Name:  "today",
			Kinds: []phases.Kind{phases.KindPromptContext},
			PrePromptContext: func(ctx context.Context, call *sdk.Call, _ *phases.PrePromptContextInput) ([]phases.Contribution, error) {
				sky, err := call.Host.Call(ctx, "weather", "today", nil)
				if err != nil {
					return nil, err
				}
				return sdk.Reply(&phases.PromptContext{Content: "The sky over " + call.Context.WorkspaceID + " is " + string(sky) + "."})
			},
		}},
	}

	answer := plugintest.Run(printing{}, plugin, plugintest.Case{
		Hook:    "today",
		Context: phases.Context{WorkspaceID: "the garden"},
		Host:    &plugintest.Host{Services: map[string]plugintest.Service{"weather/today": plugintest.Reply(`"grey"`)}},
	})
	context, _ := answer.Contributions[0].(*phases.PromptContext)
	fmt.Println(context.Content)

	// A host that does not grant the service: the kit reports the error.
	plugintest.Run(printing{}, plugin, plugintest.Case{Hook: "today"})
	// Output:
	// The sky over the garden is "grey".
	// the plugin fails with the code "forbidden" (the service weather/today is not in the test's script), want ""
}
