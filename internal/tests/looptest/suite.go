package looptest

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/grapnelhq/grapnel/loop"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

// Turn is the turn that a framework must run: one message of a user, answered by a fake model.
type Turn struct {
	Engine *runtime.Engine
	Where  func(context.Context) phases.Context
	// Loop has what the adapter passes on: whom to ask, and how long results may be.
	Loop loop.Options
	// Instructions are the framework's own system prompt.
	Instructions string
	Message      string
	// Tools are the ones to give to the framework as its own.
	Tools []loop.Tool
	// Model answers a request, which it gets as the framework would send it. An error is the provider's.
	Model func(ctx context.Context, r Request) (Reply, error)
	// Streamed, if set, gets the model's text piece by piece; the model then streams.
	Streamed func(text string)
}

// Request is what the model receives.
type Request struct {
	System string
	// Messages are all others in order, tool results among them, as ROLE: TEXT.
	Messages []string
	// Tools are the names of the offered tools, in order.
	Tools []string
}

// Reply is what a model answers: a text, or calls.
type Reply struct {
	Text  string
	Calls []loop.Call
	Usage phases.Usage
}

// Run runs a turn in a framework, and returns its answer. An error that the adapter made must be found by errors.As.
type Run func(ctx context.Context, t *Turn) (answer string, err error)

// Test checks that an adapter does everything that a host must do, in whole turns of its framework. goesOn says that a turn
// of the framework goes on when a plugin denies its end.
func Test(t *testing.T, run Run, goesOn bool) {
	t.Helper()
	for _, c := range []struct {
		name string
		test func(t *testing.T, s *scene)
	}{
		{"prompt, tools and usage", testPrompt},
		{"refused turn", testRefused},
		{"tools", testTools},
		{"parallel calls", testParallel},
		{"reminder", testReminder},
		{"an end too early", func(t *testing.T, s *scene) { testEnd(t, s, goesOn) }},
		{"streaming", testStreaming},
		{"a provider that fails", testProvider},
		{"cancelled in the model", testCancelledModel},
		{"cancelled in a tool", testCancelledTool},
		{"a model that panics", testPanic},
		{"several at once", testSeveral},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.test(t, newScene(t, run))
		})
	}
}

// scene is one test: an engine, a turn, and what its model was sent.
type scene struct {
	*Engine

	run  Run
	turn *Turn

	mu       sync.Mutex
	requests []Request
}

func newScene(t *testing.T, run Run) *scene {
	t.Helper()
	s := &scene{Engine: Start(t), run: run}
	s.turn = &Turn{
		Engine: s.Engine.Engine, Where: func(context.Context) phases.Context { return Where() },
		Instructions: "You help with files.", Message: "hello", Tools: Tools(),
	}
	return s
}

// script makes the model answer with the replies, one a request.
func (s *scene) script(replies ...Reply) {
	s.turn.Model = func(_ context.Context, r Request) (Reply, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.requests = append(s.requests, r)
		if len(s.requests) > len(replies) {
			return Reply{}, errors.New("the model was asked too often")
		}
		return replies[len(s.requests)-1], nil
	}
}

// play runs the turn, and returns how it ended.
func (s *scene) play(t *testing.T, ctx context.Context) (answer string, end *phases.PostTurnInput, err error) { //nolint:revive // a helper begins with t
	t.Helper()
	answer, err = s.run(ctx, s.turn)
	if waited := s.WaitBackground(context.WithoutCancel(ctx)); waited != nil {
		t.Fatal(waited)
	}
	select {
	case end = <-s.Ended:
	default:
		t.Fatalf("the turn has not ended; the framework answered %q, %v", answer, err)
	}
	if len(s.Ended) > 0 {
		t.Error("the turn ended twice")
	}
	return answer, end, err
}

func calls(list ...loop.Call) Reply { return Reply{Calls: list} }

func call(id, tool, arguments string) loop.Call {
	return loop.Call{ID: id, Tool: tool, Arguments: json.RawMessage(arguments)}
}

func testPrompt(t *testing.T, s *scene) {
	first := Reply{Calls: []loop.Call{call("c1", "count", `{"x":1}`)}, Usage: phases.Usage{InputTokens: 100, OutputTokens: 7, CacheReadTokens: 40}}
	last := Reply{Text: "done", Usage: phases.Usage{InputTokens: 120, OutputTokens: 3}}
	s.script(first, last)
	answer, end, err := s.play(t, t.Context())
	if err != nil || answer != "done" || end.Status != phases.TurnSucceeded || end.AssistantText.Text != "done" || end.UserText.Text != "hello" {
		t.Fatalf("answer %q, %v; the turn ended as %+v", answer, err, end)
	}
	r := s.requests[0]
	for _, want := range []string{"Be brief.", "You help with files."} {
		if !strings.Contains(r.System, want) {
			t.Errorf("the system prompt lacks %q:\n%s", want, r.System)
		}
	}
	if got, want := manifest.Fingerprint(r.System, nil), s.Prompts()[0].FingerprintFull; got != want {
		t.Errorf("what was sent is %s, what was recorded %s:\n%s", got, want, r.System)
	}
	want := []string{"count", "crash", "list", "mail", "note", "secret", "shell", "spoilt"}
	if !slices.Equal(r.Tools, want) {
		t.Errorf("tools %q, want %q", r.Tools, want)
	}
	if m := s.requests[1].Messages; !strings.Contains(plain(m[len(m)-1]), plain(`counted {"x":1}`)) {
		t.Errorf("the result of a plugin's tool is not there: %q", m)
	}
	prompts, used := s.Prompts(), s.Usage()
	if len(prompts) != 2 || len(used) != 2 || used[0].ManifestID != prompts[0].ManifestID || used[0].Usage != first.Usage || used[1].ManifestID != prompts[1].ManifestID {
		t.Errorf("%d prompts, usage %+v", len(prompts), used)
	}
	if end.Usage.InputTokens != 220 || len(end.ToolEvents) != 1 || end.ToolEvents[0].Tool != "count" || end.ToolEvents[0].Outcome != "ok" {
		t.Errorf("the end has %+v, %+v", end.Usage, end.ToolEvents)
	}
}

func testRefused(t *testing.T, s *scene) {
	s.script(Reply{Text: "never"})
	s.turn.Message = "something forbidden"
	answer, end, err := s.play(t, t.Context())
	refused, ok := errors.AsType[*loop.Refused](err)
	told := ok && refused.By == "house.words" || strings.Contains(answer, "not here")
	if !told || len(s.requests) > 0 || end.Status != phases.TurnBlocked {
		t.Errorf("answer %q, %v, %d requests, status %s", answer, err, len(s.requests), end.Status)
	}
}

func testTools(t *testing.T, s *scene) {
	s.turn.Loop.Ask = func(_ context.Context, r *loop.Refused) (bool, error) {
		return strings.Contains(string(r.Call.Arguments), "ann"), nil
	}
	for _, step := range []struct{ name, tool, arguments, want string }{
		{"rewritten", "list", `{"depth":9}`, "list got {depth:1}"},
		{"denied", "shell", `{}`, "was refused by house.guard: no shell here"},
		{"asked, yes", "mail", `{"to":"ann"}`, "mail got {to:ann}"},
		{"the guard fails", "crash", `{}`, "was refused by house.guard"},
		{"the result is rewritten", "secret", `{}`, "[removed]"},
		{"the reader of results fails", "spoilt", `{}`, "the result of the tool is withheld"},
	} {
		t.Run(step.name, func(t *testing.T) {
			other := newScene(t, s.run)
			other.turn.Loop = s.turn.Loop
			other.script(calls(call("c1", step.tool, step.arguments)), Reply{Text: "done"})
			answer, end, err := other.play(t, t.Context())
			if err != nil || answer != "done" || end.Status != phases.TurnSucceeded || len(other.requests) != 2 {
				t.Fatalf("answer %q, %v, %d requests, status %s", answer, err, len(other.requests), end.Status)
			}
			if sent := plain(strings.Join(other.requests[1].Messages, "\n")); !strings.Contains(sent, plain(step.want)) {
				t.Errorf("the model was not sent %q:\n%s", step.want, sent)
			}
		})
	}
}

// plain drops what frameworks' ways to write JSON differ in.
func plain(text string) string { return strings.NewReplacer(`\`, "", `"`, "", " ", "").Replace(text) }

func testParallel(t *testing.T, s *scene) {
	s.script(calls(call("c1", "list", `{"depth":2}`), call("c2", "shell", `{}`), call("c3", "count", `{}`), call("c4", "secret", `{}`)), Reply{Text: "done"})
	answer, end, err := s.play(t, t.Context())
	if err != nil || answer != "done" {
		t.Fatalf("answer %q, %v", answer, err)
	}
	sent := strings.Join(s.requests[1].Messages, "\n")
	for _, want := range []string{"list got", "no shell here", "counted", "[removed]"} {
		if !strings.Contains(sent, want) {
			t.Errorf("the results lack %q:\n%s", want, sent)
		}
	}
	var events []string
	for _, e := range end.ToolEvents {
		events = append(events, e.Tool+" "+e.Outcome)
	}
	slices.Sort(events)
	if want := []string{"count ok", "list ok", "secret ok", "shell denied"}; !slices.Equal(events, want) {
		t.Errorf("events %q, want %q", events, want)
	}
}

func testReminder(t *testing.T, s *scene) {
	s.script(calls(call("c1", "note", `{}`)), calls(call("c2", "list", `{}`)), Reply{Text: "done"})
	if _, _, err := s.play(t, t.Context()); err != nil {
		t.Fatal(err)
	}
	const tag = `<system-reminder type="house.note">`
	count := func(r Request) (n, at int) {
		for i, m := range r.Messages {
			if strings.Contains(m, tag) {
				n, at = n+1, i
			}
		}
		return n, at
	}
	second, at := count(s.requests[1])
	third, again := count(s.requests[2])
	if first, _ := count(s.requests[0]); first != 0 || second != 1 || third != 1 || at != again || at != len(s.requests[1].Messages)-1 {
		t.Errorf("the reminder is in the requests %d, %d and %d times, at %d and %d:\n%q", first, second, third, at, again, s.requests)
	}
	for i, m := range s.requests[1].Messages { // what was said stays as it was, or no cache holds
		if s.requests[2].Messages[i] != m {
			t.Errorf("message %d has changed from %q to %q", i, m, s.requests[2].Messages[i])
		}
	}
	found := 0
	for _, m := range s.Records() {
		found += len(m.Reminders)
	}
	if found != 1 {
		t.Errorf("the records have %d reminders", found)
	}
}

func testEnd(t *testing.T, s *scene, goesOn bool) {
	s.script(Reply{Text: "too early"}, calls(call("c1", "list", `{}`)), Reply{Text: "done"})
	answer, end, err := s.play(t, t.Context())
	if err != nil || end.Status != phases.TurnSucceeded {
		t.Fatalf("%v, status %s", err, end.Status)
	}
	ignored := false
	for _, m := range s.Records() {
		ignored = ignored || slices.ContainsFunc(m.Diagnostics, func(d manifest.Diagnostic) bool { return d.Code == "deny_ignored" })
	}
	if !goesOn {
		if answer != "too early" || len(s.requests) != 1 || !ignored {
			t.Errorf("answer %q after %d requests; that the denial was ignored is on record: %t", answer, len(s.requests), ignored)
		}
		return
	}
	if answer != "done" || len(s.requests) != 3 || ignored {
		t.Fatalf("answer %q after %d requests; the denial was ignored: %t", answer, len(s.requests), ignored)
	}
	first := len(s.requests[0].Messages)
	for i, r := range s.requests[1:] { // also in the request behind the call, which the framework makes itself
		if m := r.Messages; !strings.Contains(m[first], "too early") || !strings.Contains(m[first+1], "run the tests") || len(m) != first+2+2*i {
			t.Errorf("request %d has %q", i+2, m)
		}
	}
}

func testStreaming(t *testing.T, s *scene) {
	var mu sync.Mutex
	var streamed strings.Builder
	s.turn.Streamed = func(text string) {
		mu.Lock()
		defer mu.Unlock()
		streamed.WriteString(text)
	}
	s.script(calls(call("c1", "list", `{"depth":5}`)), Reply{Text: "one two three", Usage: phases.Usage{InputTokens: 50, OutputTokens: 3}})
	answer, end, err := s.play(t, t.Context())
	if err != nil || answer != "one two three" || streamed.String() != "one two three" || end.AssistantText.Text != "one two three" {
		t.Errorf("answer %q, streamed %q, %v, the end has %q", answer, streamed.String(), err, end.AssistantText.Text)
	}
	if used := s.Usage(); len(used) != 1 || used[0].InputTokens != 50 {
		t.Errorf("usage %+v", used)
	}
}

func testProvider(t *testing.T, s *scene) {
	overloaded := errors.New("overloaded")
	s.turn.Model = func(context.Context, Request) (Reply, error) { return Reply{}, overloaded }
	answer, end, err := s.play(t, t.Context())
	if err == nil || !strings.Contains(err.Error(), "overloaded") || answer != "" || end.Status != phases.TurnProviderFailure {
		t.Errorf("answer %q, %v, status %s", answer, err, end.Status)
	}
}

func testCancelledModel(t *testing.T, s *scene) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s.turn.Model = func(ctx context.Context, _ Request) (Reply, error) {
		cancel()
		<-ctx.Done()
		return Reply{}, ctx.Err()
	}
	_, end, err := s.play(t, ctx)
	if err == nil || end.Status != phases.TurnInterrupted {
		t.Errorf("error %v, status %s", err, end.Status)
	}
}

func testCancelledTool(t *testing.T, s *scene) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s.script(calls(call("c1", "list", `{}`)), Reply{Text: "never"})
	for i := range s.turn.Tools {
		s.turn.Tools[i].Call = func(ctx context.Context, _ json.RawMessage) (string, error) {
			cancel()
			<-ctx.Done()
			return "", ctx.Err()
		}
	}
	_, end, err := s.play(t, ctx)
	if err == nil || end.Status != phases.TurnInterrupted || len(s.requests) != 1 {
		t.Errorf("error %v, status %s, %d requests", err, end.Status, len(s.requests))
	}
}

func testPanic(t *testing.T, s *scene) {
	s.turn.Model = func(context.Context, Request) (Reply, error) { panic("a mistake in the model") }
	run := s.run
	s.run = func(ctx context.Context, turn *Turn) (answer string, err error) {
		defer func() {
			if p := recover(); p != nil {
				err = errors.New("panicked")
			}
		}()
		return run(ctx, turn)
	}
	if _, end, err := s.play(t, t.Context()); err == nil || end.Status == phases.TurnSucceeded {
		t.Errorf("error %v, status %s", err, end.Status)
	}
}

// testSeveral runs turns of several threads at the same time.
func testSeveral(t *testing.T, s *scene) {
	var wait sync.WaitGroup
	for _, thread := range []string{"a", "b", "c", "d"} {
		wait.Go(func() {
			turn := *s.turn
			turn.Message = "hello from " + thread
			turn.Where = func(context.Context) phases.Context {
				where := Where()
				where.ThreadID = thread
				return where
			}
			rounds := 0
			turn.Model = func(_ context.Context, r Request) (Reply, error) {
				if !strings.Contains(strings.Join(r.Messages, "\n"), "hello from "+thread) {
					return Reply{}, errors.New("another thread's message")
				}
				if rounds++; rounds < 3 {
					return calls(call("same-id", "list", `{}`)), nil
				}
				return Reply{Text: "bye " + thread}, nil
			}
			if answer, err := s.run(t.Context(), &turn); err != nil || answer != "bye "+thread {
				t.Errorf("thread %s: %q, %v", thread, answer, err)
			}
		})
	}
	wait.Wait()
	if err := s.WaitBackground(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(s.Ended) != 4 {
		t.Errorf("%d turns have ended", len(s.Ended))
	}
}
