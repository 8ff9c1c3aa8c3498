package turnpolicy

import (
	"regexp/syntax"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestNeeds(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, pattern string
		want          []string
	}{
		{"literal", "remember", []string{"remember"}},
		{"longest of several", "do ?not remember", []string{"not remember"}},
		{"either", "forget|remember", []string{"forget", "remember"}},
		{"common beginning", "save|store", []string{"ave", "tore"}},
		{"either or anything", "forget|.*", nil},
		{"optional", "(?:please )?", nil},
		{"repeated", "(?:no ){2}", []string{"no "}},
		{"class", "[ab]c", []string{"c"}},
		{"group", "(?P<it>me)+", []string{"me"}},
		{"any case", "(?i)remember", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tree, err := syntax.Parse(tt.pattern, syntax.Perl)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(needs(tree.Simplify()), tt.want); diff != "" {
				t.Errorf("(-got +want):\n%s", diff)
			}
		})
	}
}

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
