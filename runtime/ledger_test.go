package runtime_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

// TestDispatchFloodOfOneTurn: a turn whose ledger is full refuses dispatches, calls of
// tools and all but one compilation, whose manifest says how many it refused. It can be
// ended.
func TestDispatchFloodOfOneTurn(t *testing.T) {
	t.Parallel()

	var full *phases.Error
	eng := newHosted(plugin("p", on("look", phases.PostCompaction, reply()))).start(t)
	turn := begin(t, eng)
	done := 0
	for done < 100_000 {
		_, err := turn.Dispatch(t.Context(), &phases.PostCompactionInput{})
		if errors.As(err, &full) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		done++
	}
	if full == nil || full.Code != phases.CauseBudgetExhausted || turn.LedgerBytes() < 4<<20 || turn.LedgerBytes() > 5<<20 {
		t.Fatalf("after %d dispatches the ledger has %d bytes: %v", done, turn.LedgerBytes(), full)
	}
	if _, err := turn.CallTool(t.Context(), phases.ToolCall{Tool: "x"}); !errors.As(err, &full) || full.Code != phases.CauseBudgetExhausted {
		t.Errorf("a call: %v", err)
	}
	last, err := turn.Compile(t.Context(), runtime.CompileInput{})
	if last == nil || err == nil || phases.CodeOf(err) != phases.CauseBudgetExhausted { // its phases ahead of the prompt are refused
		t.Fatalf("the last round: %v, %v", last, err)
	}
	record, err := json.Marshal(last.Manifest)
	if err != nil || len(record) > 5<<20 || len(record) < 1<<20 {
		t.Errorf("the manifest has %d bytes: %v", len(record), err)
	}
	if n := len(last.Manifest.Runs); n != done {
		t.Errorf("%d runs of %d dispatches", n, done)
	}
	if i := slices.IndexFunc(last.Manifest.Diagnostics, func(d manifest.Diagnostic) bool { return d.Code == string(phases.CauseBudgetExhausted) }); i < 0 ||
		!strings.HasPrefix(last.Manifest.Diagnostics[i].Message, "3 dispatches and calls were refused") {
		t.Errorf("the manifest does not say what was refused: %+v", last.Manifest.Diagnostics)
	}
	for range 2 {
		if again, err := turn.Compile(t.Context(), runtime.CompileInput{}); again != nil || phases.CodeOf(err) != phases.CauseBudgetExhausted {
			t.Errorf("compiled again: %v", err)
		}
	}
	if _, err := turn.End(t.Context(), nil); err != nil {
		t.Errorf("the end: %v", err)
	}
}

// TestHugeIDs: no entry of the engine takes an id, a path or a name of a model that is
// longer than its limit, and the error names the field.
func TestHugeIDs(t *testing.T) {
	t.Parallel()

	eng := newHosted(offering("p", says("good", "fine"))).start(t)
	huge := strings.Repeat("x", phases.MaxIDBytes+1)
	long := host()
	long.TaskID = huge
	turn := opened(t, eng)
	in := phases.ToolCall{Tool: "good", Context: long}
	keyed := phases.ToolCall{Tool: "good", IdempotencyKey: huge}
	for name, err := range map[string]error{
		"BeginTurn task_id":             errorOf(eng.BeginTurn(t.Context(), long)),
		"CompileTurn task_id":           errorOf(eng.CompileTurn(t.Context(), long, runtime.CompileInput{})),
		"StartSession task_id":          errorOf(eng.StartSession(t.Context(), long, "startup")),
		"ResumeSession task_id":         errorOf(eng.ResumeSession(t.Context(), long, &phases.SessionResumeInput{})),
		"EndSession task_id":            errorOf(eng.EndSession(t.Context(), long, "")),
		"Dispatch task_id":              errorOf(eng.Dispatch(t.Context(), long, &phases.PostCompactionInput{})),
		"CallTool task_id":              errorOf(eng.CallTool(t.Context(), "p", in)),
		"CallTool idempotency_key":      errorOf(eng.CallTool(t.Context(), "p", keyed)),
		"Turn.CallTool idempotency_key": errorOf(turn.CallTool(t.Context(), keyed)),
		"Compile model":                 errorOf(turn.Compile(t.Context(), runtime.CompileInput{Model: huge})),
		"Round provider":                errorOf(turn.Compile(t.Context(), runtime.CompileInput{Provider: huge})),
	} {
		_, field, _ := strings.Cut(name, " ")
		var bad *phases.Error
		if !errors.As(err, &bad) || bad.Code != phases.CauseOversizeRequest || !strings.HasPrefix(bad.Message, field+": it has 257 bytes") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestReminderFloodOfOneTurn: what waits for the next prompt counts, too.
func TestReminderFloodOfOneTurn(t *testing.T) {
	t.Parallel()

	eng := newHosted(plugin("p", on("remind", phases.PostCompaction,
		reply(&phases.Reminder{Type: "note", Text: strings.Repeat("x", 1000)}), phases.KindReminder))).start(t)
	turn := begin(t, eng)
	for range 3000 {
		if _, err := turn.Dispatch(t.Context(), &phases.PostCompactionInput{}); phases.CodeOf(err) == phases.CauseBudgetExhausted {
			return
		}
	}
	t.Errorf("3,000 reminders of 1,000 bytes make %d", turn.LedgerBytes())
}

// TestSessionFloodOfOneWorkspace: sessions of one workspace push out none of another one.
func TestSessionFloodOfOneWorkspace(t *testing.T) {
	t.Parallel()

	eng := newHosted(plugin("p", on("start", phases.SessionStart, reply(contextOf("c", "hello")), phases.KindPromptContext))).start(t)
	start := func(c phases.Context) {
		t.Helper()
		startSession(t, eng, c)
	}
	quiet := phases.Context{WorkspaceID: "quiet", SessionID: "s"}
	start(quiet)
	for i := range 5000 {
		start(phases.Context{WorkspaceID: "flood", SessionID: strings.Repeat("s", i%200) + string(rune('a'+i/200))})
	}
	turn, err := eng.BeginTurn(t.Context(), quiet)
	if err != nil || !turn.InSession() {
		t.Errorf("the session was forgotten: %v", err)
	}
}
