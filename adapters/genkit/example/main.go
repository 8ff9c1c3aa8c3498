// Example runs one turn of Genkit over Grapnel's AGENTS.md plugin and a guard, with a model that only pretends:
//
//	go run ./example
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/firebase/genkit/go/ai"
	"github.com/firebase/genkit/go/genkit"

	grapnel "github.com/grapnelhq/grapnel/adapters/genkit"
	"github.com/grapnelhq/grapnel/builtin"
	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/plugins/agentsdoc"
	"github.com/grapnelhq/grapnel/plugins/scripted"
	"github.com/grapnelhq/grapnel/runtime"
)

const configuration = `
version: 1
plugins:
  - name: agentsdoc
    builtin: agentsdoc
    grants: {contribute: [prompt_section, reminder], sections: [agents_md], read: ['*']}
  - name: house
    builtin: scripted
    grants: {contribute: [decision]}
    config:
      hooks:
        - {id: guard, phase: tool.pre_call, role: validate, when: 'tool.name == "shell"', respond: [{kind: decision, verdict: deny, reason: no shell here}]}
`

func main() {
	plugins := builtin.Main(agentsdoc.New, scripted.New) // does not return in a plugin's process
	launches, err := plugins.Launches()
	check(err)
	cfg, err := config.Parse([]byte(configuration), "example")
	check(err)
	ctx := context.Background()
	eng, err := runtime.New(ctx, cfg, runtime.Options{Builtins: launches, Sink: shown{}})
	check(err)
	defer func() { check(eng.Close(ctx)) }()
	dir, err := os.Getwd()
	check(err)

	g := genkit.Init(ctx)
	shell := genkit.DefineTool(g, "shell", "Runs a command.", func(*ai.ToolContext, struct{ Command string }) (string, error) { return "never", nil })
	resp, err := genkit.Generate(ctx, g,
		ai.WithModel(genkit.DefineModel(g, "example/pretends", &ai.ModelOptions{Supports: &ai.ModelSupports{Tools: true, SystemRole: true, Multiturn: true}}, model)),
		ai.WithPrompt("List the files."), ai.WithTools(shell),
		ai.WithUse(grapnel.New(grapnel.Options{Engine: eng, Where: func(context.Context) phases.Context {
			return phases.Context{WorkspaceID: "example", ThreadID: "1", TurnID: "1", Mode: phases.ModeAgent, Dir: dir}
		}})))
	check(err)
	fmt.Println("model:", resp.Text())
}

// model pretends: it calls the shell, and tells what came of it.
func model(_ context.Context, r *ai.ModelRequest, _ ai.ModelStreamCallback) (*ai.ModelResponse, error) {
	reply := ai.NewToolRequestPart(&ai.ToolRequest{Ref: "call-1", Name: "shell", Input: map[string]any{"Command": "ls"}})
	for _, m := range r.Messages {
		if m.Role == ai.RoleTool {
			reply = ai.NewTextPart(fmt.Sprint("I was told: ", m.Content[0].ToolResponse.Output))
		}
	}
	return &ai.ModelResponse{Request: r, Message: ai.NewMessage(ai.RoleModel, nil, reply), Usage: &ai.GenerationUsage{InputTokens: 300, OutputTokens: 10}}, nil
}

// shown is a sink that prints each record instead of keeping it.
type shown struct{}

func (shown) Append(_ context.Context, m *manifest.Manifest, _ []manifest.Text) error {
	fmt.Printf("%s of turn %s, round %d\n", m.Kind, m.TurnID, m.Round)
	for _, s := range m.Sections {
		fmt.Printf("  section %-12s %5d characters from %s\n", s.SectionID, s.Chars, s.Owner)
	}
	for _, c := range m.Calls {
		fmt.Printf("  %s %s: %s\n", c.Phase, c.Tool, c.Verdict)
	}
	return manifest.Seal(m, nil, nil)
}

func (shown) Last(context.Context, string, string) (*manifest.Manifest, error) { return nil, nil } //nolint:nilnil // there is none

func (shown) Report(_ context.Context, u manifest.Usage) error {
	fmt.Printf("  used %d tokens\n", u.InputTokens+u.OutputTokens)
	return nil
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
