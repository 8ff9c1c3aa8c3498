package genkit_test

import (
	"context"
	"fmt"

	"github.com/firebase/genkit/go/ai"
	"github.com/firebase/genkit/go/genkit"

	grapnel "github.com/grapnelhq/grapnel/adapters/genkit"
	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
	"github.com/grapnelhq/grapnel/sdk"
)

// A plugin in the host process denies a tool call, and the (fake) model receives the denial.
func Example() {
	ctx := context.Background()
	guard := &sdk.Plugin{Name: "house", Version: "1.0.0", Hooks: []sdk.Hook{{
		Name: "guard", Kinds: []phases.Kind{phases.KindDecision},
		ToolPreCall: func(_ context.Context, _ *sdk.Call, in *phases.ToolPreCallInput) ([]phases.Contribution, error) {
			return sdk.Reply(&phases.Decision{Verdict: phases.VerdictDeny, Reason: "no " + in.Tool + " here"})
		},
	}}}
	cfg := &config.Config{Version: 1, Plugins: []config.Plugin{{Name: "house", Grants: phases.Grants{Contribute: []string{"decision"}}}}}
	eng, err := runtime.New(ctx, cfg, runtime.Options{InProcess: map[string]runtime.Plugin{"house": guard}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer eng.Close(ctx) //nolint:errcheck // the example ends

	g := genkit.Init(ctx)
	model := genkit.DefineModel(g, "house/pretends", &ai.ModelOptions{Supports: &ai.ModelSupports{Tools: true, SystemRole: true, Multiturn: true}}, pretend)
	shell := genkit.DefineTool(g, "shell", "Runs a command.", func(*ai.ToolContext, struct{ Command string }) (string, error) { return "never", nil })
	where := func(context.Context) phases.Context {
		return phases.Context{WorkspaceID: "acme", ThreadID: "t", TurnID: "1", Mode: phases.ModeAgent}
	}
	resp, err := genkit.Generate(ctx, g, ai.WithModel(model), ai.WithSystem("You help with files."), ai.WithPrompt("List the files."), ai.WithTools(shell),
		ai.WithUse(grapnel.New(grapnel.Options{Engine: eng, Where: where})))
	fmt.Println(resp.Text(), err)

	// Output:
	// I was told: the call of the tool "shell" was refused by house.guard: no shell here <nil>
}

// pretend calls the shell, and tells what came of it.
func pretend(_ context.Context, r *ai.ModelRequest, _ ai.ModelStreamCallback) (*ai.ModelResponse, error) {
	reply := ai.NewToolRequestPart(&ai.ToolRequest{Ref: "c1", Name: "shell", Input: map[string]any{"Command": "ls"}})
	for _, m := range r.Messages {
		if m.Role == ai.RoleTool {
			reply = ai.NewTextPart(fmt.Sprint("I was told: ", m.Content[0].ToolResponse.Output))
		}
	}
	return &ai.ModelResponse{Request: r, Message: ai.NewModelMessage(reply), Usage: &ai.GenerationUsage{InputTokens: 300, OutputTokens: 10}}, nil
}
