package recall

import (
	"strings"
	"testing"
)

func TestGuess(t *testing.T) {
	t.Parallel()
	df := map[string]int{"databas": 3, "retent": 1, "invoic": 2, "memori": 1, "schema": 1, "legal": 9, "clean": 4, "product": 2, "produkt": 1, "rest": 5, "backup": 1}
	for word, want := range map[string]string{
		"databse":    "databas", // its stem is one letter short
		"retenion":   "retent",  // its stem has the ending that the right one loses
		"incvoices":  "invoic",  // a letter more
		"shcema":     "",        // the first two letters must be right
		"prodution":  "product",
		"produckt":   "product", // two are as near: the one that more items have
		"restarting": "",        // a short term is near to too much
		"clear":      "",        // so is a short word
		"bakcup":     "backup",  // two letters swapped
		"verlegal":   "",
	} {
		q := Read(word)
		s := Stats{Docs: 100, AvgLen: 10, DF: map[string]int{}}
		for _, letters := range q.Prefixes(s) {
			for term, n := range df {
				if strings.HasPrefix(term, letters) {
					s.DF[term] = n
				}
			}
		}
		got := ""
		for _, term := range Terms(q, s) {
			if got = term.Text; term.Weight >= minEvidence {
				t.Errorf("%s: %s alone is evidence", word, got)
			}
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", word, got, want)
		}
		if terms := Terms(q.Exact(), s); len(terms) > 0 {
			t.Errorf("%s, exactly: %v", word, terms)
		}
	}
	known := Read("retention backups")
	if got := known.Prefixes(Stats{DF: df}); len(got) > 0 {
		t.Errorf("prefixes of known words: %q", got)
	}
}
