package runtime_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
	"github.com/grapnelhq/grapnel/sdk"
)

// A host that shows its operator who is in trouble.
func ExampleEngine_Overview() {
	ctx := context.Background()
	plugin := &sdk.Plugin{Name: "house", Version: "1.0.0", Hooks: []sdk.Hook{{
		Name: "rules", Kinds: []phases.Kind{phases.KindPromptSection},
		PrePromptCompile: func(context.Context, *sdk.Call, *phases.PrePromptCompileInput) ([]phases.Contribution, error) {
			return nil, errors.New("not today")
		},
	}}}
	cfg := &config.Config{Version: 1, Plugins: []config.Plugin{{Name: "house", Grants: phases.Grants{Contribute: []string{"prompt_section"}}}}}
	eng, err := runtime.New(ctx, cfg, runtime.Options{InProcess: map[string]runtime.Plugin{"house": plugin}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer eng.Close(ctx) //nolint:errcheck // nothing hangs
	for range 3 {
		if _, err := eng.Dispatch(ctx, phases.Context{}, &phases.PrePromptCompileInput{}); err != nil {
			fmt.Println(err)
		}
	}
	for _, hook := range eng.Overview().Hooks {
		fmt.Println(hook.Subscription, "failed", hook.Failed, "of", hook.Runs, "times:", hook.LastError.Code)
	}
	// Output: house.rules failed 3 of 3 times: plugin_error
}
