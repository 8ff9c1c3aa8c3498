package recall

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// texts returns the terms' texts.
func texts(terms []Term) []string {
	var all []string
	for _, t := range terms {
		all = append(all, t.Text)
	}
	return all
}

// TestLongQueries: of a long utterance the beginning and the end are read.
func TestLongQueries(t *testing.T) {
	t.Parallel()
	middle := strings.Repeat("filler ", 150_000)
	q := Read("begin " + middle + "midst " + middle + "end")
	if diff := cmp.Diff([]string{"begin", "filler", "end"}, dropShort(q.Vocabulary(), "filler")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	var many strings.Builder
	for i := range 100_000 {
		fmt.Fprintf(&many, "w%s ", strings.Repeat("x", i%7)+string(rune('a'+i%26))+string(rune('a'+i/26%26))+string(rune('a'+i/676%26)))
	}
	if n := len(Read(many.String()).Vocabulary()); n != maxVocabulary {
		t.Errorf("%d terms, want %d", n, maxVocabulary)
	}
	short := strings.Repeat("é", window) + " " + strings.Repeat("o", window-1)
	if head, tail := windows(short); head != short || tail != "" {
		t.Errorf("a text of two windows is divided into %d and %d bytes", len(head), len(tail))
	}
	long := strings.Repeat("é", 3*window)
	if head, tail := windows(long); utf8.RuneCountInString(head) != window || utf8.RuneCountInString(tail) != window {
		t.Errorf("windows of %d and %d bytes", len(head), len(tail))
	}
}

// dropShort leaves out beginnings of a word, which the edge of a window makes.
func dropShort(terms []string, word string) []string {
	return slices.DeleteFunc(terms, func(t string) bool {
		return t != word && (strings.HasPrefix(word, t) || strings.HasSuffix(word, t))
	})
}

func TestTerms(t *testing.T) {
	t.Parallel()
	stats := Stats{Docs: 1000, AvgLen: 10, DF: map[string]int{
		"the": 700, "leas": 3, "schedul": 40, "postgresql": 3, "clock": 3, "tool": 900, "zero": 0, "less": -1,
	}}
	for _, c := range []struct {
		name, query string
		want        []string
	}{
		{
			"rarest first, then oftenest in the query, then in order",
			"the tool: scheduler, lease, postgresql, the clock, that clock",
			[]string{"clock", "leas", "postgresql", "schedul", "the", "tool"},
		},
		{"what no item has is omitted", "zero less nonsense", nil},
		{"nothing", "", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(c.want, texts(Terms(Read(c.query), stats))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	if got := Read("postgresqll").Exact().Prefixes(stats); len(got) > 0 {
		t.Errorf("an exact query guesses %q", got)
	}
}
