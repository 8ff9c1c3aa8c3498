// Example runs one turn of eino over Grapnel's AGENTS.md plugin and a guard, with a model that only pretends:
//
//	go run ./example
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/cloudwego/eino/adk"
	"github.com/cloudwego/eino/components/model"
	"github.com/cloudwego/eino/components/tool"
	"github.com/cloudwego/eino/compose"
	"github.com/cloudwego/eino/schema"

	grapnel "github.com/grapnelhq/grapnel/adapters/eino"
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

	guard := grapnel.New(grapnel.Options{Engine: eng, Where: func(context.Context) phases.Context {
		return phases.Context{WorkspaceID: "example", ThreadID: "1", TurnID: "1", Mode: phases.ModeAgent, Dir: dir}
	}})
	root, err := adk.NewChatModelAgent(ctx, &adk.ChatModelAgentConfig{
		Name: "root", Description: "An agent.", Model: pretends{},
		ToolsConfig: adk.ToolsConfig{ToolsNodeConfig: compose.ToolsNodeConfig{Tools: []tool.BaseTool{shell{}}}},
		Handlers:    []adk.ChatModelAgentMiddleware{guard.For("root")},
	})
	check(err)
	events := adk.NewRunner(ctx, adk.RunnerConfig{Agent: guard.Wrap(root)}).Query(ctx, "List the files.")
	for e, ok := events.Next(); ok; e, ok = events.Next() {
		check(e.Err)
		if out := e.Output.MessageOutput; out.Role == schema.Assistant && out.Message.Content != "" {
			fmt.Println("model:", out.Message.Content)
		}
	}
}

type shell struct{}

func (shell) Info(context.Context) (*schema.ToolInfo, error) {
	return &schema.ToolInfo{Name: "shell", Desc: "Runs a command."}, nil
}

func (shell) InvokableRun(context.Context, string, ...tool.Option) (string, error) {
	return "never", nil
}

// pretends calls the shell, and tells what came of it.
type pretends struct{}

func (p pretends) WithTools([]*schema.ToolInfo) (model.ToolCallingChatModel, error) { return p, nil }

func (pretends) Generate(_ context.Context, talk []*schema.Message, _ ...model.Option) (*schema.Message, error) {
	reply := schema.AssistantMessage("", []schema.ToolCall{{ID: "call-1", Type: "function", Function: schema.FunctionCall{Name: "shell", Arguments: `{"command":"ls"}`}}})
	for _, m := range talk {
		if m.Role == schema.Tool {
			reply = schema.AssistantMessage("I was told: "+m.Content, nil)
		}
	}
	reply.ResponseMeta = &schema.ResponseMeta{Usage: &schema.TokenUsage{PromptTokens: 300, CompletionTokens: 10}}
	return reply, nil
}

func (p pretends) Stream(ctx context.Context, talk []*schema.Message, o ...model.Option) (*schema.StreamReader[*schema.Message], error) {
	m, err := p.Generate(ctx, talk, o...)
	return schema.StreamReaderFromArray([]*schema.Message{m}), err
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
