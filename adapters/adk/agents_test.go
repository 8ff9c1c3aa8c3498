package adk_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/agent/llmagent"
	"google.golang.org/adk/v2/agent/workflowagent"
	"google.golang.org/adk/v2/agent/workflowagents/loopagent"
	"google.golang.org/adk/v2/agent/workflowagents/parallelagent"
	"google.golang.org/adk/v2/agent/workflowagents/sequentialagent"
	"google.golang.org/adk/v2/model"
	"google.golang.org/adk/v2/plugin"
	"google.golang.org/adk/v2/session"
	"google.golang.org/adk/v2/tool"
	"google.golang.org/adk/v2/tool/exitlooptool"
	"google.golang.org/adk/v2/workflow"
	"google.golang.org/genai"

	"github.com/grapnelhq/grapnel/internal/tests/looptest"
	"github.com/grapnelhq/grapnel/loop"
	"github.com/grapnelhq/grapnel/phases"
)

// TestParallelAgents: each agent's prompt has its own usage, and the turn the sum.
func TestParallelAgents(t *testing.T) {
	t.Parallel()

	s := looptest.Start(t)
	both := sync.WaitGroup{}
	both.Add(2)
	waits := func(answer string, in int32) speaks {
		return func(_ context.Context, _ *model.LLMRequest, yield func(*model.LLMResponse, error) bool) {
			both.Done()
			both.Wait() // both prompts are compiled before any is answered
			yield(used(text(answer), in), nil)
		}
	}
	root := made[agent.Agent](t)(parallelagent.New(parallelagent.Config{AgentConfig: agent.Config{
		Name: "root", SubAgents: []agent.Agent{speaker(t, "ann", waits("from ann", 10)), speaker(t, "bob", waits("from bob", 200))},
	}}))
	p := play(t, t.Context(), s, newRunner(t, s.Engine, root, loop.Options{}))
	if p.err != nil || p.end.Status != phases.TurnSucceeded || p.end.Usage.InputTokens != 210 {
		t.Errorf("%v, the end %+v", p.err, p.end)
	}
	of := map[string]string{}
	for _, m := range s.Records() {
		if of[m.ManifestID] = m.AgentID; m.TurnID != p.events[0].InvocationID {
			t.Errorf("the turn %q", m.TurnID)
		}
		for _, d := range m.Diagnostics {
			if d.Code == "prompt_not_reported" {
				t.Errorf("%+v", d)
			}
		}
	}
	got := map[string]int{}
	for _, u := range s.Usage() {
		got[of[u.ManifestID]] += u.InputTokens
	}
	if got["ann"] != 10 || got["bob"] != 200 {
		t.Errorf("usage by agent: %v", got)
	}
}

// TestParallelFailure: the failure of one agent is the turn's, also where another one answers later.
func TestParallelFailure(t *testing.T) {
	t.Parallel()

	s := looptest.Start(t)
	failed := make(chan struct{})
	fails := speaks(func(_ context.Context, _ *model.LLMRequest, yield func(*model.LLMResponse, error) bool) {
		defer close(failed)
		yield(nil, errors.New("overloaded"))
	})
	late := speaks(func(_ context.Context, _ *model.LLMRequest, yield func(*model.LLMResponse, error) bool) {
		<-failed
		yield(text("fine"), nil)
	})
	root := made[agent.Agent](t)(parallelagent.New(parallelagent.Config{AgentConfig: agent.Config{Name: "root", SubAgents: []agent.Agent{speaker(t, "ann", fails), speaker(t, "bob", late)}}}))
	p := play(t, t.Context(), s, newRunner(t, s.Engine, root, loop.Options{}))
	if p.err == nil || p.end.Status != phases.TurnProviderFailure {
		t.Errorf("%v, status %s", p.err, p.end.Status)
	}
}

// TestLoop: a tool that ends the loop ends the turn well, and an agent that comes again is the same one.
func TestLoop(t *testing.T) {
	t.Parallel()

	s := looptest.Start(t)
	exit := made[tool.Tool](t)(exitlooptool.New())
	worker := speaker(t, "worker", says(asks(nil, "note 1"), text("once"), text("twice"), asks(nil, "exit_loop 2")), repeats(t, "note"), exit)
	root := made[agent.Agent](t)(loopagent.New(loopagent.Config{AgentConfig: agent.Config{Name: "root", SubAgents: []agent.Agent{worker}}}))
	p := play(t, t.Context(), s, newRunner(t, s.Engine, root, loop.Options{}))
	if p.err != nil || p.end.Status != phases.TurnSucceeded || p.end.AssistantText.Text != "twice" || len(p.end.ToolEvents) != 2 {
		t.Errorf("%v, the end %+v", p.err, p.end)
	}
}

// TestSequence: agents one after the other are in one turn; a prompt that is refused ends the run.
func TestSequence(t *testing.T) {
	t.Parallel()

	s := looptest.Start(t)
	root := made[agent.Agent](t)(sequentialagent.New(sequentialagent.Config{AgentConfig: agent.Config{
		Name: "root", SubAgents: []agent.Agent{speaker(t, "ann", says(text("one"))), speaker(t, "outlaw", says(text("never")))},
	}}))
	p := play(t, t.Context(), s, newRunner(t, s.Engine, root, loop.Options{}))
	refused, ok := errors.AsType[*loop.Refused](p.err)
	if !ok || refused.Reason != "no prompt for outlaws" || p.end.Status != phases.TurnBlocked || p.end.AssistantText.Text != "one" {
		t.Errorf("%v, the end %+v", p.err, p.end)
	}
	for _, e := range p.events {
		if e.Author == "outlaw" {
			t.Errorf("an event of the outlaw: %+v", e)
		}
	}
}

// TestLive: a live run is refused, because no plugin of ADK's sees its prompt.
func TestLive(t *testing.T) {
	t.Parallel()

	s := looptest.Start(t)
	r := newRunner(t, s.Engine, speaker(t, "root", says(text("never"))), loop.Options{})
	if _, _, err := r.RunLive(t.Context(), "ada", "s", agent.LiveRunConfig{}); err == nil || !strings.Contains(err.Error(), "live runs are not supported") {
		t.Errorf("error %v", err)
	}
	if len(s.Records()) > 0 || len(s.Ended) > 0 {
		t.Error("a turn has begun")
	}
}

// TestWorkers: one agent at work on several things at the same time, each with a conversation of its own.
func TestWorkers(t *testing.T) {
	t.Parallel()

	s := looptest.Start(t)
	m := speaks(func(_ context.Context, rq *model.LLMRequest, yield func(*model.LLMResponse, error) bool) {
		if len(rq.Contents) == 1 {
			yield(used(asks(nil, "note 1"), 1), nil)
		} else {
			yield(used(text("done"), 10), nil)
		}
	})
	worker := made[agent.Agent](t)(llmagent.New(llmagent.Config{Name: "worker", Model: m, Tools: []tool.Tool{repeats(t, "note")}, Mode: llmagent.ModeChat}))
	list := workflow.NewFunctionNode("list", func(agent.Context, any) ([]string, error) { return []string{"one", "two", "three"}, nil }, workflow.NodeConfig{})
	workers := made[*workflow.ParallelWorker](t)(workflow.NewParallelWorker("workers", made[*workflow.AgentNode](t)(workflow.NewAgentNode(worker, workflow.NodeConfig{})), 0, workflow.NodeConfig{}))
	root := made[agent.Agent](t)(workflowagent.New(workflowagent.Config{Name: "root", Edges: workflow.Chain(workflow.Start, list, workers)}))
	p := play(t, t.Context(), s, newRunner(t, s.Engine, root, loop.Options{}))
	if p.err != nil || p.end.Status != phases.TurnSucceeded || len(p.end.ToolEvents) < 3 {
		t.Errorf("%v, the end %+v", p.err, p.end)
	}
	sum, prompts := 0, map[string]bool{}
	for _, u := range s.Usage() {
		sum, prompts[u.ManifestID] = sum+u.InputTokens, true
	}
	if len(prompts) < 6 || len(prompts) != len(s.Usage()) || sum != p.end.Usage.InputTokens {
		t.Errorf("%d prompts have the usage %+v, the end has %+v", len(prompts), s.Usage(), p.end.Usage)
	}
}

// TestOneRunner: sessions share a runner, and its plugin.
func TestOneRunner(t *testing.T) {
	t.Parallel()

	s := looptest.Start(t)
	m := speaks(func(_ context.Context, rq *model.LLMRequest, yield func(*model.LLMResponse, error) bool) {
		if first := rq.Contents[0].Parts[0].Text; len(rq.Contents) == 1 {
			yield(asks(nil, "secret "+first[:1]), nil)
		} else {
			yield(text("for "+first), nil)
		}
	})
	r := newRunner(t, s.Engine, speaker(t, "root", m, repeats(t, "secret")), loop.Options{})
	var wait sync.WaitGroup
	for i := range 8 {
		name := fmt.Sprint("session ", i)
		wait.Go(func() {
			p := say(t.Context(), r, name, name)
			if got := p.results(); p.err != nil || len(got) != 1 || got[0] != "secret s map[result:[removed]]" || p.events[len(p.events)-1].Content.Parts[0].Text != "for "+name {
				t.Errorf("%s: %v, results %q", name, p.err, got)
			}
		})
	}
	wait.Wait()
	if err := s.WaitBackground(t.Context()); err != nil || len(s.Ended) != 8 {
		t.Errorf("%d turns have ended, %v", len(s.Ended), err)
	}
}

// TestTwiceAtOnce: an invocation runs once at a time, and one that is refused for that does not end the other's turn.
func TestTwiceAtOnce(t *testing.T) {
	t.Parallel()

	s := looptest.Start(t)
	guard := newGuard(t, s.Engine, loop.Options{})
	var twice error
	again := made[*plugin.Plugin](t)(plugin.New(plugin.Config{Name: "again", BeforeRunCallback: func(ctx agent.InvocationContext) (*genai.Content, error) {
		copied := agent.NewContext(ctx)
		_, twice = guard.BeforeRunCallback()(copied)
		guard.AfterRunCallback()(copied)
		return nil, nil //nolint:nilnil // ADK's word for going on
	}}))
	r := runnerOf(t, speaker(t, "root", says(text("done"))), session.InMemoryService(), guard, again)
	if p := play(t, t.Context(), s, r); p.err != nil || p.end.Status != phases.TurnSucceeded || twice == nil {
		t.Errorf("%v, %v, the end %+v", p.err, twice, p.end)
	}
}
