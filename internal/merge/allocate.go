package merge

// floorChars is what a section gets before any other gets more than that.
const floorChars = 512

// How room is given out. Everything goes in rank order, so that a raised
// priority never shortens a text:
//
//  1. demand: each fragment, section by section, takes the least of its own
//     limit, what is left of its subscription's budget, and what is left of its
//     section's limit. Later fragments of a section are thus cut first.
//  2. floors: each section gets up to floorChars, until the total is gone.
//  3. remainder: each section gets more, up to its demand.
//
// What a cut leaves unused is not given out again: that would make the length
// of one text depend on where the lines of another end.

// allocate gives out the total to sections in rank order.
func allocate(list []section, total int) {
	for i := range list {
		s := &list[i]
		s.room = min(s.demand, floorChars, total)
		total -= s.room
	}
	for i := range list {
		s := &list[i]
		more := min(s.demand-s.room, total)
		s.room += more
		total -= more
	}
}

// demand sets how much each section can use if the total allows it.
func (m *merger) demand(list []section) {
	for i := range list {
		s := &list[i]
		left := m.limits.SectionChars
		for j := range s.fragments {
			f := &s.fragments[j]
			m.claimRoom(f, left)
			left -= f.take
			s.demand += f.take
		}
	}
}

// share cuts a section's fragments to the room of the section, the first one
// first.
func (m *merger) share(s *section) {
	left := s.room
	for i := range s.fragments {
		f := &s.fragments[i]
		if f.take > 0 { // else its own bounds leave it out, not the total
			f.bounds.total = left
			left -= min(f.take, left)
		}
		m.fit(f)
	}
}
