package recall

import (
	"cmp"
	"slices"
	"strings"
)

// Bounds of the words that may be misspelt.
const (
	maxGuessed  = 3 // words, the longest first
	minMisspelt = 6 // letters: a short word is close to too many
	maxMisspelt = 24
	prefix      = 2 // letters that are taken to be right
	minStem     = 5 // letters of the term that a word stands for
	maxEnding   = 2 // letters of a word that its stem may lack
)

// Exact returns the query without guesses at misspelt words.
func (q Query) Exact() Query {
	q.exact = true
	return q
}

// Prefixes returns the beginnings of words of the query that no item has and that may be misspelt, at most three. The
// document frequencies of all terms that begin with them, added to s.DF, let [Terms] choose a term for each.
func (q Query) Prefixes(s Stats) []string {
	var all []string
	for _, t := range q.misspelt(s) {
		all = append(all, t.plain[:prefix])
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func (q Query) misspelt(s Stats) []token {
	if q.exact {
		return nil
	}
	words := slices.DeleteFunc(slices.Clone(q.words), func(t token) bool {
		spellable := len(t.plain) >= minMisspelt && len(t.plain) <= maxMisspelt && strings.Trim(t.plain, "abcdefghijklmnopqrstuvwxyz") == ""
		return !spellable || s.DF[t.term] > 0 || t.share() != 0
	})
	slices.SortStableFunc(words, func(a, b token) int { return cmp.Compare(len(b.plain), len(a.plain)) })
	return words[:min(len(words), maxGuessed)]
}

// guess returns the term that most items have of those that a misspelt word may stand for, the first of several.
func (t token) guess(df map[string]int) (term string, items int) {
	for other, n := range df {
		if (n > items || n == items && other < term) && t.near(other) {
			term, items = other, n
		}
	}
	return term, items
}

// near reports whether the stem of a word is one edit away from a term. The stem of a misspelt word often has letters
// of the ending that the right one loses.
func (t token) near(term string) bool {
	if len(term) < minStem || term[:prefix] != t.plain[:prefix] {
		return false
	}
	if oneEdit(t.term, term) {
		return true
	}
	for n := 0; n <= maxEnding && len(t.plain)-n >= minMisspelt; n++ {
		if oneEdit(t.plain[:len(t.plain)-n], term) {
			return true
		}
	}
	return false
}

// oneEdit reports whether a word becomes another one by a letter more, less or other, or by two that are swapped.
func oneEdit(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	i := 0
	for i < len(a) && a[i] == b[i] {
		i++
	}
	a, b = a[i:], b[i:]
	switch len(b) - len(a) {
	case 0:
		return a == "" || a[1:] == b[1:] || len(a) > 1 && a[0] == b[1] && a[1] == b[0] && a[2:] == b[2:]
	case 1:
		return a == b[1:]
	}
	return false
}
