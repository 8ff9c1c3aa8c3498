package turnpolicy

import (
	"slices"
	"testing"
)

// TestSays holds every rule of every language to its examples, by itself.
func TestSays(t *testing.T) {
	t.Parallel()
	for _, lazy := range builtin(t).languages {
		l, err := lazy.compile()
		if err != nil {
			t.Error(err)
		}
		for p := range l.patterns() {
			if len(p.Says) == 0 {
				t.Errorf("%s has no examples", p.ID)
			}
			if p.slot != "" {
				continue // TestSlotSays
			}
			for _, text := range p.Says {
				matches := slices.ContainsFunc(sentencesOf(text), func(s string) bool {
					_, ok := p.find(l.hear(s))
					return ok
				})
				if !matches {
					t.Errorf("%s does not match %q", p.ID, text)
				}
			}
		}
	}
}

// sentencesOf returns the sentences of a text as the rules see them.
func sentencesOf(text string) []string {
	text = blank(fold(text).text, false)
	var all []string
	for _, s := range sentences(text) {
		all = append(all, s.in(text))
	}
	return all
}
