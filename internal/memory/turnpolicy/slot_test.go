package turnpolicy

import (
	"strings"
	"testing"
)

// TestSlot: facts that stand beside each other, or that are none, have no slot. The rules' files have examples with one.
func TestSlot(t *testing.T) {
	t.Parallel()
	rules := builtin(t)
	for text, want := range map[string]Slot{
		"My name is Zoë.": SlotName, "The user lives in São Paulo": "home", "I now work for Initech": "employer", "我搬到了上海。": "home",
	} {
		if got := rules.Slot(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
	for _, text := range []string{
		"", "I prefer tabs", "I'm allergic to nuts", "Call me back later", "Call me when the build is done", "My dog's name is Rex",
		"The server's name is kiwi", "I live in Graz in summer and in Vienna in winter", "I don't live in Graz", "I used to live in Graz",
		"I no longer work at Initech", "I work at night", "I live in a small house", "My editor is slow", "My wife lives in Graz",
		"We use Postgres", "Our editor is Helix", "Answer me in one sentence", "Never answer in German", "Ich wohne nicht mehr in Graz",
		"Je n'habite pas à Lyon", "我不住在上海", "犬が好きです", "My name is " + strings.Repeat("x", MaxFactText),
	} {
		if got := rules.Slot(text); got != "" {
			t.Errorf("%q has the slot %q", text, got)
		}
	}
}
