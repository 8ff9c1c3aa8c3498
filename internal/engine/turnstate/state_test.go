package turnstate

import (
	"strings"
	"testing"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
)

// TestTextsOfEachRecord: each record of a turn may have its own share of texts, also of what comes while one is kept.
func TestTextsOfEachRecord(t *testing.T) {
	t.Parallel()

	s := New(config.TurnBudget{}, nil)
	s.KeepTexts = true
	hand := func(letter string) {
		s.Remind(phases.MergedReminder{Type: "note", Text: strings.Repeat(letter, maxTextBytes/2)})
		s.HandReminders(phases.ToolPostCall, func(*phases.MergedReminder) bool { return true })
	}
	hand("a")
	for _, letter := range []string{"b", "c", "d", "e"} {
		m := manifest.New()
		s.Events(&m, nil, config.TurnBudget{}, false)
		if texts := s.Texts(&m); len(texts) != 1 || len(texts[0].Text) != maxTextBytes/2 {
			t.Errorf("before %s there are %d texts", letter, len(texts))
		}
		hand(letter)
		s.Kept()
	}
	if s.textBytes != maxTextBytes/2 {
		t.Errorf("%d bytes are counted", s.textBytes)
	}
}
