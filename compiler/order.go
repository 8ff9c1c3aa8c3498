package compiler

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/internal/sections"
	"github.com/grapnelhq/grapnel/phases"
)

// order is the order of a prompt's sections: a ring of places, which begins and ends at ring.
type order struct {
	ring   place
	places []place // never grows: the ring points into it
	// byID has the places beside which custom sections are put, and theirs.
	byID map[string]*place
}

// place is one place in the order: a row of the table, a group, or a section of a hook or
// the host. Custom sections can stand beside a row without text.
type place struct {
	id      string
	section *section // nil: only a place
	pace    Pace

	prev, next *place
	// lead is the place that this one follows, and elder the follower before it; last is
	// the last follower of this one. Followers, each with its own, stand right behind
	// their lead. What is put before a follower parts it from its lead.
	lead, elder, last *place
}

func newOrder(size int) *order {
	o := &order{places: make([]place, 0, size)}
	o.ring.prev, o.ring.next = &o.ring, &o.ring
	return o
}

// insert makes a place in front of at.
func (o *order) insert(id string, s *section, pace Pace, at *place) *place {
	o.places = append(o.places, place{id: id, section: s, pace: pace, prev: at.prev, next: at})
	p := &o.places[len(o.places)-1]
	p.prev.next, p.next.prev = p, p
	return p
}

// end is the last of a place and its followers.
func (p *place) end() *place {
	for p.last != nil {
		p = p.last
	}
	return p
}

// detach parts a place, and the followers behind it, from what it follows.
func (p *place) detach() {
	last := p.elder
	for lead := p.lead; lead != nil; lead = lead.lead {
		for f := lead.last; f != last; f = f.elder {
			f.lead = nil
		}
		lead.last, last = last, lead
	}
}

// beside puts a custom section beside its anchor: right before it, or behind it and its followers.
func (o *order) beside(at *place, s *CustomSection, own *section) *place {
	own.pace = cmp.Or(s.Pace, at.pace)
	if s.Before != "" {
		at.detach()
		return o.insert(s.SectionID, own, own.pace, at)
	}
	p := o.insert(s.SectionID, own, own.pace, at.end().next)
	p.lead, p.elder, at.last = at, at.last, p
	return p
}

// insertCustom puts the host's sections beside their anchors. The result is that of putting them there one by one,
// sorted by id, in as many passes as it takes: an anchor may itself be custom.
func (c *compilation) insertCustom(o *order, final bool) {
	custom := slices.SortedFunc(slices.Values(c.in.Custom), func(a, b CustomSection) int { return strings.Compare(a.SectionID, b.SectionID) })
	if len(custom) == 0 {
		return
	}
	o.byID = map[string]*place{sections.GroupStable: nil, sections.GroupDynamic: nil}
	for i := range custom {
		o.byID[anchor(&custom[i])] = nil
	}
	for p := o.ring.next; p != &o.ring; p = p.next {
		if _, wanted := o.byID[p.id]; wanted {
			o.byID[p.id] = p
		}
	}
	passes := o.passes(custom)
	queue := make([]int, len(custom))
	for i := range queue {
		queue[i] = i
	}
	slices.SortStableFunc(queue, func(a, b int) int { return cmp.Compare(passes[a], passes[b]) })
	for _, i := range queue {
		s := &custom[i]
		if passes[i] == lost {
			if final {
				c.diagnose(s.SectionID, phases.SeverityInfo, CodeAnchor,
					fmt.Sprintf("section %s stands behind the hook sections: there is no section %.128q to stand beside", s.SectionID, valid(anchor(s))))
			}
			s.Before, s.After = "", ""
		}
		o.byID[s.SectionID] = o.beside(o.byID[anchor(s)], s, c.own[s.SectionID])
	}
}

// lost is the pass of a section without an anchor: behind all others.
const lost = math.MaxInt

// passes returns in which pass each custom section, sorted by id, finds its anchor.
func (o *order) passes(custom []CustomSection) []int {
	index := make(map[string]int, len(custom))
	for i := range custom {
		index[custom[i].SectionID] = i
	}
	passes := make([]int, len(custom))
	var pass func(i int) int
	pass = func(i int) int {
		if passes[i] != 0 {
			return passes[i]
		}
		passes[i] = lost // for those that it leads back to
		id := anchor(&custom[i])
		if at, ok := index[id]; !ok && o.byID[id] != nil {
			passes[i] = 1
		} else if ok && pass(at) != lost {
			passes[i] = passes[at]
			if at > i {
				passes[i]++
			}
		}
		return passes[i]
	}
	for i := range custom {
		pass(i)
	}
	return passes
}

// anchor returns the id that a custom section stands beside.
func anchor(s *CustomSection) string {
	switch {
	case s.Before != "" || s.After != "":
		return s.Before + s.After // one of them is empty
	case s.Stability == stable:
		return sections.GroupStable
	default:
		return sections.GroupDynamic
	}
}
