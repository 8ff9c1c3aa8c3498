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

// house is a plugin with a text for the prompt and a guard for tools.
func house() *sdk.Plugin {
	return &sdk.Plugin{
		Name: "house", Version: "1.0.0",
		Hooks: []sdk.Hook{
			section("rules", "house_rules", "Be brief."),
			{
				Name: "guard", Kinds: []phases.Kind{phases.KindDecision}, Role: phases.RoleValidate, When: `tool.name == "shell"`,
				ToolPreCall: func(context.Context, *sdk.Call, *phases.ToolPreCallInput) ([]phases.Contribution, error) {
					return sdk.Reply(&phases.Decision{Verdict: phases.VerdictDeny, Reason: "no shell here"})
				},
			},
		},
	}
}

// engine runs it inside the host, with what the operator grants.
func engine(ctx context.Context) (*runtime.Engine, error) {
	cfg := &config.Config{Version: 1, Plugins: []config.Plugin{{
		Name: "house", Grants: phases.Grants{Contribute: []string{"prompt_section", "decision"}, Sections: []string{"house_rules"}},
	}}}
	return runtime.New(ctx, cfg, runtime.Options{InProcess: map[string]runtime.Plugin{"house": house()}})
}

// A host that only wants the prompt makes one call a turn.
func ExampleEngine_CompileTurn() {
	ctx := context.Background()
	eng, err := engine(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	done, err := eng.CompileTurn(ctx, phases.Context{ThreadID: "t", TurnID: "1"}, runtime.CompileInput{UserText: "hello"})
	if err := errors.Join(err, eng.Close(ctx)); err != nil {
		fmt.Println(err)
		return
	}
	for _, s := range done.Manifest.Sections {
		if s.Owner != "builtin" {
			fmt.Println(s.SectionID, "of", s.Owner)
		}
	}
	for _, run := range done.Manifest.Runs {
		fmt.Println(run.Subscription, run.State)
	}
	// Output:
	// house_rules of house
	// house.rules succeeded
}

// A host with a loop of its own asks before it runs a tool.
func ExampleTurn_Dispatch() {
	ctx := context.Background()
	eng, err := engine(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = eng.Close(ctx) }()
	turn, err := eng.BeginTurn(ctx, phases.Context{ThreadID: "t", TurnID: "1"})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, tool := range []string{"search", "shell"} {
		out, err := turn.Dispatch(ctx, &phases.ToolPreCallInput{Tool: tool})
		switch {
		case err != nil: // the phase failed closed
			fmt.Println(tool, err)
		case out.Decision != nil:
			fmt.Println(tool, out.Decision.Verdict, out.Decision.Reasons[0].Reason)
		default:
			fmt.Println(tool, "runs")
		}
	}
	_, err = turn.End(ctx, &phases.PostTurnInput{Status: phases.TurnSucceeded})
	fmt.Println(err)
	// Output:
	// search runs
	// shell deny no shell here
	// <nil>
}
