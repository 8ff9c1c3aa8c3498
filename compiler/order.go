package compiler

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/internal/engine/sections"
	"github.com/grapnelhq/grapnel/phases"
)

// place is one place in the order of a prompt's sections: a row of the table, a group, or a section of a hook or
// the host. Custom sections can stand beside a row without text.
type place struct {
	id      string
	section *section // nil: only a place
	pace    Pace
	behind  string // the id of the place that a custom section follows
}

// maxCustom bounds the host's own sections, which are put in order one by one.
const maxCustom = 256

// insertCustom puts the host's sections beside their anchors: one by one, sorted by id, in as many passes as it takes,
// because an anchor may itself be custom.
func (c *compilation) insertCustom(list []place, final bool) []place {
	insert := func(s CustomSection) bool {
		at := slices.IndexFunc(list, func(p place) bool { return p.id == anchor(&s) })
		if at < 0 {
			return false
		}
		own := c.own[s.SectionID]
		own.pace = cmp.Or(s.Pace, list[at].pace)
		p := place{id: s.SectionID, section: own, pace: own.pace}
		if s.Before == "" {
			p.behind = list[at].id
			at = afterFollowers(list, at)
		}
		list = slices.Insert(list, at, p)
		return true
	}
	waiting := slices.SortedFunc(slices.Values(c.in.Custom), func(a, b CustomSection) int { return strings.Compare(a.SectionID, b.SectionID) })
	for before := -1; len(waiting) != before; {
		before = len(waiting)
		waiting = slices.DeleteFunc(waiting, insert)
	}
	for _, s := range waiting {
		if final {
			c.diagnose(s.SectionID, phases.SeverityInfo, codeAnchor,
				fmt.Sprintf("section %s stands behind the hook sections: there is no section %.128q to stand beside", s.SectionID, valid(anchor(&s))))
		}
		s.Before, s.After = "", ""
		insert(s)
	}
	return list
}

// afterFollowers returns the index behind a place and all that follow it, or one another.
func afterFollowers(list []place, at int) int {
	family := []string{list[at].id}
	for at++; at < len(list) && slices.Contains(family, list[at].behind); at++ {
		family = append(family, list[at].id)
	}
	return at
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
