// Example runs one turn of the Agent Development Kit over Grapnel's AGENTS.md plugin and a guard, with a model that only pretends:
//
//	go run ./example
package main

import (
	"context"
	"fmt"
	"iter"
	"os"

	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/agent/llmagent"
	"google.golang.org/adk/v2/model"
	"google.golang.org/adk/v2/plugin"
	"google.golang.org/adk/v2/runner"
	"google.golang.org/adk/v2/session"
	"google.golang.org/adk/v2/tool"
	"google.golang.org/adk/v2/tool/functiontool"
	"google.golang.org/genai"

	grapnel "github.com/grapnelhq/grapnel/adapters/adk"
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

	shell, err := functiontool.New(functiontool.Config{Name: "shell", Description: "Runs a command."},
		func(agent.Context, struct{ Command string }) (string, error) { return "never", nil })
	check(err)
	root, err := llmagent.New(llmagent.Config{Name: "root", Model: pretends{}, Tools: []tool.Tool{shell}})
	check(err)
	guard, err := grapnel.New(grapnel.Options{Engine: eng, Where: func(agent.InvocationContext) phases.Context {
		return phases.Context{WorkspaceID: "example", ThreadID: "1", TurnID: "1", Mode: phases.ModeAgent, Dir: dir}
	}})
	check(err)
	r, err := runner.New(runner.Config{
		AppName: "example", Agent: root, SessionService: session.InMemoryService(), AutoCreateSession: true,
		PluginConfig: runner.PluginConfig{Plugins: []*plugin.Plugin{guard}}, // first in the list
	})
	check(err)
	for event, err := range r.Run(ctx, "ada", "1", genai.NewContentFromText("List the files.", genai.RoleUser), agent.RunConfig{}) {
		check(err)
		if event.Content != nil && event.Content.Parts[0].Text != "" {
			fmt.Println("model:", event.Content.Parts[0].Text)
		}
	}
}

// pretends calls the shell, and tells what came of it.
type pretends struct{}

func (pretends) Name() string { return "pretends" }

func (pretends) GenerateContent(_ context.Context, rq *model.LLMRequest, _ bool) iter.Seq2[*model.LLMResponse, error] {
	reply := &genai.Part{FunctionCall: &genai.FunctionCall{ID: "call-1", Name: "shell", Args: map[string]any{"Command": "ls"}}}
	for _, c := range rq.Contents {
		if r := c.Parts[0].FunctionResponse; r != nil {
			reply = genai.NewPartFromText(fmt.Sprint("I was told: ", r.Response["error"]))
		}
	}
	return func(yield func(*model.LLMResponse, error) bool) {
		yield(&model.LLMResponse{
			Content:       &genai.Content{Role: genai.RoleModel, Parts: []*genai.Part{reply}},
			UsageMetadata: &genai.GenerateContentResponseUsageMetadata{PromptTokenCount: 300, CandidatesTokenCount: 10},
		}, nil)
	}
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
		fmt.Fprintln(os.Stderr, "example:", err)
		os.Exit(1)
	}
}
