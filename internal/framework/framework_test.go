package framework_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/internal/framework"
	"github.com/grapnelhq/grapnel/internal/tests/looptest"
	"github.com/grapnelhq/grapnel/loop"
	"github.com/grapnelhq/grapnel/phases"
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
