package genkit_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/firebase/genkit/go/ai"
	"github.com/firebase/genkit/go/genkit"
	"go.uber.org/goleak"

	grapnel "github.com/grapnelhq/grapnel/adapters/genkit"
	"github.com/grapnelhq/grapnel/internal/tests/looptest"
	"github.com/grapnelhq/grapnel/loop"
	"github.com/grapnelhq/grapnel/phases"
)

// TestMain fails the package when a goroutine is left behind, but for that of each genkit.Init, which waits for a signal.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("os/signal.NotifyContext.func1"), goleak.IgnoreTopFunction("os/signal.loop"))
}

func TestTurns(t *testing.T) {
	t.Parallel()
	looptest.Test(t, generate, true)
}

// generate runs a turn as a Generate.
func generate(ctx context.Context, turn *looptest.Turn) (string, error) {
	g, options := host(ctx, turn)
	options = append(options, ai.WithUse(grapnel.New(grapnel.Options{Engine: turn.Engine, Where: turn.Where, Loop: turn.Loop})))
	resp, err := genkit.Generate(ctx, g, options...)
	if err != nil {
		return "", err
	}
	return resp.Text(), nil
}

// host is Genkit with the turn's model and tools, and more tools of the test's.
func host(ctx context.Context, turn *looptest.Turn, more ...func(g *genkit.Genkit) ai.ToolRef) (*genkit.Genkit, []ai.GenerateOption) {
	g := genkit.Init(context.WithoutCancel(ctx))
	var tools []ai.ToolRef
	for _, define := range more {
		tools = append(tools, define(g))
	}
	model := genkit.DefineModel(g, "test/pretends", &ai.ModelOptions{Supports: &ai.ModelSupports{Tools: true, SystemRole: true, Multiturn: true}}, model(turn))
	options := []ai.GenerateOption{ai.WithModel(model), ai.WithSystem(turn.Instructions), ai.WithPrompt(turn.Message)}
	if turn.Streamed != nil {
		options = append(options, ai.WithStreaming(func(_ context.Context, c *ai.ModelResponseChunk) error {
			if c.Role == ai.RoleModel {
				turn.Streamed(c.Text())
			}
			return nil
		}))
	}
	for _, own := range turn.Tools {
		tool := genkit.DefineTool(g, own.Name, own.Description, func(ctx *ai.ToolContext, input any) (string, error) { //nolint:contextcheck // its own context is passed on
			arguments, err := json.Marshal(input)
			if err != nil {
				return "", err
			}
			return own.Call(ctx, arguments)
		})
		tools = append(tools, tool)
	}
	return g, append(options, ai.WithTools(tools...))
}

// model answers as the turn's model does, in Genkit's terms.
func model(turn *looptest.Turn) ai.ModelFunc {
	return func(ctx context.Context, r *ai.ModelRequest, stream ai.ModelStreamCallback) (*ai.ModelResponse, error) {
		reply, err := turn.Model(ctx, requestOf(r))
		if err != nil {
			return nil, err
		}
		message := ai.NewMessage(ai.RoleModel, nil)
		for _, c := range reply.Calls {
			var input any
			if err := json.Unmarshal(c.Arguments, &input); err != nil {
				return nil, err
			}
			message.Content = append(message.Content, ai.NewToolRequestPart(&ai.ToolRequest{Ref: c.ID, Name: c.Tool, Input: input}))
		}
		if reply.Text != "" {
			message.Content = append(message.Content, ai.NewTextPart(reply.Text))
		}
		for piece := range strings.SplitAfterSeq(reply.Text, " ") {
			if stream != nil && piece != "" {
				if err := stream(ctx, &ai.ModelResponseChunk{Content: []*ai.Part{ai.NewTextPart(piece)}}); err != nil {
					return nil, err
				}
			}
		}
		u := &ai.GenerationUsage{InputTokens: reply.Usage.InputTokens, OutputTokens: reply.Usage.OutputTokens, CachedContentTokens: reply.Usage.CacheReadTokens}
		return &ai.ModelResponse{Request: r, Message: message, Usage: u, FinishReason: ai.FinishReasonStop}, nil
	}
}

func requestOf(r *ai.ModelRequest) looptest.Request {
	var out looptest.Request
	for _, m := range r.Messages {
		text := m.Text()
		for _, p := range m.Content {
			switch {
			case p.IsToolRequest():
				text += " calls " + p.ToolRequest.Name
			case p.IsToolResponse():
				text += fmt.Sprintf(" %v", p.ToolResponse.Output)
			}
		}
		if m.Role == ai.RoleSystem {
			out.System += text
		} else {
			out.Messages = append(out.Messages, string(m.Role)+": "+text)
		}
	}
	for _, d := range r.Tools {
		out.Tools = append(out.Tools, d.Name)
	}
	return out
}

// TestInterrupt: a tool that wants a person reaches Genkit's caller, and the turn is not left open.
func TestInterrupt(t *testing.T) {
	t.Parallel()

	s := looptest.Start(t)
	turn := script(s.Engine, calling("approve", `{}`))
	g, options := host(t.Context(), turn.Turn, func(g *genkit.Genkit) ai.ToolRef {
		return genkit.DefineTool(g, "approve", "Asks.", func(ctx *ai.ToolContext, _ any) (string, error) {
			return "", ctx.Interrupt(&ai.InterruptOptions{Metadata: map[string]any{"why": "money"}})
		})
	})
	options = append(options, ai.WithUse(grapnel.New(grapnel.Options{Engine: s.Engine, Where: turn.Where})))
	resp, err := genkit.Generate(t.Context(), g, options...)
	if err != nil || len(resp.Interrupts()) != 1 {
		t.Fatalf("response %+v, %v", resp, err)
	}
	if end := ended(t, s); end.Status != phases.TurnInterrupted {
		t.Errorf("status %s", end.Status)
	}
}

// TestStructuredOutput: an object stays one, and a hook's rewrite of it reaches the model.
func TestStructuredOutput(t *testing.T) {
	t.Parallel()

	s := looptest.Start(t)
	var outputs []any
	turn := script(s.Engine, looptest.Reply{Calls: []loop.Call{{ID: "c1", Tool: "stat", Arguments: json.RawMessage(`{}`)}, {ID: "c2", Tool: "secret", Arguments: json.RawMessage(`{}`)}}}, saying("done"))
	turn.Tools = nil
	type size struct{ Bytes int }
	object := func(name string) func(g *genkit.Genkit) ai.ToolRef {
		return func(g *genkit.Genkit) ai.ToolRef {
			return genkit.DefineTool(g, name, "Gives an object.", func(*ai.ToolContext, any) (size, error) { return size{42}, nil })
		}
	}
	g, options := host(t.Context(), turn.Turn, object("stat"), object("secret"))
	look := ai.MiddlewareFunc(func(context.Context) (*ai.Hooks, error) {
		return &ai.Hooks{WrapModel: func(ctx context.Context, p *ai.ModelParams, next ai.ModelNext) (*ai.ModelResponse, error) {
			for _, m := range p.Request.Messages {
				for _, part := range m.Content {
					if part.IsToolResponse() {
						outputs = append(outputs, part.ToolResponse.Output)
					}
				}
			}
			return next(ctx, p)
		}}, nil
	})
	options = append(options, ai.WithUse(grapnel.New(grapnel.Options{Engine: s.Engine, Where: turn.Where}), look))
	if _, err := genkit.Generate(t.Context(), g, options...); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(outputs...); got != fmt.Sprint(map[string]any{"Bytes": 42}, "[removed]") {
		t.Errorf("outputs %s", got)
	}
}
