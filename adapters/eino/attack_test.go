package eino_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cloudwego/eino/adk"
	"github.com/cloudwego/eino/components/model"
	"github.com/cloudwego/eino/components/tool"
	"github.com/cloudwego/eino/schema"

	grapnel "github.com/grapnelhq/grapnel/adapters/eino"
	"github.com/grapnelhq/grapnel/internal/tests/looptest"
	"github.com/grapnelhq/grapnel/loop"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/sdk"
)

// scene is one engine and the turn that is played on it.
type scene struct {
	*looptest.Engine

	turn  *looptest.Turn
	guard *grapnel.Grapnel
	turns atomic.Int32
}

// newScene answers one request after the other with the replies.
func newScene(t *testing.T, replies ...looptest.Reply) *scene {
	t.Helper()
	s := &scene{Engine: looptest.Start(t)}
	s.turn = &looptest.Turn{
		Engine: s.Engine.Engine, Where: func(context.Context) phases.Context {
			where := looptest.Where()
			where.TurnID = strconv.Itoa(int(s.turns.Add(1)))
			return where
		},
		Instructions: "You help with files.", Message: "hello", Tools: looptest.Tools(), Model: script(replies...),
	}
	s.guard = grapnel.New(grapnel.Options{Engine: s.Engine.Engine, Where: s.turn.Where})
	return s
}

func script(replies ...looptest.Reply) func(context.Context, looptest.Request) (looptest.Reply, error) {
	var mu sync.Mutex
	return func(context.Context, looptest.Request) (looptest.Reply, error) {
		mu.Lock()
		defer mu.Unlock()
		if len(replies) == 0 {
			return looptest.Reply{}, errors.New("the model was asked too often")
		}
		next := replies[0]
		replies = replies[1:]
		return next, nil
	}
}

func calling(id, tool, arguments string) looptest.Reply {
	return looptest.Reply{Calls: []loop.Call{{ID: id, Tool: tool, Arguments: json.RawMessage(arguments)}}}
}

// agent makes the wrapped agent of the scene's turn.
func (s *scene) agent(t *testing.T, change ...func(*adk.ChatModelAgentConfig)) adk.Agent {
	t.Helper()
	return s.guard.Wrap(s.bare(t, "root", s.turn, change...))
}

// bare makes an agent with the scene's handler.
func (s *scene) bare(t *testing.T, name string, turn *looptest.Turn, change ...func(*adk.ChatModelAgentConfig)) adk.Agent {
	t.Helper()
	made, err := newAgent(t.Context(), s.guard, name, turn, text, change...)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// end waits for the end of the only turn.
func (s *scene) end(t *testing.T) *phases.PostTurnInput {
	t.Helper()
	end := <-s.Ended
	if err := s.WaitBackground(context.WithoutCancel(t.Context())); err != nil || len(s.Ended) > 0 {
		t.Errorf("%d more turns have ended, %v", len(s.Ended), err)
	}
	return end
}

// agents are those of the prompts, in order.
func (s *scene) agents() string {
	var list []string
	for _, m := range s.Records() {
		if m.Kind == manifest.KindPrompt && m.TurnID == "1" {
			list = append(list, m.AgentID)
		}
	}
	return fmt.Sprint(list)
}

// TestAgentAsTool: an agent that is another's tool is in the same turn, also if it is wrapped itself.
func TestAgentAsTool(t *testing.T) {
	t.Parallel()

	s := newScene(t, calling("c1", "writer", `{"request":"a poem"}`), looptest.Reply{Text: "done"})
	writer := s.other(t, "writer", looptest.Reply{Text: "roses", Usage: phases.Usage{InputTokens: 10}})
	root := s.agent(t, func(c *adk.ChatModelAgentConfig) {
		c.ToolsConfig.Tools = append(c.ToolsConfig.Tools, adk.NewAgentTool(t.Context(), s.guard.Wrap(writer)))
	})
	answer, err := ask(t.Context(), root, s.turn)
	if end := s.end(t); err != nil || answer != "done" || s.agents() != "[root writer root]" || end.AssistantText.Text != "done" || end.Usage.InputTokens != 10 {
		t.Errorf("answer %q, %v, the agents %s, the end %+v", answer, err, s.agents(), end)
	}
}

// other makes another agent with the scene's handler.
func (s *scene) other(t *testing.T, name string, replies ...looptest.Reply) adk.Agent {
	t.Helper()
	turn := *s.turn
	turn.Model, turn.Instructions = script(replies...), "You are "+name+"."
	return s.bare(t, name, &turn)
}

// TestTransfer: an agent that another one hands the conversation to is in the same turn.
func TestTransfer(t *testing.T) {
	t.Parallel()

	s := newScene(t, calling("c1", "transfer_to_agent", `{"agent_name":"writer"}`))
	team, err := adk.SetSubAgents(t.Context(), s.bare(t, "root", s.turn), []adk.Agent{s.other(t, "writer", looptest.Reply{Text: "roses"})})
	if err != nil {
		t.Fatal(err)
	}
	answer, err := ask(t.Context(), s.guard.Wrap(team), s.turn)
	if end := s.end(t); err != nil || answer != "roses" || s.agents() != "[root writer]" || end.AssistantText.Text != "roses" || end.Status != phases.TurnSucceeded {
		t.Errorf("answer %q, %v, the agents %s, the end %+v", answer, err, s.agents(), end)
	}
}

// TestWorkflow: agents that run at the same time are in one turn, which has failed if one of them has.
func TestWorkflow(t *testing.T) {
	t.Parallel()

	s := newScene(t)
	both, err := adk.NewParallelAgent(t.Context(), &adk.ParallelAgentConfig{Name: "both", SubAgents: []adk.Agent{
		s.other(t, "a", calling("c1", "list", `{}`), looptest.Reply{Text: "done"}),
		s.other(t, "b"),
	}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = ask(t.Context(), s.guard.Wrap(both), s.turn)
	if end := s.end(t); err == nil || end.Status != phases.TurnProviderFailure {
		t.Errorf("%v, the end %+v", err, end)
	}
}

// TestRefusedPrompt: a refused prompt ends the run as blocked, with a typed error.
func TestRefusedPrompt(t *testing.T) {
	t.Parallel()

	s := newScene(t)
	_, err := ask(t.Context(), s.guard.Wrap(s.other(t, "outlaw")), s.turn)
	refused, ok := errors.AsType[*loop.Refused](err)
	if end := s.end(t); !ok || refused.Phase != phases.PostPromptCompile || end.Status != phases.TurnBlocked {
		t.Errorf("error %v, the end %+v", err, end)
	}
}

type asking struct{ own }

func (a asking) InvokableRun(ctx context.Context, arguments string, _ ...tool.Option) (string, error) {
	if was, _, _ := tool.GetInterruptState[string](ctx); !was {
		return "", tool.StatefulInterrupt(ctx, "may I?", "state")
	}
	return a.Call(ctx, json.RawMessage(arguments))
}

type store struct{ sync.Map }

func (s *store) Get(_ context.Context, id string) ([]byte, bool, error) {
	kept, ok := s.Load(id)
	data, _ := kept.([]byte)
	return data, ok, nil
}

func (s *store) Set(_ context.Context, id string, data []byte) error {
	s.Store(id, data)
	return nil
}

// TestInterrupt: a run that waits for a person ends its turn; to resume it is another turn, with the agent's own
// instruction, and the reminders of the first where they were.
func TestInterrupt(t *testing.T) {
	t.Parallel()

	s := newScene(t)
	var requests []looptest.Request
	replies := script(calling("c0", "note", `{}`), calling("c1", "list", `{"depth":9}`), looptest.Reply{Text: "done"})
	s.turn.Model = func(ctx context.Context, r looptest.Request) (looptest.Reply, error) {
		requests = append(requests, r)
		return replies(ctx, r)
	}
	root := s.agent(t, func(c *adk.ChatModelAgentConfig) {
		for i, own := range looptest.Tools() {
			if own.Name == "list" {
				c.ToolsConfig.Tools[i] = asking{ownOf(own)}
			}
		}
	})
	runner := adk.NewRunner(t.Context(), adk.RunnerConfig{Agent: root, CheckPointStore: &store{}})
	if _, err := read(runner.Query(t.Context(), "hello", adk.WithCheckPointID("1")), nil); err != nil {
		t.Fatal(err)
	}
	if end := s.end(t); end.Status != phases.TurnInterrupted || len(end.ToolEvents) != 1 {
		t.Errorf("the end %+v", end)
	}
	events, err := runner.Resume(t.Context(), "1")
	if err != nil {
		t.Fatal(err)
	}
	answer, err := read(events, nil)
	if end := s.end(t); err != nil || answer != "done" || end.Status != phases.TurnSucceeded || len(end.ToolEvents) != 1 {
		t.Fatalf("answer %q, %v, the end %+v", answer, err, end)
	}
	last := requests[len(requests)-1]
	sent := strings.Join(last.Messages, "\n")
	if strings.Count(last.System, "You help with files.") != 1 || strings.Count(last.System, "Be brief.") != 1 ||
		strings.Count(sent, "house.note") != 1 || !strings.Contains(sent, `list got {"depth":1}`) {
		t.Errorf("resumed with\n%s\n\n%s", last.System, sent)
	}
}

func ownOf(t loop.Tool) own { return own{t} }

// TestCancelledByItsHost: eino's own way to cancel a run ends the turn as interrupted.
func TestCancelledByItsHost(t *testing.T) {
	t.Parallel()

	for name, o := range map[string][]adk.AgentCancelOption{
		"at once":           nil,
		"after the request": {adk.WithAgentCancelMode(adk.CancelAfterChatModel)},
		"with sub-agents":   {adk.WithAgentCancelMode(adk.CancelAfterChatModel)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			s := newScene(t)
			option, cancel := adk.WithCancel()
			asked, go_ := make(chan struct{}), make(chan struct{})
			s.turn.Model = func(context.Context, looptest.Request) (looptest.Reply, error) {
				close(asked)
				<-go_
				return calling("c1", "list", `{}`), nil
			}
			go func() {
				<-asked
				handle, _ := cancel(o...)
				close(go_)
				_ = handle.Wait()
			}()
			root := s.agent(t)
			if name == "with sub-agents" {
				team, err := adk.SetSubAgents(t.Context(), s.bare(t, "root", s.turn), []adk.Agent{s.other(t, "writer")})
				if err != nil {
					t.Fatal(err)
				}
				root = s.guard.Wrap(team)
			}
			runner := adk.NewRunner(t.Context(), adk.RunnerConfig{Agent: root})
			_, err := read(runner.Query(t.Context(), "hello", option), nil)
			_, cancelled := errors.AsType[*adk.CancelError](err)
			if end := s.end(t); !cancelled || end.Status != phases.TurnInterrupted {
				t.Errorf("error %v, the end %+v", err, end)
			}
		})
	}
}

// TestEnds: however a run ends, the turn ends once.
func TestEnds(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name    string
		replies []looptest.Reply
		call    func(context.Context, json.RawMessage) (string, error)
		change  func(*adk.ChatModelAgentConfig)
		status  phases.TurnStatus
		err     string
	}{
		{"a tool panics", []looptest.Reply{calling("c", "list", `{}`)}, func(context.Context, json.RawMessage) (string, error) { panic("boo") }, nil, phases.TurnFailed, "boo"},
		{"a tool fails", []looptest.Reply{calling("c", "list", `{}`)}, func(context.Context, json.RawMessage) (string, error) { return "", errors.New("no disk") }, nil, phases.TurnFailed, "no disk"},
		{"too many rounds", []looptest.Reply{calling("c", "list", `{}`)}, nil, func(c *adk.ChatModelAgentConfig) { c.MaxIterations = 1 }, phases.TurnFailed, "max iterations"},
		{"a tool that nobody has", []looptest.Reply{calling("c", "made_up", `{}`)}, nil, nil, phases.TurnFailed, "made_up"},
		{"a tool's result is the answer", []looptest.Reply{calling("c", "secret", `{}`)}, nil, func(c *adk.ChatModelAgentConfig) { c.ToolsConfig.ReturnDirectly = map[string]bool{"secret": true} }, phases.TurnSucceeded, ""},
		{"arguments that are not JSON", []looptest.Reply{calling("c", "list", `{`), {Text: "sorry"}}, nil, nil, phases.TurnSucceeded, ""},
		{"arguments with NUL", []looptest.Reply{calling("c", "list", `{"a":"\u0000"}`), {Text: "sorry"}}, nil, nil, phases.TurnSucceeded, ""},
		{"a result with NUL", []looptest.Reply{calling("c", "list", `{}`), {Text: "sorry"}}, func(context.Context, json.RawMessage) (string, error) { return "a\x00b\xff\u202e", nil }, nil, phases.TurnSucceeded, ""},
		{"a call id with NUL", []looptest.Reply{calling("c\x00\xff", "list", `{}`), {Text: "sorry"}}, nil, nil, phases.TurnSucceeded, ""},
		{"no call id", []looptest.Reply{calling("", "list", `{}`), {Text: "sorry"}}, nil, nil, phases.TurnSucceeded, ""},
		{"an error with NUL", []looptest.Reply{calling("c", "list", `{}`)}, func(context.Context, json.RawMessage) (string, error) { return "", errors.New("no\x00disk\xff") }, nil, phases.TurnFailed, "disk"},
		{"no arguments", []looptest.Reply{calling("c", "list", ``), {Text: "sorry"}}, nil, nil, phases.TurnSucceeded, ""},
		{"arguments that are a list", []looptest.Reply{calling("c", "list", `[1]`), {Text: "sorry"}}, nil, nil, phases.TurnSucceeded, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			s := newScene(t, tt.replies...)
			for i := range s.turn.Tools {
				if tt.call != nil {
					s.turn.Tools[i].Call = tt.call
				}
			}
			_, err := ask(t.Context(), s.agent(t, func(c *adk.ChatModelAgentConfig) {
				if tt.change != nil {
					tt.change(c)
				}
			}), s.turn)
			if end := s.end(t); end.Status != tt.status || (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Errorf("error %v, the end %+v", err, end)
			}
		})
	}
}

// TestPanic: an agent that panics when it begins ends its turn, and panics.
func TestPanic(t *testing.T) {
	t.Parallel()

	s := newScene(t)
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic is gone")
			}
		}()
		s.guard.Wrap(broken{}).Run(t.Context(), &adk.AgentInput{})
	}()
	if end := s.end(t); end.Status != phases.TurnFailed {
		t.Errorf("the end %+v", end)
	}
}

type broken struct{ adk.Agent }

func (broken) Name(context.Context) string { return "broken" }

func (broken) Run(context.Context, *adk.AgentInput, ...adk.AgentRunOption) *adk.AsyncIterator[*adk.AgentEvent] {
	panic("boo")
}

// TestRetry: a request that eino repeats is one round, with one prompt.
func TestRetry(t *testing.T) {
	t.Parallel()

	s := newScene(t)
	tries := 0
	s.turn.Model = func(context.Context, looptest.Request) (looptest.Reply, error) {
		if tries++; tries < 3 {
			return looptest.Reply{}, errors.New("busy")
		}
		return looptest.Reply{Text: "done"}, nil
	}
	answer, err := ask(t.Context(), s.agent(t, func(c *adk.ChatModelAgentConfig) {
		c.ModelRetryConfig = &adk.ModelRetryConfig{MaxRetries: 3, BackoffFunc: func(context.Context, int) time.Duration { return 0 }}
	}), s.turn)
	if end := s.end(t); err != nil || answer != "done" || s.agents() != "[root]" || end.Status != phases.TurnSucceeded {
		t.Errorf("answer %q, %v, the agents %s, the end %+v", answer, err, s.agents(), end)
	}
}

// breaking is a model whose stream breaks.
type breaking struct{ model.BaseChatModel }

func (breaking) Stream(context.Context, []*schema.Message, ...model.Option) (*schema.StreamReader[*schema.Message], error) {
	r, w := schema.Pipe[*schema.Message](2)
	w.Send(schema.AssistantMessage("half of", nil), nil)
	w.Send(nil, errors.New("the line broke"))
	w.Close()
	return r, nil
}

// TestStreamBreaks: a stream that breaks is the provider's failure.
func TestStreamBreaks(t *testing.T) {
	t.Parallel()

	s := newScene(t)
	s.turn.Streamed = func(string) {}
	_, err := ask(t.Context(), s.agent(t, func(c *adk.ChatModelAgentConfig) { c.Model = breaking{} }), s.turn)
	if end := s.end(t); err == nil || end.Status != phases.TurnProviderFailure {
		t.Errorf("%v, the end %+v", err, end)
	}
}

// TestOneAgentTwice: an agent serves several runs at the same time. It has no tools of its own: eino 0.9.13 races with
// itself in concurrent runs of an agent that has some.
func TestOneAgentTwice(t *testing.T) {
	t.Parallel()

	s := newScene(t)
	s.turn.Model = func(_ context.Context, r looptest.Request) (looptest.Reply, error) {
		if len(r.Messages) < 4 {
			return calling("same", "count", `{}`), nil
		}
		return looptest.Reply{Text: "done"}, nil
	}
	s.turn.Tools = nil
	root := s.agent(t)
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			if answer, err := ask(t.Context(), root, s.turn); err != nil || answer != "done" {
				t.Errorf("answer %q, %v", answer, err)
			}
		})
	}
	wait.Wait()
	if err := s.WaitBackground(t.Context()); err != nil || len(s.Ended) != 8 {
		t.Errorf("%d turns have ended, %v", len(s.Ended), err)
	}
}

// TestAbandoned: a reader that stops reading holds up nothing.
func TestAbandoned(t *testing.T) {
	t.Parallel()

	s := newScene(t, calling("c", "list", `{}`), looptest.Reply{Text: "done"})
	adk.NewRunner(t.Context(), adk.RunnerConfig{Agent: s.agent(t)}).Query(t.Context(), "hello").Next()
	if end := s.end(t); end.Status != phases.TurnSucceeded {
		t.Errorf("the end %+v", end)
	}
}

// TestReadEarly: a run that was answered has succeeded, also if its context ends before its events.
func TestReadEarly(t *testing.T) {
	t.Parallel()

	s := newScene(t, looptest.Reply{Text: "done"})
	ctx, cancel := context.WithCancel(t.Context())
	events := adk.NewRunner(ctx, adk.RunnerConfig{Agent: s.guard.Wrap(lingering{s.other(t, "root", looptest.Reply{Text: "done"})})}).Query(ctx, "hello")
	for e, ok := events.Next(); ok; e, ok = events.Next() {
		if e.Output != nil {
			cancel()
		}
	}
	cancel()
	if end := s.end(t); end.Status != phases.TurnSucceeded || end.AssistantText.Text != "done" {
		t.Errorf("the end %+v", end)
	}
}

// lingering ends its events when its context does.
type lingering struct{ adk.Agent }

func (l lingering) Run(ctx context.Context, in *adk.AgentInput, o ...adk.AgentRunOption) *adk.AsyncIterator[*adk.AgentEvent] {
	events, out := adk.NewAsyncIteratorPair[*adk.AgentEvent]()
	inner := l.Agent.Run(ctx, in, o...)
	go func() {
		defer out.Close()
		var all []*adk.AgentEvent
		for e, ok := inner.Next(); ok; e, ok = inner.Next() {
			all = append(all, e)
		}
		for _, e := range all {
			out.Send(e)
		}
		<-ctx.Done()
	}()
	return events
}

// TestParts: the texts of a message of parts are judged.
func TestParts(t *testing.T) {
	t.Parallel()

	s := newScene(t)
	message := &schema.Message{Role: schema.User, UserInputMultiContent: []schema.MessageInputPart{{Type: schema.ChatMessagePartTypeText, Text: "something forbidden"}}}
	_, err := read(s.guard.Wrap(s.other(t, "root")).Run(t.Context(), &adk.AgentInput{Messages: []*schema.Message{message}}), nil)
	if refused, ok := errors.AsType[*loop.Refused](err); !ok || refused.By != "house.words" {
		t.Errorf("error %v", err)
	}
	s.end(t)
}

// forgetting is a handler that keeps the beginning of a conversation, and its last calls.
type forgetting struct {
	*adk.BaseChatModelAgentMiddleware
}

func (forgetting) BeforeModelRewriteState(ctx context.Context, state *adk.ChatModelAgentState, _ *adk.ModelContext) (context.Context, *adk.ChatModelAgentState, error) {
	next := *state
	for i, m := range slices.Backward(state.Messages) {
		if m.Role == schema.Assistant && i > 4 {
			next.Messages = slices.Concat(state.Messages[:2], []*schema.Message{schema.UserMessage("There was more.")}, state.Messages[i:])
			break
		}
	}
	return ctx, &next, nil
}

// TestCompaction: where another handler has shortened the conversation, no reminder comes between a call and its result,
// and the prompt is there once.
func TestCompaction(t *testing.T) {
	t.Parallel()

	s := newScene(t)
	var requests []looptest.Request
	replies := script(calling("c0", "note", `{}`), calling("c1", "list", `{}`), calling("c2", "list", `{}`), calling("c3", "list", `{}`), calling("c4", "list", `{}`), looptest.Reply{Text: "done"})
	s.turn.Model = func(ctx context.Context, r looptest.Request) (looptest.Reply, error) {
		requests = append(requests, r)
		return replies(ctx, r)
	}
	root := s.agent(t, func(c *adk.ChatModelAgentConfig) {
		c.Handlers = append(c.Handlers, forgetting{&adk.BaseChatModelAgentMiddleware{}})
	})
	if answer, err := ask(t.Context(), root, s.turn); err != nil || answer != "done" {
		t.Fatalf("answer %q, %v", answer, err)
	}
	s.end(t)
	for i, r := range requests {
		if strings.Count(r.System, "You help with files.") != 1 || strings.Count(r.System, "Be brief.") != 1 {
			t.Errorf("request %d:\n%s", i, r.System)
		}
		for j, m := range r.Messages {
			if strings.HasPrefix(m, "tool:") && !strings.HasPrefix(r.Messages[j-1], "assistant:") {
				t.Errorf("request %d: %q stands behind %q", i, m, r.Messages[j-1])
			}
		}
	}
}

// TestSchemas: a plugin's schema that eino does not understand harms nobody, and reaches the model as it is.
func TestSchemas(t *testing.T) {
	t.Parallel()

	for _, raw := range []string{
		``, `{}`, `{"type":null}`, `{"type":7}`, `{"type":"object","properties":{"x":{"type":null}}}`, `{"type":"object","items":[{"type":"string"}]}`,
		`{"type":["object","null"]}`, `{"type":"object","properties":{"x":{"type":"string","minLength":-1}}}`,
	} {
		t.Run(raw, func(t *testing.T) {
			t.Parallel()

			odd := phases.Tool{Name: "odd", InputSchema: json.RawMessage(raw)}
			p := &sdk.Plugin{Name: "odd", Version: "1.0.0", Hooks: []sdk.Hook{{
				Name: "tools", Kinds: []phases.Kind{phases.KindToolBundle},
				PreTools: func(context.Context, *sdk.Call, *phases.PreToolsInput) ([]phases.Contribution, error) {
					return sdk.Reply(&phases.ToolBundle{BundleID: "odd", Tools: []phases.Tool{odd}})
				},
			}}, Tools: []sdk.Tool{{Tool: odd, Call: func(context.Context, *sdk.ToolCall) (*phases.ToolResult, error) { return sdk.Text("fine"), nil }}}}
			turn := &looptest.Turn{Engine: looptest.Host(t, nil, p), Message: "hello", Where: func(context.Context) phases.Context { return looptest.Where() }, Model: script(calling("c", "odd", `{}`), looptest.Reply{Text: "done"})}
			answer, err := run(t.Context(), turn)
			if err != nil || answer != "done" {
				t.Errorf("answer %q, %v", answer, err)
			}
		})
	}
}
