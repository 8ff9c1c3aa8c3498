package merge

import (
	"math"
	"slices"

	"github.com/grapnelhq/grapnel/internal/text"
	"github.com/grapnelhq/grapnel/phases"
)

const unbounded = math.MaxInt

// textBudget is what is left of a subscription's text budget, for contexts and sections.
type textBudget struct{ chars, tokens int }

// budgetOf returns what is left of a reply's text budget.
func (m *merger) budgetOf(reply int) *textBudget {
	for i := len(m.budgets); i < len(m.replies); i++ {
		b := m.replies[i].Hook.Budget
		left := textBudget{orUnbounded(b.Chars), unbounded}
		if m.limits.CountTokens != nil {
			left.tokens = orUnbounded(b.Tokens)
		}
		m.budgets = append(m.budgets, left)
	}
	return &m.budgets[reply]
}

func orUnbounded(limit int) int {
	if limit <= 0 {
		return unbounded
	}
	return limit
}

// fragment is one contribution's text while its length is settled.
type fragment struct {
	*item
	*prepared
	bounds bounds
	tokens int // the token budget when its turn came
	take   int // what it would use if the total allowed it
	fitted text.Fitted
	cut    phases.Truncation
}

func newFragment(it *item, maxChars int) fragment {
	return fragment{
		item: it, prepared: it.entry.text, tokens: unbounded,
		bounds: bounds{orUnbounded(maxChars), unbounded, unbounded, unbounded},
	}
}

type bounds struct{ contribution, subscription, section, total int }

// least returns the limit that binds, of equal ones the first.
func (b bounds) least() (int, phases.Limit) {
	chars, limit := b.contribution, phases.LimitContribution
	for _, other := range []struct {
		chars int
		limit phases.Limit
	}{{b.subscription, phases.LimitSubscription}, {b.section, phases.LimitSection}, {b.total, phases.LimitTotal}} {
		if other.chars < chars {
			chars, limit = other.chars, other.limit
		}
	}
	return chars, limit
}

// claimBudget sets the fragment's bounds but for the total, and takes what it can use out of its subscription's
// budget: nothing if no useful text fits.
func (m *merger) claimBudget(f *fragment, section int) {
	left := m.budgetOf(f.reply)
	f.bounds.subscription, f.bounds.section, f.tokens = left.chars, section, left.tokens
	if f.tokens < unbounded {
		chars, _ := f.bounds.least()
		f.bounds.subscription = min(f.bounds.subscription, m.charsForTokens(f, chars))
	}
	chars, _ := f.bounds.least()
	if f.take = min(f.size, chars); f.take < f.size && f.take < text.Least(f.frame, f.bodyChars, f.original()) {
		f.take = 0
	}
	if left.chars < unbounded {
		left.chars -= f.take
	}
	if left.tokens < unbounded {
		left.tokens -= m.limits.CountTokens(f.at(f.take).Text)
	}
}

func (f *fragment) at(chars int) text.Fitted {
	if f.size <= chars {
		return text.Fitted{Text: f.whole, Body: f.body, Original: f.original(), Kept: f.size}
	}
	return text.CutOf(f.body, f.original(), chars, f.frame)
}

// charsForTokens returns how many characters of the fragment, up to chars, fit into its token budget: unbounded if
// all do. The search assumes that counts grow with the text; where they do not, the answer may be too small but not
// too large.
func (m *merger) charsForTokens(f *fragment, chars int) int {
	fits := func(r int) bool { return m.limits.CountTokens(f.at(r).Text) <= f.tokens }
	if fits(chars) {
		return unbounded
	}
	low, high := 0, min(chars, f.size) // low fits, high does not
	for high-low > 1 {
		if mid := low + (high-low)/2; fits(mid) {
			low = mid
		} else {
			high = mid
		}
	}
	return low
}

// fit cuts the fragment to its bounds and records which one did it.
func (m *merger) fit(f *fragment) {
	chars, limit := f.bounds.least()
	if f.tokens < unbounded {
		if r := m.charsForTokens(f, chars); r < chars {
			chars, limit = r, phases.LimitSubscription
		}
	}
	f.fitted = f.at(chars)
	f.cut = phases.Truncation{Original: f.fitted.Original, Kept: f.fitted.Kept}
	if f.fitted.Cut || f.fitted.Omitted {
		f.cut.Limit = limit
	}
}

func (m *merger) recordCut(f *fragment) {
	if f.cut.Limit == "" {
		return
	}
	if f.fitted.Cut {
		f.limit = f.cut.Limit
	}
	part := &m.out.Parts[f.reply]
	part.Cuts = append(part.Cuts, phases.Cut{ContributionID: f.id(), SectionID: f.section, Truncation: f.cut})
}

func truncation(t phases.Truncation) *phases.Truncation {
	if t.Limit == "" {
		return nil
	}
	kept := t // t itself would be allocated for every text
	return &kept
}

// floorChars is what every section gets before any gets more.
const floorChars = 512

// allocate distributes the total to sections. Everything goes in rank order, so that a raised priority never shortens
// a text:
//
//  1. demand: each fragment takes the least of its own limit, its subscription's
//     remaining budget and its section's remaining limit.
//  2. floors: each section gets up to floorChars, until the total is gone.
//  3. remainder: each section gets more, up to its demand.
//
// What a cut leaves unused is not distributed again: the length of one text would then depend on the line breaks of
// another.
func allocate(list []section, total int) {
	for i := range list {
		s := &list[i]
		s.granted = min(s.demand, floorChars, total)
		total -= s.granted
	}
	for i := range list {
		s := &list[i]
		more := min(s.demand-s.granted, total)
		s.granted += more
		total -= more
	}
}

// sectionChars is how long a section may be: as long as its subscriptions' budgets together, so that what an operator
// gives a subscription is what it gets; at least the usual limit.
func (m *merger) sectionChars(s *section) int {
	asked := 0
	for i := range s.fragments {
		f := &s.fragments[i]
		if !slices.ContainsFunc(s.fragments[:i], func(g fragment) bool { return g.reply == f.reply }) {
			asked += f.hook.Budget.Chars
		}
	}
	return max(asked, m.limits.SectionChars)
}

func (m *merger) demand(list []section) {
	for i := range list {
		s := &list[i]
		left := m.sectionChars(s)
		for j := range s.fragments {
			f := &s.fragments[j]
			m.claimBudget(f, left)
			left -= f.take
			s.demand += f.total(s.demand)
		}
	}
}

// total is what the fragment takes out of the total: its text, and the joint to those before it.
func (f *fragment) total(before int) int {
	if f.take == 0 || before == 0 {
		return f.take
	}
	return len(joint) + f.take
}

func (m *merger) share(s *section) {
	left := s.granted
	for i := range s.fragments {
		f := &s.fragments[i]
		if f.take > 0 { // else its own bounds omit it, not the total
			all := f.total(s.granted - left)
			f.bounds.total = left - (all - f.take)
			left -= min(all, left)
		}
		m.fit(f)
	}
}
