package turnstate

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

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

// TestBring: what calls of tools bring is kept in few entries, and in the order in which an
// entry of each would have it.
func TestBring(t *testing.T) {
	t.Parallel()

	for _, phase := range []phases.Phase{phases.ToolPreCall, phases.ToolPostCall} {
		row, _ := phases.Standard().Lookup(phase)
		if row.Accepts(phases.KindPromptSection) || row.Accepts(phases.KindToolBundle) {
			t.Errorf("%s brings more than sources and omitted rows", phase)
		}
	}
	all := []phases.Phase{phases.ToolPreCall, phases.ToolPostCall, phases.PrePolicy, phases.PreTools, phases.PrePromptCompile}
	for seed := range uint64(500) {
		random := rand.New(rand.NewPCG(seed, 1))
		s := New(config.TurnBudget{}, nil)
		var each []brought // one entry a call
		var outcomes [][]phases.HookSource
		for i := range 40 {
			b := brought{phase: all[random.IntN(len(all))], chars: i}
			if b.ofTool() {
				b.chars = 0
			}
			for j := range random.IntN(3) {
				b.sources = append(b.sources, phases.HookSource{ContributionID: fmt.Sprint(i, j)})
				b.omitted = append(b.omitted, phases.Omitted{ID: fmt.Sprint(i, j)})
			}
			b.sources, b.omitted = slices.Clip(b.sources), slices.Clip(b.omitted)
			outcomes = append(outcomes, b.sources)
			if !b.ofTool() {
				each = slices.DeleteFunc(each, func(o brought) bool { return o.phase == b.phase })
			}
			each = append(each, b)
			s.bring(b)
			if diff := cmp.Diff(flat(each), flat(s.brought)); diff != "" {
				t.Fatalf("seed %d, %d: (-want +got):\n%s", seed, i, diff)
			}
			if len(s.brought) > 2*len(all) {
				t.Fatalf("seed %d: %d entries", seed, len(s.brought))
			}
		}
		for i, list := range outcomes {
			for j, source := range list {
				if source.ContributionID != fmt.Sprint(i, j) {
					t.Fatalf("seed %d: the outcome of call %d has changed: %+v", seed, i, list)
				}
			}
		}
	}
}

// flat is what entries say, whichever has it.
func flat(list []brought) (out []string) {
	chars := map[phases.Phase]int{}
	for i := range list {
		for _, s := range list[i].sources {
			out = append(out, s.ContributionID)
		}
		chars[list[i].phase] += list[i].chars
	}
	for i := range list {
		for _, o := range list[i].omitted {
			out = append(out, o.ID)
		}
	}
	delete(chars, phases.ToolPreCall)
	delete(chars, phases.ToolPostCall)
	return append(out, fmt.Sprint(chars))
}
