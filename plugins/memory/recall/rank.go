package recall

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// halfLife is the time in which what recency and use add falls to its half.
const halfLife = 90 * 24 * time.Hour

// manyUses is the number of uses that counts for all above it.
const manyUses = 20

// Candidate is an item that the store found for the terms of a query.
type Candidate struct {
	// ID names the item. It is unique and decides between equal scores.
	ID string
	// Text is what is shown. The ranking does not look at it.
	Text string
	// Scope and Category are passed on.
	Scope, Category string
	// Counts says how often the terms that were searched for occur, and Length how
	// many terms the item has, as [Index] gave them.
	Counts map[string]int
	Length int
	// UpdatedAt is when the item was made or last changed, and LastUsedAt when it was
	// last recalled; zero is never.
	UpdatedAt, LastUsedAt time.Time
	// Uses is how often it was recalled.
	Uses int
	// Pinned says that it is an instruction which always comes.
	Pinned bool
}

// Scored is a candidate with what the ranking says of it.
type Scored struct {
	Candidate

	// Score orders; the larger is better. It is a multiple of a millionth, so that
	// machines that calculate differently in the last digit give one order.
	Score float64
	// Evidence is what the terms weigh that the item has, without those of talk.
	Evidence float64
}

// Rank returns the candidates that have any of the terms, and all pinned ones: pinned
// ones first, then by falling score, then by id. Of candidates with one id it keeps
// the best. The order of the candidates does not matter; they are not changed.
//
// It drops nothing for being weak: [Pick] does.
func Rank(terms []Term, s Stats, candidates []Candidate, now time.Time) []Scored {
	return rank(terms, s, candidates, now, tuned())
}

// rank is Rank with given numbers.
func rank(terms []Term, s Stats, candidates []Candidate, now time.Time, with tuning) []Scored {
	ranked := make([]Scored, 0, len(candidates))
	for _, p := range with.places(terms, s.AvgLen, candidates, now) {
		ranked = append(ranked, Scored{Candidate: *p.Candidate, Score: p.score, Evidence: p.evidence})
	}
	seen := make(map[string]bool, len(ranked))
	return slices.DeleteFunc(ranked, func(r Scored) bool {
		again := seen[r.ID]
		seen[r.ID] = true
		return again
	})
}

// place is a candidate with what it is worth. It is small, for sorting.
type place struct {
	*Candidate

	score, evidence float64
}

// places returns the candidates that are worth anything, in order.
func (t tuning) places(terms []Term, avgLen float64, candidates []Candidate, now time.Time) []place {
	all := make([]place, 0, len(candidates))
	for i := range candidates {
		if p := t.place(terms, avgLen, &candidates[i], now); p.score > 0 || p.Pinned {
			all = append(all, p)
		}
	}
	slices.SortFunc(all, func(a, b place) int {
		if a.Pinned != b.Pinned {
			if a.Pinned {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.ID, b.ID))
	})
	return all
}

// place calculates what an item is worth for the terms.
func (t tuning) place(terms []Term, avgLen float64, c *Candidate, now time.Time) place {
	p := place{Candidate: c}
	relative := 1.0
	if avgLen > 0 && c.Length > 0 {
		relative = float64(c.Length) / avgLen
	}
	half := t.k1 * (1 - t.b + t.b*relative)
	var sum float64
	for _, term := range terms {
		n := float64(c.Counts[term.Text])
		if n <= 0 {
			continue
		}
		sum += term.Weight * n * (t.k1 + 1) / (n + half)
		if !term.Talk {
			p.evidence += term.Weight
		}
	}
	p.score = math.Round(sum*t.boost(c, now)*1e6) / 1e6
	return p
}

// boost is the factor for recency and use.
func (t tuning) boost(c *Candidate, now time.Time) float64 {
	used := min(1, math.Log1p(float64(max(c.Uses, 0)))/math.Log1p(manyUses))
	return 1 + t.recency*fade(c.UpdatedAt, now) + t.use*used*fade(c.LastUsedAt, now)
}

// fade falls from 1 for what is now, or is dated later, towards 0 for what is long
// ago; it is 0 for what never was.
func fade(at, now time.Time) float64 {
	if at.IsZero() {
		return 0
	}
	return math.Exp2(-float64(max(now.Sub(at), 0)) / float64(halfLife))
}
