package adk_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"

	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/agent/workflowagents/sequentialagent"
	"google.golang.org/adk/v2/model"
	"google.golang.org/adk/v2/plugin"
	"google.golang.org/adk/v2/session"
	"google.golang.org/adk/v2/tool"
	"google.golang.org/adk/v2/tool/functiontool"
	"google.golang.org/genai"

	"github.com/grapnelhq/grapnel/internal/tests/looptest"
	"github.com/grapnelhq/grapnel/loop"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/sdk"
)

// TestSameCallID: models of several agents, or one with a bad habit, use an id more than once.
func TestSameCallID(t *testing.T) {
	t.Parallel()

	s := looptest.Start(t)
	all := &sync.WaitGroup{}
	all.Add(3)
	root := speaker(t, "root", says(asks(nil, "secret x", "list x", "secret x", "shell x"), text("done")), repeats(t, "secret", all), repeats(t, "list", all), repeats(t, "shell"))
	p := play(t, t.Context(), s, newRunner(t, s.Engine, root, loop.Options{}))
	want := []string{"secret x map[result:[removed]]", "list x map[result:list got map[depth:1]]", "secret x map[result:[removed]]"}
	if got := p.results(); p.err != nil || len(got) != 4 || !slices.Equal(got[:3], want) || !strings.Contains(got[3], "no shell here") {
		t.Errorf("%v, results %q", p.err, got)
	}
}

// TestCallThatCannotBeRewritten: a call is not made with other arguments than the plugins have agreed to.
func TestCallThatCannotBeRewritten(t *testing.T) {
	t.Parallel()

	s := looptest.Start(t)
	guard := newGuard(t, s.Engine, loop.Options{})
	list := repeats(t, "list")
	var answer map[string]any
	var failed error
	calls := made[tool.Tool](t)(functiontool.New(functiontool.Config{Name: "plain", Description: "Calls."}, func(ctx agent.Context, _ map[string]any) (map[string]any, error) {
		answer, failed = guard.BeforeToolCallback()(ctx, list, nil) // as ADK does for a call that was confirmed
		return map[string]any{}, nil
	}))
	r := runnerOf(t, speaker(t, "root", says(asks(nil, "plain 1"), text("done")), calls), session.InMemoryService(), guard)
	if play(t, t.Context(), s, r); answer != nil || failed == nil || !strings.Contains(failed.Error(), "none to be rewritten") {
		t.Errorf("answer %v, %v", answer, failed)
	}
}

// TestStreamingTool: ADK calls no plugin for a tool that streams its result.
func TestStreamingTool(t *testing.T) {
	t.Parallel()

	ran := false
	streams := func(name string) tool.Tool {
		return made[tool.Tool](t)(functiontool.NewStreaming(functiontool.Config{Name: name, Description: "Streams."}, func(agent.Context, map[string]any) iter.Seq2[string, error] {
			return func(yield func(string, error) bool) {
				ran = ran || name == "shell"
				_ = yield("one ", nil) && yield("two", nil)
			}
		}))
	}
	s := looptest.Start(t)
	root := speaker(t, "root", says(asks(map[string]any{}, "shell 1", "secret 2", "plain 3"), text("done")), streams("shell"), streams("secret"), streams("plain"))
	p := play(t, t.Context(), s, newRunner(t, s.Engine, root, loop.Options{}))
	got := p.results()
	if p.err != nil || ran || len(got) != 3 || !strings.Contains(got[0], "no shell here") || got[1] != "secret 2 map[result:[removed]]" || got[2] != "plain 3 map[result:one two]" {
		t.Errorf("%v, shell ran: %t, results %q", p.err, ran, got)
	}
}

// TestNamesOfTools: no tool of a plugin's takes the place of ADK's or of an agent's own, which need not be the first
// agent's.
func TestNamesOfTools(t *testing.T) {
	t.Parallel()

	var tools []phases.Tool
	var answers []sdk.Tool
	for _, name := range []string{"stop_streaming", "set_model_response", "finish_task", "adk_request_confirmation", "transfer_to_agent", "own", "good"} {
		tool := phases.Tool{Name: name, Description: "A plugin's.", InputSchema: json.RawMessage(`{"type":"object"}`)}
		tools = append(tools, tool)
		answers = append(answers, sdk.Tool{Tool: tool, Call: func(context.Context, *sdk.ToolCall) (*phases.ToolResult, error) {
			return sdk.Text("the plugin's " + name), nil
		}})
	}
	eng := looptest.Host(t, nil, &sdk.Plugin{
		Name: "p", Version: "1.0.0", Tools: answers,
		Hooks: []sdk.Hook{{Name: "tools", Kinds: []phases.Kind{phases.KindToolBundle}, PreTools: func(context.Context, *sdk.Call, *phases.PreToolsInput) ([]phases.Contribution, error) {
			return sdk.Reply(&phases.ToolBundle{BundleID: "b", Tools: tools})
		}}},
	})
	var offered []string
	second := speaks(func(_ context.Context, rq *model.LLMRequest, yield func(*model.LLMResponse, error) bool) {
		for _, list := range rq.Config.Tools {
			for _, d := range list.FunctionDeclarations {
				offered = append(offered, d.Name)
			}
		}
		if len(rq.Contents) > 2 {
			yield(text("done"), nil)
			return
		}
		yield(asks(nil, "own 1", "good 2"), nil)
	})
	root := made[agent.Agent](t)(sequentialagent.New(sequentialagent.Config{AgentConfig: agent.Config{
		Name: "root", SubAgents: []agent.Agent{speaker(t, "ann", says(text("one"))), speaker(t, "bob", second, repeats(t, "own"))},
	}}))
	p := say(t.Context(), newRunner(t, eng, root, loop.Options{}), "s", "hello")
	if p.err != nil {
		t.Fatal(p.err)
	}
	if want := []string{"good", "own", "good", "own"}; !slices.Equal(offered, want) {
		t.Errorf("offered %q, want %q", offered, want)
	}
	if got := p.results(); !slices.Equal(got, []string{"own 1 map[result:own got map[]]", "good 2 map[result:the plugin's good]"}) {
		t.Errorf("results %q", got)
	}
}

// TestConfirmation: a person's confirmation of ADK's own is a run of its own, and its call is judged again.
func TestConfirmation(t *testing.T) {
	t.Parallel()

	s := looptest.Start(t)
	mail := made[tool.Tool](t)(functiontool.New(functiontool.Config{Name: "list", Description: "Lists.", RequireConfirmation: true}, func(_ agent.Context, args map[string]any) (map[string]any, error) {
		return map[string]any{"result": fmt.Sprint("listed ", args)}, nil
	}))
	r := newRunner(t, s.Engine, speaker(t, "root", says(asks(map[string]any{"depth": 9}, "list 1"), text("done")), mail), loop.Options{})
	p := play(t, t.Context(), s, r)
	if p.err != nil || p.end.Status != phases.TurnInterrupted || len(p.end.ToolEvents) != 0 {
		t.Fatalf("%v, the end %+v", p.err, p.end)
	}
	var id, invocation string
	for _, e := range p.events {
		for _, part := range e.Content.Parts {
			if c := part.FunctionCall; c != nil && c.Name == "adk_request_confirmation" {
				id, invocation = c.ID, e.InvocationID
			}
		}
	}
	yes := &genai.Content{Role: genai.RoleUser, Parts: []*genai.Part{{FunctionResponse: &genai.FunctionResponse{ID: id, Name: "adk_request_confirmation", Response: map[string]any{"confirmed": true}}}}}
	again := &played{}
	for e, err := range r.Run(t.Context(), "ada", "s", yes, agent.RunConfig{}) {
		if err != nil {
			t.Fatal(err)
		}
		if again.events = append(again.events, e); e.InvocationID != invocation {
			t.Errorf("the invocation %q", e.InvocationID)
		}
	}
	if got := again.results(); len(got) != 1 || got[0] != "list 1 map[result:listed map[depth:1]]" {
		t.Errorf("results %q", got)
	}
	if err := s.WaitBackground(t.Context()); err != nil || len(s.Ended) != 1 {
		t.Fatalf("%d turns have ended, %v", len(s.Ended), err)
	}
	if end := <-s.Ended; end.Status != phases.TurnSucceeded || len(end.ToolEvents) != 1 || end.ToolEvents[0].Outcome != "ok" {
		t.Errorf("the end: %+v", end)
	}
}

// TestHugeResult: a result that is too long is cut, and stays an object for ADK.
func TestHugeResult(t *testing.T) {
	t.Parallel()

	s := looptest.Start(t)
	huge := made[tool.Tool](t)(functiontool.New(functiontool.Config{Name: "plain", Description: "Talks."}, func(agent.Context, map[string]any) (map[string]any, error) {
		return map[string]any{"lines": strings.Repeat("many words ", 1<<16)}, nil
	}))
	root := speaker(t, "root", says(asks(nil, "plain 1"), text("done")), huge)
	p := play(t, t.Context(), s, newRunner(t, s.Engine, root, loop.Options{MaxResultChars: 30}))
	if got := p.results(); len(got) != 1 || got[0] != `plain 1 map[result:{"lines":"many words many word]` {
		t.Errorf("results %.200q", got)
	}
}

// TestPanickingTool: ADK makes an error of a tool's panic, and the plugins see it.
func TestPanickingTool(t *testing.T) {
	t.Parallel()

	s := looptest.Start(t)
	root := speaker(t, "root", says(asks(nil, "secret 1"), text("done")), made[tool.Tool](t)(functiontool.New(functiontool.Config{Name: "secret", Description: "Breaks."}, func(agent.Context, map[string]any) (map[string]any, error) {
		panic("the secret is 42")
	})))
	p := play(t, t.Context(), s, newRunner(t, s.Engine, root, loop.Options{}))
	if got := p.results(); len(got) != 1 || got[0] != "secret 1 map[error:[removed]]" || p.end.ToolEvents[0].Outcome != "error" {
		t.Errorf("results %q, events %+v", got, p.end.ToolEvents)
	}
}

// TestOtherPlugins: what plugins behind Grapnel's answer in place of a tool or a model goes on as theirs.
func TestOtherPlugins(t *testing.T) {
	t.Parallel()

	s := looptest.Start(t)
	other := made[*plugin.Plugin](t)(plugin.New(plugin.Config{
		Name: "other",
		BeforeToolCallback: func(agent.Context, tool.Tool, map[string]any) (map[string]any, error) {
			return map[string]any{"answer": "the secret is 42"}, nil
		},
		BeforeModelCallback: func(_ agent.Context, rq *model.LLMRequest) (*model.LLMResponse, error) {
			if len(rq.Contents) > 1 {
				return text("from the cache"), nil
			}
			return nil, nil //nolint:nilnil // ADK's word for going on
		},
	}))
	p := play(t, t.Context(), s, newRunner(t, s.Engine, speaker(t, "root", says(asks(nil, "secret 1")), repeats(t, "secret")), loop.Options{}, other))
	if got := p.results(); p.err != nil || len(got) != 1 || got[0] != "secret 1 map[result:[removed]]" {
		t.Errorf("%v, results %q", p.err, got)
	}
	if p.end.Status != phases.TurnSucceeded || p.end.AssistantText.Text != "from the cache" {
		t.Errorf("the end %+v", p.end)
	}
}
