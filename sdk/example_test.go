package sdk_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/sdk"
)

// A plugin is one literal. A host calls what is below it.
func Example() {
	plugin := &sdk.Plugin{
		Name:    "greeter",
		Version: "1.0.0",
		Hooks: []sdk.Hook{{
			Name:  "greet",
			Kinds: []phases.Kind{phases.KindPromptSection},
			PrePromptCompile: func(_ context.Context, call *sdk.Call, in *phases.PrePromptCompileInput) ([]phases.Contribution, error) {
				text := fmt.Sprintf("Be kind in %s; %d tools are at hand.", call.Context.WorkspaceID, len(in.AvailableTools))
				return sdk.Reply(&phases.PromptSection{SectionID: "greeting", Title: "Greeting", Content: text})
			},
		}},
	}

	ctx := context.Background()
	description, err := plugin.Configure(ctx, &phases.Configuration{Instance: "greeter"})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(description.Hooks[0].Phase)

	result, err := plugin.Dispatch(ctx, &phases.Dispatch{
		Hook:    "greet",
		Context: phases.Context{WorkspaceID: "garden"},
		Input:   &phases.PrePromptCompileInput{AvailableTools: []string{"spade", "rake"}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	out, err := json.Marshal(result.Contributions)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(string(out))
	// Output:
	// turn.pre_prompt_compile
	// [{"kind":"prompt_section","section_id":"greeting","title":"Greeting","content":"Be kind in garden; 2 tools are at hand."}]
}

// Validate finds the mistakes of a literal before a host does.
func ExamplePlugin_Validate() {
	plugin := &sdk.Plugin{
		Name:    "guard",
		Version: "1.0.0",
		Hooks: []sdk.Hook{{
			Name:  "check",
			Phase: "tool.pre_cal",
			Any: func(context.Context, *sdk.Call, phases.Input) ([]phases.Contribution, error) {
				return sdk.Reply(&phases.Decision{Verdict: phases.VerdictAllow})
			},
		}},
	}
	fmt.Println(plugin.Validate())
	// Output:
	// plugin "guard": hooks[0] (check): unknown phase "tool.pre_cal" (did you mean "tool.pre_call"?)
}
