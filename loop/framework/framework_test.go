package framework_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/compiler"
	"github.com/grapnelhq/grapnel/loop"
	"github.com/grapnelhq/grapnel/loop/framework"
	"github.com/grapnelhq/grapnel/loop/looptest"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

// TestPlace: reminders stay where they stood first, however often the conversation is made again.
func TestPlace(t *testing.T) {
	t.Parallel()

	turn, err := framework.Begin(t.Context(), looptest.Start(t).Engine, looptest.Where(), loop.Options{}, "hello")
	if err != nil {
		t.Fatal(err)
	}
	round := func(talk ...string) string {
		p, err := turn.Compile(t.Context(), "Be kind.", nil)
		if err != nil || len(framework.System(p)) != 2 || !strings.Contains(p.StableText, "Be kind.") {
			t.Fatalf("%v, %d texts", err, len(framework.System(p)))
		}
		return strings.Join(framework.Place(turn, p, talk, func(text string) string { return strings.SplitN(text, "\"", 3)[1] }), " ")
	}
	remind := func(name string) {
		if err := turn.Remind(phases.Reminder{Type: name}); err != nil {
			t.Fatal(err)
		}
	}
	got := []string{round("a")}
	remind("one")
	remind("two")
	got = append(got, round("a", "b"), round("a", "b", "c"))
	remind("three")
	got = append(got, round("a", "b", "c"))
	remind("four")
	got = append(got, round("x"), round("x", "y"))
	want := []string{"a", "a b one two", "a b one two c", "a b one two c three", "x one two three four", "x one two three four y"}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
}

// TestForAgent: another agent has the options of the turn, and a conversation of its own.
func TestForAgent(t *testing.T) {
	t.Parallel()

	s := looptest.Start(t)
	o := loop.Options{MaxResultChars: 5, Tools: looptest.Tools()}
	o.Input.ToolCalling = true
	turn, err := framework.Begin(t.Context(), s.Engine, looptest.Where(), o, "hello")
	if err != nil {
		t.Fatal(err)
	}
	other, err := turn.ForAgent("writer")
	if err != nil {
		t.Fatal(err)
	}
	p, err := other.Compile(t.Context(), "", []phases.Tool{{Name: "own"}})
	if err != nil || len(p.Tools) != 2 || p.Manifest.AgentID != "writer" {
		t.Fatalf("%d tools, %v", len(p.Tools), err)
	}
	r, err := other.FinishTool(t.Context(), loop.Call{Tool: "own"}, "a long result", false, 0)
	if err != nil || r.Text != "a lon" {
		t.Errorf("result %q, %v", r.Text, err)
	}
	if got := framework.Tools(s.Engine); len(got) != 2 {
		t.Errorf("plugins have %d tools", len(got))
	}
}

// TestSystem: parts that are put together without anything in between begin with the text of the record.
func TestSystem(t *testing.T) {
	t.Parallel()

	for want, p := range map[string]*compiler.Prompt{
		"stable|---|dynamic|\n\nmessage": {StableText: "stable", DynamicText: "dynamic", Boundary: "---", FullText: "stable---dynamic", SystemMessages: []compiler.Message{{Text: "message"}}},
		"stable":                         {StableText: "stable", FullText: "stable"},
		"dynamic":                        {DynamicText: "dynamic", FullText: "dynamic"},
		"":                               {},
	} {
		text := framework.Text(&loop.Prompt{Prompt: p})
		if got := strings.ReplaceAll(want, "|", ""); text != got || text != strings.Join(framework.System(&loop.Prompt{Prompt: p}), "") || !strings.HasPrefix(text, p.FullText) {
			t.Errorf("the system prompt is %q, want %q", text, got)
		}
	}
}

// TestUsed: system messages that moved into the system prompt are on record, and what cannot be kept fails no turn.
func TestUsed(t *testing.T) {
	t.Parallel()

	s := looptest.Start(t)
	o := loop.Options{Input: runtime.CompileInput{Custom: []compiler.CustomSection{{SectionID: "aside", Placement: phases.PlacementSystemMessage, Text: "By the way."}}}}
	turn, err := framework.Begin(t.Context(), s.Engine, looptest.Where(), o, "hello")
	if err != nil {
		t.Fatal(err)
	}
	if err := turn.Used(t.Context(), phases.Usage{}); err != nil {
		t.Errorf("without a prompt: %v", err)
	}
	if _, err := turn.Compile(t.Context(), "", nil); err != nil {
		t.Fatal(err)
	}
	for _, tokens := range []int{1, -1} {
		if err := turn.Used(t.Context(), phases.Usage{InputTokens: tokens}); err != nil {
			t.Errorf("with %d tokens: %v", tokens, err)
		}
	}
	if err := turn.Done(t.Context(), "", nil); err != nil {
		t.Fatal(err)
	}
	if err := turn.Used(t.Context(), phases.Usage{}); !errors.Is(err, runtime.ErrTurnEnded) {
		t.Errorf("behind the end: %v", err)
	}
	var changes []manifest.RequestChange
	for _, m := range s.Records() {
		for _, r := range m.Requests {
			changes = append(changes, r.Changes...)
		}
	}
	want := []manifest.RequestChange{{Kind: manifest.RequestPlacement, ID: "aside", Manifest: "system_message", Sent: "system"}}
	if diff := cmp.Diff(changes, want); diff != "" {
		t.Errorf("changes (-got +want):\n%s", diff)
	}
}

// TestPaths: of the options' tools only the paths matter: none is offered, and none makes a model call tools.
func TestPaths(t *testing.T) {
	t.Parallel()

	paths := func(json.RawMessage) []string { return []string{"/srv"} }
	turn, err := framework.Begin(t.Context(), looptest.Start(t).Engine, looptest.Where(), loop.Options{Tools: []loop.Tool{{Tool: phases.Tool{Name: "read"}, Paths: paths}}}, "hello")
	if err != nil {
		t.Fatal(err)
	}
	other, err := turn.ForAgent("other")
	if err != nil {
		t.Fatal(err)
	}
	for _, turn := range []*framework.Turn{turn, other} {
		p, err := turn.Compile(t.Context(), "", []phases.Tool{{Name: "write"}})
		if err != nil || len(p.Tools) != 0 || len(p.Manifest.HostTools) != 1 {
			t.Errorf("%v: tools %v, on record %v", err, p.Tools, p.Manifest.HostTools)
		}
		c, _, err := turn.CheckTool(t.Context(), loop.Call{Tool: "read"})
		if diff := cmp.Diff(c.Paths, []string{"/srv"}); err != nil || diff != "" {
			t.Errorf("%v, paths (-got +want):\n%s", err, diff)
		}
	}
}

// TestCall: a call of the framework's is judged, and its error passed on; one that is pending has no result.
func TestCall(t *testing.T) {
	t.Parallel()

	s := looptest.Start(t)
	turn, err := framework.Begin(t.Context(), s.Engine, looptest.Where(), loop.Options{}, "hello")
	if err != nil {
		t.Fatal(err)
	}
	broken, later := errors.New("no disk"), errors.New("ask a person")
	call := func(tool string, failed error) (loop.Result, error) {
		run := func(c loop.Call) (string, error) { return "got " + string(c.Arguments), failed }
		return turn.Call(t.Context(), loop.Call{Tool: tool, Arguments: json.RawMessage(`{"depth":9}`)}, run, func(err error) bool { return errors.Is(err, later) })
	}
	if r, err := call("list", nil); err != nil || r.Text != `got {"depth":1}` {
		t.Errorf("a rewritten call: %+v, %v", r, err)
	}
	if r, err := call("shell", nil); err != nil || r.Refused == nil || !r.Changed || !strings.Contains(r.Text, "no shell here") {
		t.Errorf("a denied call: %+v, %v", r, err)
	}
	if r, err := call("list", broken); !errors.Is(err, broken) || r.Text != "no disk" {
		t.Errorf("a call that failed: %+v, %v", r, err)
	}
	if r, err := call("list", later); !errors.Is(err, later) || r.Text != "" {
		t.Errorf("a call that is pending: %+v, %v", r, err)
	}
	if err := turn.Done(t.Context(), "bye", nil); err != nil {
		t.Error(err)
	}
	if _, err := call("list", nil); err == nil {
		t.Error("a call after the turn's end")
	}
	var outcomes []string
	for _, e := range (<-s.Ended).ToolEvents {
		outcomes = append(outcomes, e.Outcome)
	}
	if diff := cmp.Diff(outcomes, []string{"ok", "denied", "error"}); diff != "" {
		t.Errorf("outcomes (-got +want):\n%s", diff)
	}
}
