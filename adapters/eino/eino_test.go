package eino_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/cloudwego/eino/adk"
	"github.com/cloudwego/eino/components/model"
	"github.com/cloudwego/eino/components/tool"
	"github.com/cloudwego/eino/schema"
	"go.uber.org/goleak"

	grapnel "github.com/grapnelhq/grapnel/adapters/eino"
	"github.com/grapnelhq/grapnel/internal/tests/looptest"
	"github.com/grapnelhq/grapnel/loop"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestTurns(t *testing.T) {
	t.Parallel()
	looptest.Test(t, run, false)
}

// TestStreamedTools runs the same turns with tools that stream, and with those that give parts.
func TestStreamedTools(t *testing.T) {
	t.Parallel()

	for name, kind := range map[string]func(own) tool.BaseTool{
		"streamed":       func(o own) tool.BaseTool { return streamed{o} },
		"parts":          func(o own) tool.BaseTool { return parts{o} },
		"streamed parts": func(o own) tool.BaseTool { return streamedParts{o} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			looptest.Test(t, func(ctx context.Context, turn *looptest.Turn) (string, error) { return runWith(ctx, turn, kind) }, false)
		})
	}
}

func run(ctx context.Context, turn *looptest.Turn) (string, error) {
	return runWith(ctx, turn, text)
}

func text(o own) tool.BaseTool { return invokable{o} }

func runWith(ctx context.Context, turn *looptest.Turn, kind func(own) tool.BaseTool) (string, error) {
	g := grapnel.New(grapnel.Options{Engine: turn.Engine, Where: turn.Where, Loop: turn.Loop})
	root, err := newAgent(ctx, g, "root", turn, kind)
	if err != nil {
		return "", err
	}
	return ask(ctx, g.Wrap(root), turn)
}

func newAgent(ctx context.Context, g *grapnel.Grapnel, name string, turn *looptest.Turn, kind func(own) tool.BaseTool, change ...func(*adk.ChatModelAgentConfig)) (adk.Agent, error) {
	c := &adk.ChatModelAgentConfig{
		Name: name, Description: "An agent.", Instruction: turn.Instructions, Model: pretends{turn},
		Handlers: []adk.ChatModelAgentMiddleware{g.For(name)},
	}
	for _, t := range turn.Tools {
		c.ToolsConfig.Tools = append(c.ToolsConfig.Tools, kind(own{t}))
	}
	for _, with := range change {
		with(c)
	}
	return adk.NewChatModelAgent(ctx, c)
}

// ask runs an agent.
func ask(ctx context.Context, root adk.Agent, turn *looptest.Turn) (answer string, err error) {
	return read(adk.NewRunner(ctx, adk.RunnerConfig{Agent: root, EnableStreaming: turn.Streamed != nil}).Query(ctx, turn.Message), turn.Streamed)
}

// read returns the last text of a run's models, or its first error. It gives away the pieces of streams.
func read(events *adk.AsyncIterator[*adk.AgentEvent], streamed func(string)) (answer string, err error) {
	for e, ok := events.Next(); ok; e, ok = events.Next() {
		if err == nil {
			err = e.Err
		}
		if e.Output == nil || e.Output.MessageOutput == nil || e.Output.MessageOutput.Role != schema.Assistant {
			continue
		}
		out := e.Output.MessageOutput
		if !out.IsStreaming {
			answer = out.Message.Content
			continue
		}
		var whole strings.Builder
		for piece, failed := out.MessageStream.Recv(); failed == nil; piece, failed = out.MessageStream.Recv() {
			streamed(piece.Content)
			whole.WriteString(piece.Content)
		}
		answer = whole.String()
	}
	if err != nil {
		answer = ""
	}
	return answer, err
}

// pretends answers as the turn's model does, in eino's terms.
type pretends struct{ turn *looptest.Turn }

func (p pretends) WithTools([]*schema.ToolInfo) (model.ToolCallingChatModel, error) { return p, nil }

func (p pretends) Generate(ctx context.Context, in []*schema.Message, o ...model.Option) (*schema.Message, error) {
	var r looptest.Request
	for _, m := range in {
		if m.Role == schema.System {
			r.System += m.Content
			continue
		}
		text := string(m.Role) + ": " + m.Content
		for _, part := range m.UserInputMultiContent {
			text += part.Text //nolint:perfsprint // there is one
		}
		r.Messages = append(r.Messages, text)
	}
	for _, info := range model.GetCommonOptions(nil, o...).Tools {
		r.Tools = append(r.Tools, info.Name)
	}
	reply, err := p.turn.Model(ctx, r)
	if err != nil {
		return nil, err
	}
	out := schema.AssistantMessage(reply.Text, nil)
	for _, c := range reply.Calls {
		out.ToolCalls = append(out.ToolCalls, schema.ToolCall{ID: c.ID, Type: "function", Function: schema.FunctionCall{Name: c.Tool, Arguments: string(c.Arguments)}})
	}
	u := reply.Usage
	out.ResponseMeta = &schema.ResponseMeta{Usage: &schema.TokenUsage{PromptTokens: u.InputTokens, CompletionTokens: u.OutputTokens, PromptTokenDetails: schema.PromptTokenDetails{CachedTokens: u.CacheReadTokens}}}
	return out, nil
}

func (p pretends) Stream(ctx context.Context, in []*schema.Message, o ...model.Option) (*schema.StreamReader[*schema.Message], error) {
	whole, err := p.Generate(ctx, in, o...)
	if err != nil {
		return nil, err
	}
	var pieces []*schema.Message
	for text := range strings.SplitAfterSeq(whole.Content, " ") {
		pieces = append(pieces, schema.AssistantMessage(text, nil))
	}
	pieces[len(pieces)-1].ToolCalls, pieces[len(pieces)-1].ResponseMeta = whole.ToolCalls, whole.ResponseMeta
	return schema.StreamReaderFromArray(pieces), nil
}

// own is a tool of the test's, in the four kinds that eino has.
type own struct{ loop.Tool }

func (o own) Info(context.Context) (*schema.ToolInfo, error) {
	return &schema.ToolInfo{Name: o.Name, Desc: o.Description, ParamsOneOf: schema.NewParamsOneOfByParams(nil)}, nil
}

type (
	invokable     struct{ own }
	streamed      struct{ own }
	parts         struct{ own }
	streamedParts struct{ own }
)

func (t invokable) InvokableRun(ctx context.Context, arguments string, _ ...tool.Option) (string, error) {
	return t.Call(ctx, json.RawMessage(arguments))
}

func (t streamed) StreamableRun(ctx context.Context, arguments string, _ ...tool.Option) (*schema.StreamReader[string], error) {
	text, err := t.Call(ctx, json.RawMessage(arguments))
	return schema.StreamReaderFromArray(strings.SplitAfter(text, " ")), err
}

func (t parts) InvokableRun(ctx context.Context, in *schema.ToolArgument, _ ...tool.Option) (*schema.ToolResult, error) {
	text, err := t.Call(ctx, json.RawMessage(in.Text))
	return &schema.ToolResult{Parts: []schema.ToolOutputPart{{Type: schema.ToolPartTypeText, Text: text}}}, err
}

func (t streamedParts) StreamableRun(ctx context.Context, in *schema.ToolArgument, _ ...tool.Option) (*schema.StreamReader[*schema.ToolResult], error) {
	text, err := t.Call(ctx, json.RawMessage(in.Text))
	var list []*schema.ToolResult
	for piece := range strings.SplitAfterSeq(text, " ") {
		list = append(list, &schema.ToolResult{Parts: []schema.ToolOutputPart{{Type: schema.ToolPartTypeText, Text: piece}}})
	}
	return schema.StreamReaderFromArray(list), err
}

// TestNotWrapped: an agent that only has the handler asks no model.
func TestNotWrapped(t *testing.T) {
	t.Parallel()

	s := looptest.Start(t)
	turn := &looptest.Turn{Message: "hello", Model: func(context.Context, looptest.Request) (looptest.Reply, error) {
		t.Error("the model was asked")
		return looptest.Reply{Text: "never"}, nil
	}}
	g := grapnel.New(grapnel.Options{Engine: s.Engine})
	root, err := newAgent(t.Context(), g, "root", turn, text)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ask(t.Context(), root, turn); err == nil || !strings.Contains(err.Error(), "Grapnel.Wrap") {
		t.Errorf("error %v", err)
	}
}
