package merge

import (
	"math"

	"github.com/grapnelhq/grapnel/internal/text"
	"github.com/grapnelhq/grapnel/phases"
)

// unbounded is a limit that nothing reaches.
const unbounded = math.MaxInt

// textRoom is what is left of a subscription's text budget. Its contexts and
// its sections use it up together.
type textRoom struct{ chars, tokens int }

// roomOf returns the room of a reply, filling all of them in at first use.
func (m *merger) roomOf(reply int) *textRoom {
	if m.room == nil {
		m.room = make([]textRoom, len(m.replies))
		for i := range m.replies {
			b := m.replies[i].Hook.Budget
			m.room[i] = textRoom{orUnbounded(b.Chars), unbounded}
			if m.limits.CountTokens != nil {
				m.room[i].tokens = orUnbounded(b.Tokens)
			}
		}
	}
	return &m.room[reply]
}

// orUnbounded reads a limit of settings and contributions, where 0 is none.
func orUnbounded(limit int) int {
	if limit <= 0 {
		return unbounded
	}
	return limit
}

// fragment is one contribution's text on its way to the room that it gets.
type fragment struct {
	*item
	*prepared
	// bounds are the limits, and tokens the token budget when its turn came.
	bounds bounds
	tokens int
	// take is what it would use if the total allowed it.
	take int
	// fitted and cut are the outcome.
	fitted text.Fitted
	cut    phases.Truncation
}

// newFragment begins to fit the text of an item that has one.
func newFragment(it *item, maxChars int) fragment {
	return fragment{
		item: it, prepared: it.entry.text, tokens: unbounded,
		bounds: bounds{orUnbounded(maxChars), unbounded, unbounded, unbounded},
	}
}

// bounds are the limits of one text.
type bounds struct{ contribution, subscription, section, total int }

// least returns the limit that binds: of equal ones the first in the order of
// the specification.
func (b bounds) least() (int, phases.Limit) {
	room, limit := b.contribution, phases.LimitContribution
	if b.subscription < room {
		room, limit = b.subscription, phases.LimitSubscription
	}
	if b.section < room {
		room, limit = b.section, phases.LimitSection
	}
	if b.total < room {
		room, limit = b.total, phases.LimitTotal
	}
	return room, limit
}

// claimRoom sets the fragment's bounds but for the total, and takes what it can
// use out of its subscription's budget. It takes nothing when the bounds leave
// no room for anything of use, so that others may have it.
func (m *merger) claimRoom(f *fragment, section int) {
	left := m.roomOf(f.reply)
	f.bounds.subscription, f.bounds.section, f.tokens = left.chars, section, left.tokens
	if f.tokens < unbounded {
		room, _ := f.bounds.least()
		f.bounds.subscription = min(f.bounds.subscription, m.tokenRoom(f, room))
	}
	room, _ := f.bounds.least()
	if f.take = min(f.size, room); f.take < f.size && f.take < text.Least(f.frame, f.bodyChars) {
		f.take = 0
	}
	if left.chars < unbounded {
		left.chars -= f.take
	}
	if left.tokens < unbounded {
		left.tokens -= m.limits.CountTokens(f.at(f.take).Text)
	}
}

// at returns the fragment as it is with so much room.
func (f *fragment) at(room int) text.Fitted {
	if f.size <= room {
		return text.Fitted{Text: f.whole, Body: f.body, Original: f.bodyChars, Kept: f.bodyChars}
	}
	return text.Cut(f.body, room, f.frame)
}

// tokenRoom returns how many characters, at most room, the fragment may have to
// keep to its token budget: unbounded if it does with all of room. Counts
// hardly ever fall when a text grows; where they do, the answer may be smaller
// than need be, and never too large.
func (m *merger) tokenRoom(f *fragment, room int) int {
	fits := func(r int) bool { return m.limits.CountTokens(f.at(r).Text) <= f.tokens }
	if fits(room) {
		return unbounded
	}
	low, high := 0, min(room, f.size) // low fits, high does not
	for high-low > 1 {
		if mid := low + (high-low)/2; fits(mid) {
			low = mid
		} else {
			high = mid
		}
	}
	return low
}

// fit cuts the fragment to its bounds and records which of them did it.
func (m *merger) fit(f *fragment) {
	room, limit := f.bounds.least()
	if f.tokens < unbounded {
		if r := m.tokenRoom(f, room); r < room {
			room, limit = r, phases.LimitSubscription
		}
	}
	f.fitted = f.at(room)
	f.cut = phases.Truncation{Original: f.fitted.Original, Kept: f.fitted.Kept}
	if f.fitted.Cut || f.fitted.Omitted {
		f.cut.Limit = limit
	}
}

// recordCut notes a kept but shortened text for the ledger and for the source.
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

// truncation returns the record of a cut, or nil.
func truncation(t phases.Truncation) *phases.Truncation {
	if t.Limit == "" {
		return nil
	}
	return &t
}
