package adk_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/agent/llmagent"
	"google.golang.org/adk/v2/model"
	"google.golang.org/adk/v2/plugin"
	"google.golang.org/adk/v2/runner"
	"google.golang.org/adk/v2/session"
	"google.golang.org/adk/v2/tool/functiontool"
	"google.golang.org/genai"

	grapnel "github.com/grapnelhq/grapnel/adapters/adk"
	"github.com/grapnelhq/grapnel/internal/tests/looptest"
	"github.com/grapnelhq/grapnel/loop"
	"github.com/grapnelhq/grapnel/phases"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestTurns(t *testing.T) {
	t.Parallel()
	looptest.Test(t, run, false)
}

// run runs a turn as an invocation of one agent.
func run(ctx context.Context, turn *looptest.Turn) (string, error) {
	root, err := newAgent(turn) //nolint:contextcheck // a tool has ADK's
	if err != nil {
		return "", err
	}
	return invoke(ctx, turn, root)
}

func newAgent(turn *looptest.Turn) (agent.Agent, error) {
	c := llmagent.Config{Name: "root", Description: "An agent.", Model: &llm{turn: turn}, Instruction: turn.Instructions}
	for _, own := range turn.Tools {
		known, err := functiontool.New(functiontool.Config{Name: own.Name, Description: own.Description},
			func(ctx agent.Context, args map[string]any) (map[string]any, error) {
				arguments, err := json.Marshal(args)
				if err != nil {
					return nil, err
				}
				text, err := own.Call(ctx, arguments)
				return map[string]any{"result": text}, err
			})
		if err != nil {
			return nil, err
		}
		c.Tools = append(c.Tools, known)
	}
	return llmagent.New(c)
}

func invoke(ctx context.Context, turn *looptest.Turn, root agent.Agent) (answer string, err error) {
	p, err := grapnel.New(grapnel.Options{Engine: turn.Engine, Where: func(ctx agent.InvocationContext) phases.Context { return turn.Where(ctx) }, Loop: turn.Loop}) //nolint:contextcheck // it has ADK's
	if err != nil {
		return "", err
	}
	sessions := session.InMemoryService()
	r, err := runner.New(runner.Config{AppName: "app", Agent: root, SessionService: sessions, AutoCreateSession: true, PluginConfig: runner.PluginConfig{Plugins: []*plugin.Plugin{p}}})
	if err != nil {
		return "", err
	}
	cfg := agent.RunConfig{}
	if turn.Streamed != nil {
		cfg.StreamingMode = agent.StreamingModeSSE
	}
	for event, failed := range r.Run(ctx, "ada", "s", genai.NewContentFromText(turn.Message, genai.RoleUser), cfg) {
		if failed != nil {
			return "", failed
		}
		var text strings.Builder
		if event.Content != nil && event.Content.Role == genai.RoleModel {
			for _, part := range event.Content.Parts {
				text.WriteString(part.Text)
			}
		}
		if event.Partial && turn.Streamed != nil {
			turn.Streamed(text.String())
		} else if text.Len() > 0 {
			answer = text.String()
		}
	}
	return answer, nil
}

// llm answers as the turn's model does, in ADK's terms.
type llm struct{ turn *looptest.Turn }

func (*llm) Name() string { return "pretends" }

func (m *llm) GenerateContent(ctx context.Context, rq *model.LLMRequest, stream bool) iter.Seq2[*model.LLMResponse, error] {
	return func(yield func(*model.LLMResponse, error) bool) {
		reply, err := m.turn.Model(ctx, requestOf(rq))
		if err != nil {
			yield(nil, err)
			return
		}
		content := &genai.Content{Role: genai.RoleModel}
		for _, c := range reply.Calls {
			var args map[string]any
			if err := json.Unmarshal(c.Arguments, &args); err != nil {
				yield(nil, err)
				return
			}
			content.Parts = append(content.Parts, &genai.Part{FunctionCall: &genai.FunctionCall{ID: c.ID, Name: c.Tool, Args: args}})
		}
		for piece := range strings.SplitAfterSeq(reply.Text, " ") {
			if stream && piece != "" && !yield(&model.LLMResponse{Content: genai.NewContentFromText(piece, genai.RoleModel), Partial: true}, nil) {
				return
			}
		}
		if reply.Text != "" {
			content.Parts = append(content.Parts, genai.NewPartFromText(reply.Text))
		}
		u := reply.Usage
		yield(&model.LLMResponse{Content: content, TurnComplete: true, UsageMetadata: &genai.GenerateContentResponseUsageMetadata{
			PromptTokenCount: int32(u.InputTokens), CandidatesTokenCount: int32(u.OutputTokens), CachedContentTokenCount: int32(u.CacheReadTokens),
		}}, nil)
	}
}

func requestOf(rq *model.LLMRequest) looptest.Request {
	var out looptest.Request
	for _, part := range rq.Config.SystemInstruction.Parts {
		out.System += part.Text
	}
	for _, c := range rq.Contents {
		text := c.Role + ":"
		for _, part := range c.Parts {
			switch {
			case part.FunctionCall != nil:
				text += " calls " + part.FunctionCall.Name
			case part.FunctionResponse != nil:
				text += fmt.Sprintf(" %v", part.FunctionResponse.Response)
			default:
				text += " " + part.Text
			}
		}
		out.Messages = append(out.Messages, text)
	}
	for _, t := range rq.Config.Tools {
		for _, d := range t.FunctionDeclarations {
			out.Tools = append(out.Tools, d.Name)
		}
	}
	return out
}

// TestAgents: an agent that another one hands the conversation to is in the same turn.
func TestAgents(t *testing.T) {
	t.Parallel()

	s := looptest.Start(t)
	writer := speaks(func(_ context.Context, rq *model.LLMRequest, yield func(*model.LLMResponse, error) bool) {
		if !strings.Contains(requestOf(rq).System, "Be brief.") {
			t.Error("the writer has no prompt")
		}
		yield(used(text("roses"), 10), nil)
	})
	root := made[agent.Agent](t)(llmagent.New(llmagent.Config{
		Name: "root", Model: says(asks(map[string]any{"agent_name": "writer"}, "transfer_to_agent 1")), SubAgents: []agent.Agent{speaker(t, "writer", writer)},
	}))
	p := play(t, t.Context(), s, newRunner(t, s.Engine, root, loop.Options{}))
	if p.err != nil || p.end.Status != phases.TurnSucceeded || p.end.AssistantText.Text != "roses" {
		t.Errorf("%v, the end: %+v", p.err, p.end)
	}
	var agents []string
	for _, m := range s.Prompts() {
		agents = append(agents, m.AgentID)
	}
	if fmt.Sprint(agents) != "[root writer]" {
		t.Errorf("the prompts are of the agents %q", agents)
	}
}

// TestStoppedByItsReader: who reads no more events ends the run, and with it the turn.
func TestStoppedByItsReader(t *testing.T) {
	t.Parallel()

	s := looptest.Start(t)
	r := newRunner(t, s.Engine, speaker(t, "root", says(asks(nil, "list 1")), repeats(t, "list")), loop.Options{})
	for _, err := range r.Run(t.Context(), "ada", "s", genai.NewContentFromText("hello", genai.RoleUser), agent.RunConfig{}) {
		if err != nil {
			t.Error(err)
		}
		break
	}
	if err := s.WaitBackground(t.Context()); err != nil || len(s.Ended) != 1 {
		t.Fatalf("%d turns have ended, %v", len(s.Ended), err)
	}
	if end := <-s.Ended; end.Status != phases.TurnInterrupted {
		t.Errorf("status %s", end.Status)
	}
}
