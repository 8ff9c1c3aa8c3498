package adk_test

import (
	"context"
	"fmt"
	"strings"

	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/agent/llmagent"
	"google.golang.org/adk/v2/model"
	"google.golang.org/adk/v2/plugin"
	"google.golang.org/adk/v2/runner"
	"google.golang.org/adk/v2/session"
	"google.golang.org/genai"

	grapnel "github.com/grapnelhq/grapnel/adapters/adk"
	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
	"github.com/grapnelhq/grapnel/sdk"
)

// greeter is a plugin that says how to talk.
func greeter() *sdk.Plugin {
	return &sdk.Plugin{Name: "greeter", Version: "1.0.0", Hooks: []sdk.Hook{{
		Name: "greet", Kinds: []phases.Kind{phases.KindPromptSection},
		PrePromptCompile: func(context.Context, *sdk.Call, *phases.PrePromptCompileInput) ([]phases.Contribution, error) {
			return sdk.Reply(&phases.PromptSection{SectionID: "greeting", Title: "Greeting", Content: "Greet the user by name."})
		},
	}}}
}

// The agent's own instruction and what plugins bring are sections of one prompt.
func Example() {
	ctx := context.Background()
	cfg := &config.Config{Version: 1, Plugins: []config.Plugin{{Name: "greeter", Grants: phases.Grants{Contribute: []string{"prompt_section"}, Sections: []string{"greeting"}}}}}
	eng, err := runtime.New(ctx, cfg, runtime.Options{InProcess: map[string]runtime.Plugin{"greeter": greeter()}})
	check(err)
	defer func() { check(eng.Close(ctx)) }()

	parrot := speaks(func(_ context.Context, rq *model.LLMRequest, yield func(*model.LLMResponse, error) bool) {
		yield(text(rq.Config.SystemInstruction.Parts[0].Text), nil) // the model repeats its instruction
	})
	root, err := llmagent.New(llmagent.Config{Name: "root", Model: parrot, Instruction: "You help with files."})
	check(err)
	guard, err := grapnel.New(grapnel.Options{Engine: eng, Where: func(ctx agent.InvocationContext) phases.Context {
		return phases.Context{WorkspaceID: "acme", ThreadID: ctx.Session().ID(), Mode: phases.ModeAgent}
	}})
	check(err)
	r, err := runner.New(runner.Config{
		AppName: "app", Agent: root, SessionService: session.InMemoryService(), AutoCreateSession: true,
		PluginConfig: runner.PluginConfig{Plugins: []*plugin.Plugin{guard}}, // first in the list
	})
	check(err)
	for event, err := range r.Run(ctx, "ada", "1", genai.NewContentFromText("Hello!", genai.RoleUser), agent.RunConfig{}) {
		check(err)
		for line := range strings.SplitSeq(event.Content.Parts[0].Text, "\n") {
			if strings.HasPrefix(line, "## ") || strings.Contains(line, "You help") || strings.Contains(line, "Greet") {
				fmt.Println(line)
			}
		}
	}
	// Output:
	// ## Identity
	// ## Safety
	// ## Instructions
	// You help with files.
	// ## Greeting
	// Greet the user by name.
	// ## Extra System
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
