// Package recall finds the few memories that matter for what a user just said.
//
// It is the pure core of the hooks memory.recall and memory.active_recall and of the tool memory_search. [Index]
// makes the terms of an item; [Read], [Terms], [Rank] and [Pick] are a recall, in this order, as the package's
// example shows. The same statistics and input give the same output to the byte.
//
// Items out of view must not count in the statistics: a score would reveal them. A term is at most 64 letters, digits
// and marks, so it has no meaning in any query language.
//
// # Terms
//
// Words are folded: lower case, no accents, one form of each letter. They end at what is neither a letter nor a digit,
// and where a capital follows a small letter, so order_id, orderId and order-id are the same two words. Scripts
// without blanks between words, and Korean, are indexed as pairs of neighbours. Words in plain letters are reduced to
// their English stems (Snowball).
//
// A word of six letters or more that no item in view has may be misspelt: a letter too many, too few, wrong, or swapped
// with its neighbour, after the first two. It stands for the term that most items have of those that are so near to it,
// with a weight of 0.65, which alone is not evidence: see [Query.Prefixes].
//
// What a store has everywhere weighs little. But the words of talk (please, why, could) are rare in items and say
// nothing, and a store with three items has no statistics. So each word has an expected share of all texts, a
// constant for the words of talk.txt and 0 for all others, and a store counts as having fifty more items with these
// shares.
//
// # Score
//
// The sum over the terms is BM25 (Robertson and Zaragoza, The Probabilistic Relevance Framework: BM25 and Beyond,
// 2009) with k1 0.9 and b 0.4, where the weight of a term is its inverse document frequency relative to a term with
// one item. It is multiplied by
//
//	1 + 0.2·2^(−age/90 days) + 0.1·min(1, ln(1+uses)/ln 21)·2^(−idle/90 days)
//
// and 0.2 more in the sum if the item begins with a term. Here age is the time since the item changed and idle the time
// since it was last used (exponential recency: Park et al., Generative Agents, 2023; logarithmic use: Anderson and
// Schooler, Reflections of the Environment in Memory, 1991).
//
// Most turns need no memory. An item is picked if its matching terms, without words of talk, weigh at least 0.7
// together, which one rare word does, and if it scores at least a quarter of the best. Pinned items always come.
package recall

import (
	"cmp"
	"math"
	"slices"
	"time"
)

const (
	halfLife = 90 * 24 * time.Hour // of the shares of recency and use
	manyUses = 20                  // beyond which more make no difference
)

// Candidate is an item that the store found for the terms of a query.
type Candidate struct {
	ID                    string // unique; decides between equal scores
	Text, Scope, Category string // not used for ranking
	// Counts says how often the terms of the query occur, and Length how many terms the item has, as [Index] gave them.
	Counts                map[string]int
	Length                int
	UpdatedAt, LastUsedAt time.Time // when it was last changed and recalled; zero is never
	Uses                  int       // how often it was recalled
	Pinned                bool      // an instruction that always comes
}

// Scored is a ranked candidate.
type Scored struct {
	Candidate

	// Score is larger for better items. It is a multiple of a millionth, so that machines that calculate differently in
	// the last digit give one order.
	Score float64
	// Evidence is the weight of the item's terms, without talk.
	Evidence float64
}

// Rank returns the candidates that have any of the terms, and all pinned ones: pinned ones
// first, then by falling score, then by id. Of candidates with one id it keeps the best. The order of the candidates
// does not matter; they are not changed. Weak items are left to [Pick] to drop.
func Rank(terms []Term, s Stats, candidates []Candidate, now time.Time) []Scored {
	ranked := make([]Scored, 0, len(candidates))
	for i := range candidates {
		if r := candidates[i].score(terms, s.AvgLen, now); r.Score > 0 || r.Pinned {
			ranked = append(ranked, r)
		}
	}
	slices.SortFunc(ranked, func(a, b Scored) int {
		switch {
		case a.Pinned && !b.Pinned:
			return -1
		case b.Pinned && !a.Pinned:
			return 1
		}
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.ID, b.ID))
	})
	seen := make(map[string]bool, len(ranked))
	return slices.DeleteFunc(ranked, func(r Scored) bool {
		again := seen[r.ID]
		seen[r.ID] = true
		return again
	})
}

func (c *Candidate) score(terms []Term, avgLen float64, now time.Time) Scored {
	s := Scored{Candidate: *c}
	relative := 1.0
	if avgLen > 0 && c.Length > 0 {
		relative = float64(c.Length) / avgLen
	}
	half := k1 * (1 - lengthShare + lengthShare*relative)
	var sum float64
	for _, term := range terms {
		n := float64(c.Counts[term.Text])
		if n <= 0 {
			continue
		}
		sum += term.Weight * n * (k1 + 1) / (n + half)
		if !term.Talk {
			s.Evidence += term.Weight
		}
	}
	used := min(1, math.Log1p(float64(max(c.Uses, 0)))/math.Log1p(manyUses))
	boost := 1 + recencyBoost*fade(c.UpdatedAt, now) + useBoost*used*fade(c.LastUsedAt, now)
	if sum > 0 && leads(c.Text, terms) {
		boost += leadBoost
	}
	s.Score = math.Round(sum*boost*1e6) / 1e6
	return s
}

// leads reports whether a text begins with one of the terms, which is what it is about or who said it.
func leads(text string, terms []Term) bool {
	for first := range tokens(clip(text, maxTerm)) {
		return slices.ContainsFunc(terms, func(term Term) bool { return term.Text == first.term && !term.Talk })
	}
	return false
}

// fade falls from 1 for now or later towards 0 for long ago; it is 0 for never.
func fade(at, now time.Time) float64 {
	if at.IsZero() {
		return 0
	}
	return math.Exp2(-float64(max(now.Sub(at), 0)) / float64(halfLife))
}
