package recall

import (
	"cmp"
	"slices"
	"strings"
)

// Bounds of what is tried for words that no item has.
const (
	// maxGuessed is how many words of a query are taken for misspelt.
	maxGuessed = 3
	// minMisspelt and maxMisspelt are the lengths of such words. A short word has too
	// many neighbours, and a long one costs too much.
	minMisspelt = 5
	maxMisspelt = 14
)

// Guesses returns the terms that misspelt words of the query may stand for: one
// letter too many, too few, wrong, or in its neighbour's place, the first letter being
// right. It asks for the longest three words that no item of the store has, and gives
// some 50 terms for each letter of these: often nothing, mostly a few hundred, at most
// about 2,200. Their document frequencies added to s.DF let [Terms] take the best.
func (q Query) Guesses(s Stats) []string {
	var terms []string
	for _, t := range q.misspelt(s) {
		terms = append(terms, q.neighbours(t.plain)...)
	}
	slices.Sort(terms)
	return slices.Compact(terms)
}

// misspelt returns the words that may be misspelt.
func (q Query) misspelt(s Stats) []token {
	if q.tuning.guess == 0 {
		return nil
	}
	var words []token
	for _, t := range q.words {
		if s.DF[t.term] <= 0 && t.kind == word && spellable(t.plain) && q.tuning.share(t) == 0 {
			words = append(words, t)
		}
	}
	slices.SortStableFunc(words, func(a, b token) int { return cmp.Compare(len(b.plain), len(a.plain)) })
	return words[:min(len(words), maxGuessed)]
}

// spellable reports words of plain letters and of the right length.
func spellable(w string) bool {
	if len(w) < minMisspelt || len(w) > maxMisspelt {
		return false
	}
	for i := range len(w) {
		if w[i] < 'a' || w[i] > 'z' {
			return false
		}
	}
	return true
}

// neighbours returns the terms of the words at a distance of one from w, sorted.
func (q Query) neighbours(w string) []string {
	terms := make([]string, 0, 54*len(w))
	add := func(parts ...string) {
		if variant := strings.Join(parts, ""); !isTalk(variant) {
			terms = append(terms, q.tuning.term(variant))
		}
	}
	const letters = "abcdefghijklmnopqrstuvwxyz"
	for i := 1; i <= len(w); i++ {
		for c := range len(letters) {
			add(w[:i], letters[c:c+1], w[i:])
			if i < len(w) {
				add(w[:i], letters[c:c+1], w[i+1:])
			}
		}
		if i < len(w) {
			add(w[:i], w[i+1:])
		}
		if i+1 < len(w) {
			add(w[:i], w[i+1:i+2], w[i:i+1], w[i+2:])
		}
	}
	slices.Sort(terms)
	return slices.Compact(terms)
}

// guess returns the neighbour of a misspelt word that most items have, and in how many
// it is; the first in the order of letters if several have as many. None is 0.
func (q Query) guess(w string, s Stats) (term string, items int) {
	for _, t := range q.neighbours(w) {
		if n := s.DF[t]; n > items {
			term, items = t, n
		}
	}
	return term, items
}
