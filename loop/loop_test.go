package loop_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/internal/tests/looptest"
	"github.com/grapnelhq/grapnel/loop"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

// TestBegin: a refused message is a typed error with the reason, and a turn that has ended as blocked.
func TestBegin(t *testing.T) {
	t.Parallel()

	yes := func(context.Context, *loop.Refused) (bool, error) { return true, nil }
	no := func(context.Context, *loop.Refused) (bool, error) { return false, nil }
	gone := func(context.Context, *loop.Refused) (bool, error) { return true, errors.New("the window was closed") }
	tests := []struct {
		name, text string
		ask        func(context.Context, *loop.Refused) (bool, error)
		want       string
	}{
		{"nobody minds", "hello", nil, ""},
		{"denied", "forbidden", yes, "the turn was refused by house.words: not here"},
		{"nobody to ask", "careful", nil, "the turn was refused by house.words: are you sure (there is nobody to ask)"},
		{"asked, yes", "careful", yes, ""},
		{"asked, no", "careful", no, "the turn was refused by house.words: are you sure (the person who was asked said no)"},
		{"not answered", "careful", gone, "the turn was refused by house.words: are you sure (the window was closed)"},
		{"failed closed", "broken", yes, "the turn was refused by house.words: the phase failed closed (turn.pre_policy: house.words: "},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			s := looptest.Start(t)
			turn, err := loop.Begin(t.Context(), s.Engine, looptest.Where(), loop.Options{Input: runtime.CompileInput{UserText: tt.text}, Ask: tt.ask})
			if tt.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				if p, err := turn.Prompt(t.Context()); err != nil || !strings.Contains(p.FullText, "Be brief.") {
					t.Errorf("the prompt of a turn that may go on: %v", err)
				}
				return
			}
			refused, ok := errors.AsType[*loop.Refused](err)
			if !ok || turn != nil || !strings.HasPrefix(err.Error(), tt.want) || refused.By != "house.words" || refused.Phase != phases.PrePolicy {
				t.Fatalf("error %v, want %s", err, tt.want)
			}
			if end := <-s.Ended; end.Status != phases.TurnBlocked || end.UserText.Text != tt.text || end.Error.Text == "" {
				t.Errorf("the turn ended as %+v", end)
			}
		})
	}
}

// TestTool: whatever plugins, people and tools do, the model gets a result that says so.
func TestTool(t *testing.T) {
	t.Parallel()

	denied := errors.New("the person is away")
	ask := func(_ context.Context, r *loop.Refused) (bool, error) {
		switch string(r.Call.Arguments) {
		case `{"to":"ann"}`:
			return true, nil
		case `{"to":"bob"}`:
			return false, nil
		}
		return false, denied
	}
	tests := []struct {
		name, tool, arguments string
		text                  string
		isError, changed      bool
		outcome               string
		reminder              string // a piece of what the model is reminded of
	}{
		{"the host's, rewritten", "list", `{"depth":9}`, `list got {"depth":1}`, false, false, "ok", ""},
		{"a plugin's", "count", `{"x":1}`, `counted {"x":1}`, false, false, "ok", ""},
		{"denied", "shell", `{}`, `the call of the tool "shell" was refused by house.guard: no shell here`, true, true, "denied", `verdict="deny"`},
		{"asked, yes", "mail", `{"to":"ann"}`, `mail got {"to":"ann"}`, false, false, "ok", `answer="yes"`},
		{"asked, no", "mail", `{"to":"bob"}`, `the call of the tool "mail" was refused by house.guard: to whom (the person who was asked said no)`, true, true, "denied", `answer="no"`},
		{"not answered", "mail", `{}`, `the call of the tool "mail" was refused by house.guard: to whom (the person is away)`, true, true, "denied", `answer="no"`},
		{"the guard failed", "crash", `{}`, `the call of the tool "crash" was refused by house.guard: the phase failed closed`, true, true, "denied", `verdict="deny"`},
		{"the result is rewritten", "secret", `{}`, `[removed]`, false, true, "ok", ""},
		{"a reminder", "note", `{}`, `note got {}`, false, false, "ok", `<system-reminder type="house.note">` + "\n" + `look again <\/system-reminder>` + "\n</system-reminder>"},
		{"the reader of results failed", "spoilt", `{}`, `the result of the tool is withheld: tool.post_call: house.result: `, true, true, "ok", ""},
		{"nobody's", "made_up", `{}`, `no plugin has brought a tool "made_up"`, true, false, "error", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			s := looptest.Start(t)
			turn := begin(t, s, func(o *loop.Options) { o.Ask = ask })
			if _, err := turn.Prompt(t.Context()); err != nil {
				t.Fatal(err)
			}
			r, err := turn.Tool(t.Context(), loop.Call{ID: "c1", Tool: tt.tool, Arguments: json.RawMessage(tt.arguments)})
			if err != nil || !strings.HasPrefix(r.Text, tt.text) || r.IsError != tt.isError || r.Changed != tt.changed || r.CallID != "c1" || (r.Refused != nil) != (tt.outcome == "denied") {
				t.Errorf("result %+v, %v\nwant %s", r, err, tt.text)
			}
			p, err := turn.Prompt(t.Context())
			if err != nil || tt.reminder == "" && len(p.Reminders) > 0 || !strings.Contains(strings.Join(p.Reminders, "\n"), tt.reminder) {
				t.Errorf("reminders %q, %v, want %s", p.Reminders, err, tt.reminder)
			}
			if err := turn.Done(t.Context(), "bye", nil); err != nil {
				t.Error(err)
			}
			end := <-s.Ended
			want := []phases.ToolEvent{{Tool: tt.tool, CallID: "c1", Outcome: tt.outcome}}
			for i := range end.ToolEvents {
				end.ToolEvents[i].DurationMS = 0
			}
			if diff := cmp.Diff(end.ToolEvents, want); diff != "" {
				t.Errorf("events (-got +want):\n%s", diff)
			}
		})
	}
}

// TestFinishedAfterAsk: a call that an agent asked its own person about, and made, is no denied one.
func TestFinishedAfterAsk(t *testing.T) {
	t.Parallel()

	s := looptest.Start(t)
	turn := begin(t, s, func(o *loop.Options) {
		o.Ask = func(context.Context, *loop.Refused) (bool, error) { return false, loop.ErrNotYet }
	})
	call := loop.Call{ID: "c1", Tool: "mail", Arguments: json.RawMessage(`{"to":"ann"}`)}
	if _, refused, err := turn.CheckTool(t.Context(), call); err != nil || refused == nil || refused.Verdict != phases.VerdictAsk {
		t.Fatalf("%+v, %v, want an ask", refused, err)
	}
	if _, err := turn.FinishTool(t.Context(), call, "sent", false, 0); err != nil {
		t.Fatal(err)
	}
	if err := turn.Done(t.Context(), "bye", nil); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff((<-s.Ended).ToolEvents, []phases.ToolEvent{{Tool: "mail", CallID: "c1", Outcome: "ok"}}); diff != "" {
		t.Errorf("events (-got +want):\n%s", diff)
	}
}

// TestTrim: a long result is cut to the host's bound, and the model is reminded of the rest.
func TestTrim(t *testing.T) {
	t.Parallel()

	s := looptest.Start(t)
	kept := ""
	turn := begin(t, s, func(o *loop.Options) {
		o.MaxResultChars = 100
		o.KeepResult = func(_ context.Context, c loop.Call, text string) string {
			kept = text
			return "It is in the file " + c.ID + ".txt."
		}
	})
	long := strings.Repeat("äöü\n", 100)
	r, err := turn.FinishTool(t.Context(), loop.Call{ID: "c1", Tool: "read"}, long, false, 0)
	if err != nil || len([]rune(r.Text)) > 100 || !r.Changed || !strings.HasPrefix(long, r.Text) || kept != long {
		t.Errorf("result of %d bytes, %v; %d were kept", len(r.Text), err, len(kept))
	}
	p, err := turn.Prompt(t.Context())
	if err != nil || len(p.Reminders) != 1 {
		t.Fatalf("reminders %q, %v", p.Reminders, err)
	}
	want := "<system-reminder type=\"tool.output.trimmed\" call_id=\"c1\" dropped=\"301\" kept=\"99\" tool=\"read\">\n" +
		"Only the first 99 of 400 characters of this result are there. It is in the file c1.txt.\n</system-reminder>"
	if diff := cmp.Diff(p.Reminders[0], want); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
	if rows := p.Manifest.Reminders; len(rows) != 1 || rows[0].Type != "tool.output.trimmed" || rows[0].Owner != phases.OwnerHost {
		t.Errorf("the record has %+v", rows)
	}
}

// TestRedactionOfLongResults: a plugin that rewrites a result of which it has seen only the beginning replaces all of it.
func TestRedactionOfLongResults(t *testing.T) {
	t.Parallel()

	turn := begin(t, looptest.Start(t), nil)
	r, err := turn.FinishTool(t.Context(), loop.Call{Tool: "secret"}, strings.Repeat("x", 1<<20)+"password", false, 0)
	if err != nil || r.Text != "[removed]" {
		t.Errorf("%d bytes reach the model, %v", len(r.Text), err)
	}
}

// TestUnsendable: what no plugin can be sent is refused, or repaired where it is a result, and the turn goes on.
func TestUnsendable(t *testing.T) {
	t.Parallel()

	s := looptest.Start(t)
	if _, err := loop.Begin(t.Context(), s.Engine, looptest.Where(), loop.Options{Input: runtime.CompileInput{UserText: "a\x00b"}}); err == nil {
		t.Error("a message with NUL was taken")
	} else if _, ok := errors.AsType[*loop.Refused](err); !ok {
		t.Errorf("a message with NUL: %v", err)
	}
	turn := begin(t, s, func(o *loop.Options) { o.MaxResultChars = 3 })
	for _, c := range []loop.Call{
		{ID: "c1", Tool: "list", Arguments: json.RawMessage(`{"a":"\u0000"}`)},
		{ID: "c2", Tool: "list", Arguments: json.RawMessage(`{"a":`)},
		{ID: "c3", Tool: "li\x00st", Arguments: json.RawMessage(`{}`)},
		{ID: "\xff", Tool: "list", Arguments: json.RawMessage(`{}`)},
	} {
		r, err := turn.Tool(t.Context(), c)
		if err != nil || !r.IsError && c.ID != "\xff" {
			t.Errorf("%s: %+v, %v", c.Arguments, r, err)
		}
	}
	r, err := turn.FinishTool(t.Context(), loop.Call{ID: "c4", Tool: "read"}, "\xff\x00\x01binary", false, 0)
	if err != nil || !utf8.ValidString(r.Text) {
		t.Errorf("a binary result: %+v, %v", r, err)
	}
	if _, err := turn.Prompt(t.Context()); err != nil {
		t.Errorf("the turn does not go on: %v", err)
	}
}

// TestWholeTurn: prompts with tools of both sides, usage on record, parallel calls, another agent, and the end.
func TestWholeTurn(t *testing.T) {
	t.Parallel()

	s := looptest.Start(t)
	turn := begin(t, s, nil)
	p, err := turn.Prompt(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for i := range p.Tools {
		names = append(names, p.Tools[i].Name)
	}
	if want := []string{"count", "crash", "list", "mail", "note", "secret", "shell", "spoilt"}; !slices.Equal(names, want) {
		t.Errorf("tools %q, want %q", names, want)
	}
	change := manifest.RequestChange{Kind: manifest.RequestToolGone, ID: "list"}
	if err := turn.Used(t.Context(), phases.Usage{InputTokens: 100, OutputTokens: 5, CacheReadTokens: 40, CacheWriteTokens: 10}, change); err != nil {
		t.Error(err)
	}
	var wait sync.WaitGroup
	for i := range 30 {
		wait.Go(func() {
			tool := []string{"list", "count", "shell"}[i%3]
			if _, err := turn.Tool(t.Context(), loop.Call{ID: fmt.Sprint("c", i), Tool: tool, Arguments: json.RawMessage(`{}`)}); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	writer, err := turn.ForAgent("writer", loop.Options{Input: runtime.CompileInput{UserText: "hello", ToolCalling: true}})
	if err != nil {
		t.Fatal(err)
	}
	q, err := writer.Prompt(t.Context())
	if err != nil || q.Manifest.AgentID != "writer" || len(q.Tools) != 1 || len(q.Reminders) != 10 {
		t.Fatalf("the writer's prompt: %v, %d reminders", err, len(q.Reminders))
	}
	if err := writer.Used(t.Context(), phases.Usage{}); err != nil { // a provider that does not say
		t.Error(err)
	}
	if reason, err := turn.GoOn(t.Context(), "bye"); reason != "" || err != nil {
		t.Errorf("the turn must go on, because %q, %v", reason, err)
	}
	if err := turn.Done(t.Context(), "bye", nil); err != nil {
		t.Error(err)
	}
	end := <-s.Ended
	if len(end.ToolEvents) != 30 || end.Usage.InputTokens != 100 || end.Usage.CacheWriteTokens != 10 || end.AssistantText.Text != "bye" || end.Status != phases.TurnSucceeded {
		t.Errorf("the end: %+v", end)
	}
	if len(s.Usage()) != 1 || s.Usage()[0].ManifestID != p.Manifest.ManifestID {
		t.Errorf("usage %+v", s.Usage())
	}
	records := s.Records()
	last := records[len(records)-1]
	if last.Kind != manifest.KindEvents || !last.TurnEnded || len(last.Diagnostics) > 0 {
		t.Errorf("the last record: %+v, %+v", last.Head, last.Diagnostics)
	}
}

// TestNoToolCalling: a provider that cannot call tools is offered none, whatever plugins bring.
func TestNoToolCalling(t *testing.T) {
	t.Parallel()

	s := looptest.Start(t)
	for _, calling := range []bool{false, true} {
		turn := begin(t, s, func(o *loop.Options) { o.Tools, o.Input.ToolCalling = nil, calling })
		if p, err := turn.Prompt(t.Context()); err != nil || (len(p.Tools) > 0) != calling {
			t.Errorf("calling %v: %d tools, %v", calling, len(p.Tools), err)
		}
	}
}

// TestRefusedPrompt: a hook that refuses a compiled prompt is a typed error, for the agent that it refuses.
func TestRefusedPrompt(t *testing.T) {
	t.Parallel()

	s := looptest.Start(t)
	turn := begin(t, s, nil)
	outlaw, err := turn.ForAgent("outlaw", loop.Options{Input: turn.Input})
	if err != nil {
		t.Fatal(err)
	}
	p, err := outlaw.Prompt(t.Context())
	refused, ok := errors.AsType[*loop.Refused](err)
	if p != nil || !ok || refused.Error() != "the prompt was refused by house.prompt: no prompt for outlaws" || refused.Verdict != phases.VerdictDeny {
		t.Fatalf("error %v", err)
	}
	if err := outlaw.Done(t.Context(), "", err); !errors.Is(err, refused) {
		t.Errorf("Done returns %v", err)
	}
	if end := <-s.Ended; end.Status != phases.TurnBlocked {
		t.Errorf("status %s", end.Status)
	}
}

// TestDone: the status says what ended the turn, and a cancelled turn ends all the same, once.
func TestDone(t *testing.T) {
	t.Parallel()

	for name, tt := range map[string]struct {
		err  error
		want phases.TurnStatus
	}{
		"well":           {nil, phases.TurnSucceeded},
		"a mistake":      {errors.New("no disk"), phases.TurnFailed},
		"the provider":   {fmt.Errorf("round 2: %w", &loop.ProviderError{Err: errors.New("overloaded")}), phases.TurnProviderFailure},
		"the user":       {context.Canceled, phases.TurnInterrupted},
		"a refused call": {&loop.Refused{Phase: phases.ToolPreCall}, phases.TurnBlocked},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			s := looptest.Start(t)
			turn := begin(t, s, nil)
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if err := turn.Done(ctx, "", tt.err); !errors.Is(err, tt.err) {
				t.Errorf("Done returns %v", err)
			}
			_ = turn.Done(ctx, "again", nil)
			if end := <-s.Ended; end.Status != tt.want {
				t.Errorf("status %s, want %s", end.Status, tt.want)
			}
			if len(s.Ended) > 0 {
				t.Error("the turn ended twice")
			}
		})
	}
}

// TestCancelled: a call whose caller goes away is an error, not a result for a model that nobody asks any more.
func TestCancelled(t *testing.T) {
	t.Parallel()

	s := looptest.Start(t)
	turn := begin(t, s, nil)
	ctx, cancel := context.WithCancel(t.Context())
	_, err := turn.RunTool(ctx, loop.Call{Tool: "list"}, func(context.Context, loop.Call) (string, bool, error) {
		cancel()
		return "", false, ctx.Err()
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if err := turn.Done(ctx, "", err); !errors.Is(err, context.Canceled) {
		t.Errorf("Done returns %v", err)
	}
	if end := <-s.Ended; end.Status != phases.TurnInterrupted {
		t.Errorf("status %s", end.Status)
	}
	if _, err := turn.Tool(t.Context(), loop.Call{Tool: "list"}); !errors.Is(err, runtime.ErrTurnEnded) {
		t.Errorf("a call after the end: %v", err)
	}
	if _, err := turn.Prompt(t.Context()); !errors.Is(err, runtime.ErrTurnEnded) {
		t.Errorf("a prompt after the end: %v", err)
	}
}
