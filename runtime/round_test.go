package runtime_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
	"github.com/grapnelhq/grapnel/sdk"
)

// verdicts is an engine whose turn.pre_policy decides as the user says, and which
// notes the phases that its hooks are called in.
func verdicts(t *testing.T, log *journal) *runtime.Engine {
	t.Helper()
	decide := func(_ context.Context, _ *sdk.Call, in phases.Input) ([]phases.Contribution, error) {
		said, _ := in.(*phases.PrePolicyInput)
		log.add("policy: " + said.UserText.Value)
		switch said.UserText.Value {
		case "deny":
			return sdk.Reply(deny("no"))
		case "ask":
			return sdk.Reply(ask("may I?"))
		case "fail":
			return nil, errors.New("down")
		}
		return nil, nil
	}
	hooks := []sdk.Hook{on("policy", phases.PrePolicy, decide, phases.KindDecision)}
	hooks[0].OnFailure = word(phases.FailClosed)
	for _, phase := range []phases.Phase{phases.PrePromptContext, phases.PostPreflight, phases.PreTools, phases.PrePromptCompile} {
		hooks = append(hooks, on("h", phase, log.noting(string(phase), reply())))
	}
	for i := range hooks[1:] {
		hooks[1+i].Name = []string{"context", "preflight", "tools", "compile"}[i]
	}
	return newHosted(plugin("p", hooks...)).start(t)
}

// TestRounds: the phases ahead of the compiler run once in a turn, and those that the host has run itself do not run
// again, except to judge another text. A denied turn goes no further by a second try.
func TestRounds(t *testing.T) {
	t.Parallel()

	const before, tools, compile = "turn.pre_prompt_context", "turn.pre_tool_materialization", "turn.pre_prompt_compile"
	policy := func(text string) phases.Input { return &phases.PrePolicyInput{UserText: phases.T(text)} }
	tests := []struct {
		name string
		// own are the phases that the host dispatches first, said what each round has.
		own  []phases.Input
		said []string
		want []string // what is called
		code phases.Cause
	}{
		{"two rounds", nil, []string{"hi", "hi"}, []string{"policy: hi", before, tools, compile, compile}, ""},
		{"the host's own", []phases.Input{policy("mine"), &phases.PreToolsInput{}}, []string{"mine"}, []string{"policy: mine", tools, before, compile}, ""},
		{"without the text again", []phases.Input{policy("mine")}, []string{"", ""}, []string{"policy: mine", before, tools, compile, compile}, ""},
		{"another text", []phases.Input{policy("mine")}, []string{"hi", "deny"}, []string{"policy: mine", "policy: hi", before, tools, compile, "policy: deny"}, phases.CauseDenied},
		{"denied twice", nil, []string{"deny", "deny"}, []string{"policy: deny"}, phases.CauseDenied},
		{"denied, and the host goes on", []phases.Input{policy("deny")}, []string{"deny"}, []string{"policy: deny"}, phases.CauseDenied},
		{"denied, and another text", []phases.Input{policy("deny"), policy("hi"), policy("hi")}, []string{"hi"}, []string{"policy: deny", "policy: hi", "policy: hi"}, phases.CauseDenied},
		{"denied, and a failure", []phases.Input{policy("deny"), policy("fail")}, []string{"hi"}, []string{"policy: deny", "policy: fail"}, phases.CauseDenied},
		{"failed, then well", nil, []string{"fail", "hi"}, []string{"policy: fail", "policy: hi", before, tools, compile}, ""},
		{"asked, and nobody answers", nil, []string{"ask", "ask"}, []string{"policy: ask", "policy: ask"}, "ask"},
		{"the host has asked", []phases.Input{policy("ask")}, []string{"ask"}, []string{"policy: ask", before, tools, compile}, ""},
		{"denied after it was allowed", []phases.Input{policy("hi"), policy("deny")}, []string{"deny"}, []string{"policy: hi", "policy: deny"}, phases.CauseDenied},
		{"asked, and another text", nil, []string{"ask", "hi", "hi"}, []string{"policy: ask", "policy: hi", before, tools, compile, compile}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			var log journal
			turn := begin(t, verdicts(t, &log))
			for _, in := range tt.own {
				if out, _ := turn.Dispatch(t.Context(), in); out == nil {
					t.Fatal("no outcome")
				}
			}
			var last error
			for _, said := range tt.said {
				done, err := turn.Compile(t.Context(), runtime.CompileInput{UserText: said})
				if done == nil || (done.Prompt == nil) != (err != nil) {
					t.Fatalf("%+v, %v", done, err)
				}
				last = err
			}
			if got := phases.CodeOf(last); got != tt.code {
				t.Errorf("code %q, want %q: %v", got, tt.code, last)
			}
			if refused, ok := errors.AsType[*phases.Error](last); tt.code != "" && (!ok || refused.Phase != phases.PrePolicy || refused.Subscription != "p.policy") {
				t.Errorf("it does not say who refused: %+v", last)
			}
			checkSame(t, "called", log.all(), tt.want)
		})
	}
}

// TestRoundPlan: a recall plan of a later round is recalled then.
func TestRoundPlan(t *testing.T) {
	t.Parallel()

	var log journal
	turn := begin(t, verdicts(t, &log))
	for _, plan := range []string{"", `{}`, `{}`} {
		prompted(t)(turn.Compile(t.Context(), runtime.CompileInput{RecallPlan: raw(plan)}))
	}
	n := 0
	for _, line := range log.all() {
		if line == string(phases.PostPreflight) {
			n++
		}
	}
	if n != 1 {
		t.Errorf("recalled %d times: %v", n, log.all())
	}
	outcome(t)(turn.End(t.Context(), nil))
	if done, err := turn.Compile(t.Context(), runtime.CompileInput{}); done != nil || !errors.Is(err, runtime.ErrTurnEnded) {
		t.Errorf("behind the end: %+v, %v", done, err)
	}
}

// TestEndSession: a session ends by its context alone, also one that is not known, and
// nothing of it is left for turns.
func TestEndSession(t *testing.T) {
	t.Parallel()

	var ended journal
	eng := newHosted(plugin("p",
		on("start", phases.SessionStart, reply(contextOf("c", "text")), phases.KindPromptContext),
		on("end", phases.SessionEnd, ended.noting("end", reply())),
	)).start(t)
	where := host()
	where.SessionID = "s"
	known := func() bool {
		turn := beginAt(t, eng, where)
		defer turn.End(t.Context(), nil) //nolint:errcheck // nothing hears of it
		return turn.InSession()
	}
	if known() {
		t.Error("a session that nobody began is known")
	}
	if _, err := eng.StartSession(t.Context(), where, "startup"); err != nil || !known() {
		t.Errorf("a session that began is not known: %v", err)
	}
	for range 2 {
		if out, err := eng.EndSession(t.Context(), where, "done"); err != nil || out.Phase != phases.SessionEnd {
			t.Errorf("%+v, %v", out, err)
		}
	}
	if known() {
		t.Error("a session that ended is known")
	}
	if err := eng.WaitBackground(t.Context()); err != nil || len(ended.all()) != 2 {
		t.Errorf("%v: %v", ended.all(), err)
	}
	closeEngine(t, eng)
	if _, err := eng.EndSession(t.Context(), where, ""); !errors.Is(err, runtime.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
}

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
