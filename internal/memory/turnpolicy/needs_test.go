package turnpolicy

import (
	"testing"
)

// TestNeedsAreNeeded: what a pattern matches has one of the texts that it is said to
// need, or the pattern would be passed over.
func TestNeedsAreNeeded(t *testing.T) {
	t.Parallel()
	for _, lazy := range builtin(t).languages {
		l, err := lazy.compile()
		if err != nil {
			t.Fatal(err)
		}
		for p := range l.patterns() {
			for _, text := range p.Says {
				for _, s := range sentencesOf(text) {
					if p.match.MatchString(s) && !p.possible(s) {
						t.Errorf("%s matches %q and needs one of %q", p.ID, s, p.needs)
					}
				}
			}
		}
	}
}
