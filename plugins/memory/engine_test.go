package memory_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/internal/tests/storetest"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/plugins/memory"
	"github.com/grapnelhq/grapnel/plugins/memory/internal/toolset"
	"github.com/grapnelhq/grapnel/runtime"
)

// place gives the plugin's process a data folder of its own. Tests that use it are not
// parallel: it sets the environment.
func place(tb testing.TB) {
	tb.Helper()
	tb.Setenv("XDG_DATA_HOME", tb.TempDir())
	dir, err := os.MkdirTemp("", "me") //nolint:usetesting // a socket needs a short path
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = os.RemoveAll(dir) }) // only litter in a temporary folder
	tb.Setenv("XDG_RUNTIME_DIR", dir)
}

// patient gives the hooks more time than an operator would: these tests are about what
// happens, on machines that may be busy.
const patient = `version: 1
budgets:
  turn: {time: 5m}
  phases:
    turn.pre_policy: {time: 1m}
    turn.pre_prompt_context: {time: 1m}
    turn.pre_tool_materialization: {time: 1m}
    turn.pre_prompt_compile: {time: 1m}
`

// patience is a declaration with such times.
func patience(text string) string {
	return patient + strings.TrimPrefix(text, "version: 1\n") + `    limits: {start: 5m, tool: 5m}
    subscriptions:
      memory.policy: {timeout: 1m}
      memory.recall: {timeout: 1m}
      memory.tools: {timeout: 1m}
      memory.prompt: {timeout: 1m}
`
}

// engine starts the plugin as a process of this test binary.
func engine(tb testing.TB, text string, o runtime.Options) *runtime.Engine {
	tb.Helper()
	program, err := os.Executable()
	if err != nil {
		tb.Fatal(err)
	}
	cfg, err := config.Loader{}.Parse([]byte(patience(text)), "grapnel.yaml")
	if err != nil {
		tb.Fatal(err)
	}
	o.Builtins = map[string]runtime.Launch{"memory": {Path: program}}
	eng, err := runtime.New(tb.Context(), cfg, o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { stop(tb, eng) })
	return eng
}

// stop ends an engine; a second time does nothing.
func stop(tb testing.TB, eng *runtime.Engine) {
	tb.Helper()
	if err := eng.Close(context.WithoutCancel(tb.Context())); err != nil {
		tb.Error(err)
	}
}

// done is what a turn came to.
type done struct {
	*runtime.Compiled

	section *manifest.Section
	text    string
}

// turn runs a whole turn of ada's as a host does, with calls of tools in the middle, and
// waits for what runs behind it.
func turn(t *testing.T, eng *runtime.Engine, id, says string, calls func(turn *runtime.Turn)) done {
	t.Helper()
	return turnOf(t, eng, phases.Context{
		WorkspaceID: "w", ThreadID: "t" + id, TurnID: id, Mode: phases.ModeAgent, Actor: phases.Actor{Kind: "user", ID: "ada"},
	}, says, calls)
}

func turnOf(t *testing.T, eng *runtime.Engine, where phases.Context, says string, calls func(turn *runtime.Turn)) done {
	t.Helper()
	turn, err := eng.BeginTurn(t.Context(), where)
	if err != nil {
		t.Fatal(err)
	}
	text := phases.T(says)
	for _, in := range []phases.Input{
		&phases.PrePolicyInput{UserText: text}, &phases.PrePromptContextInput{UserText: text}, &phases.PreToolsInput{ToolCalling: true},
	} {
		if out, err := turn.Dispatch(t.Context(), in); err != nil || out.Error != nil {
			t.Fatalf("%s: %v, %v", phases.PhaseOf(in), err, out)
		}
	}
	compiled, err := turn.Compile(t.Context(), runtime.CompileInput{UserText: says, ToolCalling: true})
	if err != nil {
		t.Fatal(err)
	}
	if calls != nil {
		calls(turn)
	}
	_, err = turn.End(t.Context(), &phases.PostTurnInput{Status: phases.TurnSucceeded, UserText: phases.NewPreview(says, 4000)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := eng.WaitBackground(ctx); err != nil {
		t.Fatal(err)
	}
	d := done{Compiled: compiled, text: compiled.Prompt.FullText}
	if i := slices.IndexFunc(compiled.Manifest.Sections, func(s manifest.Section) bool { return s.SectionID == "memory_recall" }); i >= 0 {
		d.section = &compiled.Manifest.Sections[i]
	}
	return d
}

// call calls a tool in a turn.
func call(t *testing.T, turn *runtime.Turn, tool, args string, into any) {
	t.Helper()
	res, err := turn.CallTool(t.Context(), phases.ToolCall{Tool: tool, Arguments: json.RawMessage(args)})
	if err != nil {
		t.Fatal(err)
	}
	if res.IsError {
		t.Fatalf("%s: %s", tool, res.Content)
	}
	if err := json.Unmarshal(res.Content, into); err != nil {
		t.Fatal(err)
	}
}

// TestTwoProcesses tells the agent something in one engine, and sees it in another one
// that comes after it; then has it forgotten.
func TestTwoProcesses(t *testing.T) {
	place(t)
	first := engine(t, declaration, runtime.Options{})
	told := turn(t, first, "1", "Remember that my dog is called Rex.", nil)
	if !strings.Contains(told.text, "call memory_remember with it") || strings.Contains(told.text, "<MEMORIES>") {
		t.Errorf("the first prompt:\n%s", told.text)
	}
	if len(told.Diagnostics) > 0 {
		t.Errorf("diagnostics %+v", told.Diagnostics)
	}
	stop(t, first)

	second := engine(t, declaration, runtime.Options{})
	asked := turn(t, second, "2", "What does my dog eat?", nil)
	if !strings.Contains(asked.text, ") my dog is called Rex\n</MEMORIES>") {
		t.Fatalf("the second prompt:\n%s", asked.text)
	}
	refs := asked.section.SourceRefs
	if len(refs) != 1 || refs[0].Kind != "memory" || len(refs[0].ID) != 26 || refs[0].Label != "user fact by memory.recall" {
		t.Errorf("references %+v", refs)
	}
	if asked.section.Owner != "memory" || asked.section.Truncation != nil {
		t.Errorf("section %+v", asked.section)
	}

	// What the user wishes not to be used is not, in chat nothing ever is, and what they
	// wish not to be kept is not.
	for id, says := range map[string]string{"3": "Don't use your memory: what does my dog eat?", "4": "Forget my dog's name."} {
		if d := turn(t, second, id, says, nil); strings.Contains(d.text, "Rex") {
			t.Errorf("%s\n%s", says, d.text)
		}
	}
	where := phases.Context{WorkspaceID: "w", ThreadID: "t5", TurnID: "5", Mode: phases.ModeChat, Actor: phases.Actor{Kind: "user", ID: "ada"}}
	if d := turnOf(t, second, where, "What does my dog eat?", nil); d.section != nil || len(d.Tools) > 0 {
		t.Errorf("in chat: %+v, %d tools", d.section, len(d.Tools))
	}
	turn(t, second, "6", "Don't save this: my cat is called Kitty.", nil)
	if d := turn(t, second, "7", "What is my cat called?", nil); strings.Contains(d.text, "Kitty") {
		t.Errorf("saved:\n%s", d.text)
	}

	turn(t, second, "8", "Forget what you know about my dog.", func(turn *runtime.Turn) {
		var m toolset.Matches
		call(t, turn, toolset.Forget, `{"query":"my dog"}`, &m)
		var gone toolset.Forgotten
		call(t, turn, toolset.Forget, `{"query":"my dog","confirmation":"`+m.Confirmation+`"}`, &gone)
		if gone.Count != 1 || gone.IDs[0] != refs[0].ID {
			t.Errorf("matches %+v, gone %+v", m, gone)
		}
	})
	if d := turn(t, second, "9", "What does my dog eat?", nil); strings.Contains(d.text, "Rex") {
		t.Errorf("not forgotten:\n%s", d.text)
	}
}

// TestModelOfTheHost: a model that the host offers finds what the rules do not.
func TestModelOfTheHost(t *testing.T) {
	place(t)
	asked := make(chan string, 4)
	eng := engine(t, declaration, runtime.Options{Complete: func(_ context.Context, rq phases.CompletionRequest) (phases.CompletionResponse, error) {
		asked <- rq.Purpose
		return phases.CompletionResponse{
			Text:  `{"facts":[{"category":"fact","text":"The user is off to Graz for good","evidence":"off to Graz for good","slot":"home","explicit":false}]}`,
			Model: "fake", Stopped: phases.StoppedEnd,
		}, nil
	}})
	turn(t, eng, "1", "Next month I'm off to Graz for good. What do I pack?", nil)
	if got := <-asked; got != "memory extract" {
		t.Errorf("asked for %q", got)
	}
	if d := turn(t, eng, "2", "What is the weather in Graz?", nil); !strings.Contains(d.text, ") The user is off to Graz for good") {
		t.Errorf("prompt:\n%s", d.text)
	}
}

// TestWithoutGrants: what the operator does not allow is not there, and says so.
func TestWithoutGrants(t *testing.T) {
	storetest.SkipShort(t)
	place(t)
	tests := []struct{ name, old, new, code string }{
		{"no policy", "policies: [memory/turn_policy]", "policies: []", "forbidden"},
		{"policy not seen", "see: [policy, ", "see: [", ""},
		{"text not seen", "user_text, ", "", "user_text_withheld"},
		{"contexts not seen", "policy, context, metadata", "policy, metadata", phases.CodeNotDelivered},
		{"no section", "sections: [memory_recall]", "sections: []", phases.CodeNotDelivered},
	}
	eng := engine(t, declaration, runtime.Options{})
	turn(t, eng, "1", "Remember that my dog is called Rex.", nil)
	stop(t, eng)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			text := strings.Replace(declaration, tt.old, tt.new, 1)
			if text == declaration {
				t.Fatalf("no %q", tt.old)
			}
			d := turn(t, engine(t, text, runtime.Options{}), "2", "What does my dog eat?", nil)
			if strings.Contains(d.text, "Rex") {
				t.Errorf("prompt:\n%s", d.text)
			}
			if tt.code != "" && !slices.ContainsFunc(d.Diagnostics, func(x phases.Diagnostic) bool { return x.Code == tt.code }) {
				t.Errorf("diagnostics %+v", d.Diagnostics)
			}
		})
	}
}

// BenchmarkStart is a start of the plugin in a process of its own until it takes calls,
// the English rules read, with a database that is made and with one that is there.
func BenchmarkStart(b *testing.B) {
	for name, fresh := range map[string]bool{"new": true, "there": false} {
		b.Run(name, func(b *testing.B) {
			place(b)
			stop(b, engine(b, declaration, runtime.Options{}))
			for b.Loop() {
				b.StopTimer()
				if fresh {
					place(b)
				}
				b.StartTimer()
				eng := engine(b, declaration, runtime.Options{})
				b.StopTimer()
				stop(b, eng)
				b.StartTimer()
			}
		})
	}
}

// TestTurnGoesOn: a database that is locked takes nothing of a turn but its memories, and what is wrong stands in the
// diagnostics, with what to do.
func TestTurnGoesOn(t *testing.T) {
	place(t)
	path := filepath.Join(t.TempDir(), "memory.db")
	placed := declaration + "      dsn: sqlite:" + path + "\n"
	before := engine(t, placed, runtime.Options{})
	turn(t, before, "1", "Remember that my dog is called Rex.", nil)
	stop(t, before)

	unlock := memory.Locked(t, "sqlite:"+path)
	defer unlock()
	events := make(chan runtime.Event, 1000)
	eng := engine(t, placed, runtime.Options{OnEvent: func(e runtime.Event) {
		select {
		case events <- e:
		default:
		}
	}})
	d := turn(t, eng, "2", "I prefer tabs. What does my dog eat?", nil)
	if d.section != nil || len(d.Tools) != 5 {
		t.Errorf("section %+v, %d tools", d.section, len(d.Tools))
	}
	for _, want := range []string{"locked", "which other program"} {
		if !slices.ContainsFunc(d.Diagnostics, func(x phases.Diagnostic) bool {
			return x.Subscription == "memory.recall" && strings.Contains(x.Detail, want)
		}) {
			t.Errorf("no %q in %+v", want, d.Diagnostics)
		}
	}
	for len(events) > 0 {
		if e := <-events; e.Subscription == "memory.extract" && strings.Contains(e.Detail, "locked") {
			return
		}
	}
	t.Error("no event of memory.extract says that the database is locked")
}
