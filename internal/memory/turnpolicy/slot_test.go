package turnpolicy

import (
	"strings"
	"testing"
)

func TestSlot(t *testing.T) {
	t.Parallel()
	rules := builtin(t)
	tests := []struct {
		text string
		want Slot
	}{
		{"My name is Zoë.", SlotName},
		{"call me Zoë", SlotName},
		{"Please call me Zoë", SlotName},
		{"I live in Graz", "home"},
		{"I've recently moved to New York", "home"},
		{"The user lives in São Paulo", "home"},
		{"I now work for Initech", "employer"},
		{"The user works at Initech", "employer"},
		{"The user's time zone is Europe/Vienna", "time_zone"},
		{"Reply to me in German from now on", "reply_language"},
		{"My OS is Debian 13", "operating_system"},
		{"My email is zoe@example.com", "email"},
		{"Ich wohne jetzt in Wien", "home"},
		{"J'habite à Paris", "home"},
		{"我搬到了上海。", "home"},

		// Facts that stand beside each other, or that are none.
		{"", ""},
		{"I prefer tabs", ""},
		{"I'm allergic to nuts", ""},
		{"Call me back later", ""},
		{"Call me when the build is done", ""},
		{"My dog's name is Rex", ""},
		{"The server's name is kiwi", ""},
		{"I live in Graz in summer and in Vienna in winter", ""},
		{"I don't live in Graz", ""},
		{"I used to live in Graz", ""},
		{"I no longer work at Initech", ""},
		{"I work at night", ""},
		{"I live in a small house", ""},
		{"My editor is slow", ""},
		{"My wife lives in Graz", ""},
		{"We use Postgres", ""},
		{"Our editor is Helix", ""},
		{"Answer me in one sentence", ""},
		{"Never answer in German", ""},
		{"Ich wohne nicht mehr in Graz", ""},
		{"Je n'habite pas à Lyon", ""},
		{"我不住在上海", ""},
		{"犬が好きです", ""},
		{"My name is " + strings.Repeat("x", MaxFactText), ""},
	}
	for _, tt := range tests {
		t.Run(tt.text[:min(len(tt.text), 40)], func(t *testing.T) {
			t.Parallel()
			if got := rules.Slot(tt.text); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
