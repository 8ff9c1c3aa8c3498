package recall

import (
	"cmp"
	"math"
	"slices"
)

// MaxTerms is how many terms a query has at most.
const MaxTerms = 12

// Stats are the statistics of the items that a turn may see.
type Stats struct {
	// Docs is the number of items.
	Docs int
	// AvgLen is the mean of the lengths that [Index] gave for them.
	AvgLen float64
	// DF says in how many items a term is. It need have no terms but those of
	// [Query.Vocabulary] and [Query.Guesses]; what it lacks is in no item.
	DF map[string]int
}

// Term is a term to search for.
type Term struct {
	Text string
	// Weight is from 0 to 1: 1 for a term that one item has.
	Weight float64
	// Talk says that the term belongs to how people talk. It orders items and is no
	// evidence for one.
	Talk bool
}

// Terms returns the terms of a query that items have, at most [MaxTerms]: the rarest
// first, then those that the query has more often, then in the order in which they
// occur. Terms that no item has are left out, so that the answer may be empty.
func Terms(q Query, s Stats) []Term {
	c := weigher{query: q, docs: float64(max(s.Docs, 0)) + q.tuning.prior}
	for _, t := range q.words {
		if items := s.DF[t.term]; items > 0 {
			c.add(t.term, q.tuning.share(t), 1, items)
		}
	}
	for _, t := range q.misspelt(s) {
		if term, items := q.guess(t.plain, s); items > 0 && !c.has(term) {
			c.add(term, 0, q.tuning.guess, items)
		}
	}
	slices.SortStableFunc(c.found, func(a, b weighed) int {
		return cmp.Or(cmp.Compare(a.items, b.items), cmp.Compare(q.counts[b.Text], q.counts[a.Text]))
	})
	terms := make([]Term, 0, MaxTerms)
	for _, w := range c.found[:min(len(c.found), MaxTerms)] {
		terms = append(terms, w.Term)
	}
	return terms
}

// weigher collects the terms of a query with their weights.
type weigher struct {
	query Query
	// docs is the number of items with those that the prior adds.
	docs  float64
	found []weighed
}

// weighed is a term, and in how many items it is taken to be.
type weighed struct {
	Term

	items float64
}

// has reports whether a term is there.
func (w *weigher) has(term string) bool {
	return slices.ContainsFunc(w.found, func(f weighed) bool { return f.Text == term })
}

// add adds a term that is in some items of the store and has a share of all texts.
func (w *weigher) add(term string, share, factor float64, items int) {
	n := max(float64(items)+share*w.query.tuning.prior, share*w.docs)
	weight := factor * (rarity(n, w.docs) / rarity(1, w.docs))
	w.found = append(w.found, weighed{Term{Text: term, Weight: weight, Talk: share > 0}, n})
}

// rarity is the inverse document frequency in its form that is never negative. Of
// damaged statistics, in which more items have a term than there are, it makes the
// least.
func rarity(items, docs float64) float64 {
	docs = max(docs, 1)
	items = min(items, docs)
	return math.Log1p((docs - items + 0.5) / (items + 0.5))
}
