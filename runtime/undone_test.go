package runtime_test

import (
	"context"
	"errors"
	goruntime "runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
	"github.com/grapnelhq/grapnel/sdk"
)

// reminding is a plugin that has something to say whenever it may.
func reminding() *sdk.Plugin {
	say := func(text string) handler { return reply(&phases.Reminder{Type: "note", Text: text}) }
	return plugin("p",
		on("start", phases.SessionStart, say("the session began"), phases.KindReminder),
		on("after", phases.ToolPostCall, say("a tool was called"), phases.KindReminder),
	)
}

func texts(list []phases.MergedReminder) []string {
	out := []string{}
	for _, r := range list {
		out = append(out, r.Text+" by "+r.Owner)
	}
	return out
}

// TestRemindersWait: a session's start and its turns leave the reminders that no prompt has delivered to its next
// prompt, which records them; the host's own are delivered in the same way.
func TestRemindersWait(t *testing.T) {
	t.Parallel()

	h, sink := newHosted(reminding()), &memorySink{}
	h.opts.Sink = sink
	eng := h.start(t)
	where := host()
	where.SessionID = "s"
	startSession(t, eng, where)
	first := beginAt(t, eng, where)
	outcome(t)(first.Dispatch(t.Context(), &phases.ToolPostCallInput{Tool: "list"}))
	if out := outcome(t)(first.End(t.Context(), nil)); len(out.Diagnostics) > 0 {
		t.Errorf("a turn that leaves its reminders to the next one says %+v", out.Diagnostics)
	}
	second := beginAt(t, eng, where)
	if err := second.Remind(phases.Reminder{Type: "tool.output.trimmed", Text: "trimmed"}); err != nil {
		t.Fatal(err)
	}
	if err := second.Remind(phases.Reminder{Text: "without a type"}); err == nil {
		t.Error("a reminder without a type was taken")
	}
	done := prompted(t)(second.Compile(t.Context(), runtime.CompileInput{}))
	want := []string{"the session began by p.start", "a tool was called by p.after", "trimmed by host"}
	checkSame(t, "reminders", texts(done.Reminders), want)
	if rows := sink.last("w", "t").Reminders; len(rows) != 3 || rows[2].Owner != phases.OwnerHost {
		t.Errorf("the record has %+v", rows)
	}
	if done, err := second.Compile(t.Context(), runtime.CompileInput{}); err != nil || len(done.Reminders) > 0 {
		t.Errorf("the next round has %v, %v", texts(done.Reminders), err)
	}
	outcome(t)(second.Dispatch(t.Context(), &phases.ToolPostCallInput{Tool: "list"}))
	var grown [2]int // a reminder that waits is charged once
	for i := range grown {
		before := second.LedgerBytes()
		prompted(t)(second.Compile(t.Context(), runtime.CompileInput{KeepReminders: true}))
		grown[i] = second.LedgerBytes() - before
		_, _ = second.HandReminders(phases.ToolPostCall, func(*phases.MergedReminder) bool { return true })
	}
	if grown[0] != grown[1] {
		t.Errorf("the ledger grows by %d with a reminder and without", grown)
	}
}

// TestContinue: a turn goes on with the prompt of another one, or says why not.
func TestContinue(t *testing.T) {
	t.Parallel()

	eng := newHosted().start(t)
	empty, of, on := begin(t, eng), begin(t, eng), begin(t, eng)
	compileOnce(t.Context(), of)
	for i, got := range []error{on.Continue(nil), on.Continue(empty), of.Continue(of), on.Continue(of), on.Continue(of)} {
		if (got == nil) != (i == 3) || errors.Is(got, runtime.ErrNothingCompiled) != (i < 2) {
			t.Errorf("%d: %v", i, got)
		}
	}
	if out := outcome(t)(of.End(t.Context(), nil)); len(out.Diagnostics) > 0 {
		t.Errorf("reports are missing: %+v", out.Diagnostics)
	}
}

// TestUndone: what a host has left undone by the end of its turn is in the outcome, in the record, and an event.
func TestUndone(t *testing.T) {
	t.Parallel()

	usage := phases.Usage{InputTokens: 1}
	steps := map[string]func(ctx context.Context, turn *runtime.Turn){
		"compile": compileOnce,
		"usage":   func(ctx context.Context, turn *runtime.Turn) { _ = turn.ReportUsage(ctx, usage) },
		"request": func(_ context.Context, turn *runtime.Turn) { _ = turn.ReportRequest(nil) },
		"tool": func(ctx context.Context, turn *runtime.Turn) {
			_, _ = turn.Dispatch(ctx, &phases.ToolPostCallInput{Tool: "list"})
		},
	}
	tests := []struct {
		name, steps string
		end         phases.PostTurnInput
		want        []string
	}{
		{"nothing was compiled", "", phases.PostTurnInput{}, nil},
		{"a prompt without a report", "compile", phases.PostTurnInput{}, []string{"prompt_not_reported"}},
		{"the sum is reported", "compile", phases.PostTurnInput{Usage: usage}, nil},
		{"a turn that failed", "compile", phases.PostTurnInput{Status: phases.TurnProviderFailure}, nil},
		{"the usage is reported", "compile usage", phases.PostTurnInput{}, nil},
		{"the request is reported", "compile request", phases.PostTurnInput{}, nil},
		{"one round of two is reported", "compile usage compile", phases.PostTurnInput{}, []string{"prompt_not_reported"}},
		{"a reminder behind the last prompt", "tool", phases.PostTurnInput{}, []string{"reminders_undelivered"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			var events journal
			h, sink := newHosted(reminding()), &memorySink{}
			h.opts.Sink, h.opts.OnEvent = sink, events.events(runtime.EventDiagnostic)
			turn := begin(t, h.start(t))
			for step := range strings.FieldsSeq(tt.steps) {
				steps[step](t.Context(), turn)
			}
			out := outcome(t)(turn.End(t.Context(), &tt.end))
			if got := codes(out); !slices.Equal(got, tt.want) {
				t.Errorf("End says %q, want %q", got, tt.want)
			}
			if got := events.all(); len(got) != len(tt.want) {
				t.Errorf("events %q, want %q", got, tt.want)
			}
			for _, code := range tt.want {
				if m := sink.last("w", "t"); !slices.ContainsFunc(m.Diagnostics, func(d manifest.Diagnostic) bool { return d.Code == code }) {
					t.Errorf("the record has %+v", m.Diagnostics)
				}
			}
		})
	}
}

func compileOnce(ctx context.Context, turn *runtime.Turn) {
	_, _ = turn.Compile(ctx, runtime.CompileInput{})
}

// TestNotEnded: a turn that the host drops, or still holds when the engine closes, is reported.
func TestNotEnded(t *testing.T) {
	t.Parallel()

	seen := make(chan string, 4)
	h := newHosted()
	h.opts.OnEvent = func(e runtime.Event) {
		if e.Code == "turn_not_ended" {
			seen <- e.Message
		}
	}
	eng := h.start(t)
	outcome(t)(begin(t, eng).End(t.Context(), nil)) // not reported
	_ = begin(t, eng)
	for dropped := ""; dropped == ""; {
		goruntime.GC()
		select {
		case dropped = <-seen:
			if !strings.Contains(dropped, "dropped") {
				t.Error(dropped)
			}
		case <-time.After(10 * time.Millisecond): // the collector runs cleanups in its own time
		case <-t.Context().Done():
			t.Fatal("a dropped turn was not reported")
		}
	}
	held := begin(t, eng)
	closeEngine(t, eng)
	if message := <-seen; !strings.Contains(message, "closed") {
		t.Error(message)
	}
	goruntime.KeepAlive(held)
	if len(seen) > 0 {
		t.Errorf("and %q", <-seen)
	}
}

// TestForAgent: another agent of a turn has its own prompts and records, and shares what the turn has gathered.
func TestForAgent(t *testing.T) {
	t.Parallel()

	p := whole()
	asked := make(chan string, 8)
	p.Hooks = append(p.Hooks, on("who", phases.PrePromptCompile, func(_ context.Context, c *sdk.Call, _ phases.Input) ([]phases.Contribution, error) {
		asked <- c.Context.AgentID
		return nil, nil
	}))
	h, sink := newHosted(p), &memorySink{}
	h.opts.Sink = sink
	turn := begin(t, h.start(t))
	other, err := turn.ForAgent("writer")
	if err != nil {
		t.Fatal(err)
	}
	for _, agent := range []*runtime.Turn{turn, other} {
		done := prompted(t)(agent.Compile(t.Context(), runtime.CompileInput{}))
		if id := agent.Context().AgentID; <-asked != id || sink.last("w", "t").AgentID != id || !strings.Contains(done.Prompt.FullText, "a remembered fact") {
			t.Errorf("the record of %q has %q", id, done.Manifest.AgentID)
		}
	}
	if _, err := turn.ForAgent(strings.Repeat("x", phases.MaxIDBytes+1)); err == nil {
		t.Error("an id without bounds was taken")
	}
	outcome(t)(other.End(t.Context(), nil))
	if _, err := turn.Compile(t.Context(), runtime.CompileInput{}); err == nil {
		t.Error("the turn goes on after one of its agents has ended it")
	}
}
