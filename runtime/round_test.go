package runtime_test

import (
	"context"
	"errors"
	"testing"

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
