package adk_test

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"strings"
	"sync"
	"testing"

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
	"github.com/grapnelhq/grapnel/internal/tests/looptest"
	"github.com/grapnelhq/grapnel/loop"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

// speaks is a model that is a function.
type speaks func(ctx context.Context, rq *model.LLMRequest, yield func(*model.LLMResponse, error) bool)

func (speaks) Name() string { return "speaks" }

func (m speaks) GenerateContent(ctx context.Context, rq *model.LLMRequest, _ bool) iter.Seq2[*model.LLMResponse, error] {
	return func(yield func(*model.LLMResponse, error) bool) { m(ctx, rq, yield) }
}

// says is a model that answers in turn, and repeats the last answer.
func says(replies ...*model.LLMResponse) speaks {
	var mu sync.Mutex
	next := 0
	return func(_ context.Context, _ *model.LLMRequest, yield func(*model.LLMResponse, error) bool) {
		mu.Lock()
		reply := *replies[min(next, len(replies)-1)]
		next++
		mu.Unlock()
		yield(&reply, nil)
	}
}

func text(s string) *model.LLMResponse {
	return &model.LLMResponse{Content: genai.NewContentFromText(s, genai.RoleModel)}
}

// asks is a model's call of tools, each "NAME ID", with the arguments.
func asks(args map[string]any, tools ...string) *model.LLMResponse {
	c := &genai.Content{Role: genai.RoleModel}
	for _, t := range tools {
		name, id, _ := strings.Cut(t, " ")
		c.Parts = append(c.Parts, &genai.Part{FunctionCall: &genai.FunctionCall{ID: id, Name: name, Args: args}})
	}
	return &model.LLMResponse{Content: c}
}

func used(r *model.LLMResponse, in int32) *model.LLMResponse {
	r.UsageMetadata = &genai.GenerateContentResponseUsageMetadata{PromptTokenCount: in}
	return r
}

// made is an agent, or the end of the test.
func made[T any](t *testing.T) func(T, error) T {
	t.Helper()
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func speaker(t *testing.T, name string, m model.LLM, tools ...tool.Tool) agent.Agent {
	t.Helper()
	return made[agent.Agent](t)(llmagent.New(llmagent.Config{Name: name, Description: "Speaks.", Model: m, Tools: tools, DisallowTransferToParent: true, DisallowTransferToPeers: true}))
}

// repeats is a tool that repeats its arguments, once all calls have begun that the group counts.
func repeats(t *testing.T, name string, wait ...*sync.WaitGroup) tool.Tool {
	t.Helper()
	return made[tool.Tool](t)(functiontool.New(functiontool.Config{Name: name, Description: "Repeats."}, func(_ agent.Context, args map[string]any) (map[string]any, error) {
		for _, w := range wait {
			w.Done()
			w.Wait()
		}
		return map[string]any{"result": fmt.Sprint(name, " got ", args)}, nil
	}))
}

// played is what came of a run.
type played struct {
	events []*session.Event
	err    error
	end    *phases.PostTurnInput
}

// results are what the model was told of its calls, in order.
func (p *played) results() (all []string) {
	for _, e := range p.events {
		if e.Content == nil {
			continue
		}
		for _, part := range e.Content.Parts {
			if r := part.FunctionResponse; r != nil {
				all = append(all, fmt.Sprint(r.Name, " ", r.ID, " ", r.Response))
			}
		}
	}
	return all
}

// here leaves the turn's id to the adapter.
func here(agent.InvocationContext) phases.Context {
	where := looptest.Where()
	where.TurnID = ""
	return where
}

func newRunner(t *testing.T, eng *runtime.Engine, root agent.Agent, o loop.Options, others ...*plugin.Plugin) *runner.Runner {
	t.Helper()
	return runnerOf(t, root, session.InMemoryService(), append([]*plugin.Plugin{newGuard(t, eng, o)}, others...)...)
}

func newGuard(t *testing.T, eng *runtime.Engine, o loop.Options) *plugin.Plugin {
	t.Helper()
	return made[*plugin.Plugin](t)(grapnel.New(grapnel.Options{Engine: eng, Loop: o, Where: here}))
}

func runnerOf(t *testing.T, root agent.Agent, sessions session.Service, plugins ...*plugin.Plugin) *runner.Runner {
	t.Helper()
	return made[*runner.Runner](t)(runner.New(runner.Config{
		AppName: "app", Agent: root, SessionService: sessions, AutoCreateSession: true, PluginConfig: runner.PluginConfig{Plugins: plugins},
	}))
}

// say runs one message in a session to its end.
func say(ctx context.Context, r *runner.Runner, in, message string) *played {
	p := &played{}
	for e, err := range r.Run(ctx, "ada", in, genai.NewContentFromText(message, genai.RoleUser), agent.RunConfig{}) {
		if p.err = cmp.Or(p.err, err); err == nil {
			p.events = append(p.events, e)
		}
	}
	return p
}

// play runs one message to its end, as far as the context lets it.
func play(t *testing.T, ctx context.Context, s *looptest.Engine, r *runner.Runner) *played { //nolint:revive // a helper begins with t
	t.Helper()
	p := say(ctx, r, "s", "hello")
	if err := s.WaitBackground(context.WithoutCancel(ctx)); err != nil {
		t.Fatal(err)
	}
	select {
	case p.end = <-s.Ended:
	default:
		t.Fatalf("the turn has not ended: %v", p.err)
	}
	if len(s.Ended) > 0 {
		t.Error("the turn has ended twice")
	}
	return p
}
