package compiler

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
)

// place is one place in the order: a row of the table, a group, or a section
// of a hook or the host. A row without a text is a place too, so that custom
// sections can stand beside it.
type place struct {
	id      string
	section *section // nil: only a place
	pace    Pace
	// beside is the id that a custom section was put behind.
	beside string
}

// place lists all places in order.
func (c *compilation) place() []place {
	list := make([]place, 0, len(table)+len(c.in.Sections)+len(c.in.Custom))
	hooks := sortedHooks(c.in.Sections)
	for i := range table {
		r := &table[i]
		if r.isGroup() {
			for _, m := range hooks {
				if rowOf(m.SectionID) == nil && stabilityOf(m) == r.stability {
					list = append(list, place{id: m.SectionID, section: fromHook(r, m), pace: r.pace})
				}
			}
			list = append(list, place{id: r.id, pace: r.pace})
			continue
		}
		list = append(list, place{id: r.id, section: c.fromRow(r, hooks), pace: r.pace})
	}
	return c.insertCustom(list)
}

// sortedHooks sorts sections of hooks by priority, plugin and id.
func sortedHooks(sections []phases.MergedSection) []*phases.MergedSection {
	out := make([]*phases.MergedSection, len(sections))
	for i := range sections {
		out[i] = &sections[i]
	}
	slices.SortFunc(out, func(a, b *phases.MergedSection) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), strings.Compare(a.Owner, b.Owner), strings.Compare(a.SectionID, b.SectionID))
	})
	return out
}

func stabilityOf(m *phases.MergedSection) phases.Stability {
	if m.Stability == stable {
		return stable
	}
	return dynamic
}

// fromRow makes the section of a row, or nil if a hook should have brought it
// and did not.
func (c *compilation) fromRow(r *row, hooks []*phases.MergedSection) *section {
	if r.source != nil {
		s := newSection(r)
		r.source(c, s)
		return s
	}
	if i := slices.IndexFunc(hooks, func(m *phases.MergedSection) bool { return m.SectionID == r.id }); i >= 0 {
		return fromHook(r, hooks[i])
	}
	return nil
}

func newSection(r *row) *section {
	return &section{
		Section: manifest.Section{
			SectionID: r.id, Title: r.title, Stability: r.stability, Placement: phases.PlacementSystem, Owner: phases.OwnerBuiltin,
		},
		least: r.least, pace: r.pace,
	}
}

// fromHook takes over a merged section. A row of the table keeps its title and
// stability, a group has the stability of its sections.
func fromHook(r *row, m *phases.MergedSection) *section {
	s := newSection(r)
	s.SectionID, s.Owner = m.SectionID, valid(m.Owner)
	if r.isGroup() {
		s.Title = heading(m.Title, m.SectionID)
	}
	s.Placement = placement(m.Placement)
	s.final = m.Content
	s.OriginalChars = m.OriginalChars
	s.given = true
	if m.Truncation != nil {
		t := *m.Truncation
		s.Truncation = &t
	}
	s.SourceRefs = m.SourceRefs
	return s
}

func placement(p phases.Placement) phases.Placement {
	if p == phases.PlacementSystemMessage || p == phases.PlacementUserMessage {
		return p
	}
	return phases.PlacementSystem
}

// insertCustom puts the host's sections beside their anchors. Sections that
// stand beside one another are sorted by id; an anchor may itself be custom, so
// they are taken in rounds until nothing more finds its anchor.
func (c *compilation) insertCustom(list []place) []place {
	waiting := make([]*CustomSection, len(c.in.Custom))
	for i := range c.in.Custom {
		waiting[i] = &c.in.Custom[i]
	}
	slices.SortFunc(waiting, func(a, b *CustomSection) int { return strings.Compare(a.SectionID, b.SectionID) })
	for progress := true; progress; {
		before := len(waiting)
		waiting = slices.DeleteFunc(waiting, func(s *CustomSection) bool {
			at := slices.IndexFunc(list, func(p place) bool { return p.id == anchor(s) })
			if at >= 0 {
				list = insertAt(list, s, at)
			}
			return at >= 0
		})
		progress = len(waiting) < before
	}
	for _, s := range waiting {
		c.diagnose(s.SectionID, phases.SeverityInfo, CodeAnchor,
			fmt.Sprintf("section %s stands behind the hook sections: there is no section %.128q to stand beside", s.SectionID, valid(anchor(s))))
		loose := *s
		loose.Before, loose.After = "", ""
		at := slices.IndexFunc(list, func(p place) bool { return p.id == anchor(&loose) })
		list = insertAt(list, &loose, at)
	}
	return list
}

// anchor returns the id that a custom section stands beside.
func anchor(s *CustomSection) string {
	switch {
	case s.Before != "" || s.After != "":
		return s.Before + s.After // one of them is empty
	case s.Stability == stable:
		return groupStable
	default:
		return groupDynamic
	}
}

// insertAt puts a custom section beside the place at an index. Behind a place it
// comes after those that were put there before it, and what stands behind them.
func insertAt(list []place, s *CustomSection, at int) []place {
	p := place{id: s.SectionID, pace: cmp.Or(s.Pace, list[at].pace)}
	p.section = fromCustom(s, p.pace)
	if s.Before != "" {
		return slices.Insert(list, at, p)
	}
	p.beside = list[at].id
	family := []string{p.beside}
	for at++; at < len(list) && slices.Contains(family, list[at].beside); at++ {
		family = append(family, list[at].id)
	}
	return slices.Insert(list, at, p)
}

func fromCustom(s *CustomSection, pace Pace) *section {
	r := row{id: s.SectionID, title: heading(s.Title, s.SectionID), stability: cmp.Or(s.Stability, dynamic), least: phases.ProfileMinimal, pace: pace}
	out := newSection(&r)
	out.Owner, out.Placement = phases.OwnerHost, placement(s.Placement)
	out.raw, out.given = s.Text, true
	out.SourceRefs = s.SourceRefs
	return out
}
