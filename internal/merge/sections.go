package merge

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/internal/text"
	"github.com/grapnelhq/grapnel/phases"
)

type sectionClaim = claim[*phases.PromptSection]

// section is one section id with all fragments that may be in it.
type section struct {
	id, owner string
	// fragments stand in rank order.
	fragments []fragment
	// demand is what all fragments can use, room what they got.
	demand, room int
}

// size is the length of all fragments, uncut, without joins.
func (s *section) size() int {
	n := 0
	for i := range s.fragments {
		n += s.fragments[i].size
	}
	return n
}

// sections settles who owns each id, gives out room, and cuts.
func (m *merger) sections() {
	list := claims[*phases.PromptSection](m)
	if len(list) == 0 {
		return
	}
	sections := m.owned(list)
	slices.SortFunc(sections, func(a, b section) int { return compareRank(a.fragments[0].item, b.fragments[0].item) })
	sections = m.firstSections(sections)
	m.demand(sections)
	allocate(sections, m.limits.TotalChars)
	for i := range sections {
		m.share(&sections[i])
		m.place(&sections[i])
	}
}

// owned groups the claims by id and drops those of plugins that neither own
// nor may join, and blank ones. Each section's fragments are in rank order.
func (m *merger) owned(list []sectionClaim) []section {
	slices.SortFunc(list, func(a, b sectionClaim) int {
		return cmp.Or(cmp.Compare(a.value.SectionID, b.value.SectionID), cmp.Compare(a.seq, b.seq))
	})
	var out []section
	fragments := make([]fragment, 0, len(list)) // never grows: sections point into it
	runs(list, func(a, b sectionClaim) bool { return a.value.SectionID == b.value.SectionID }, func(run []sectionClaim) {
		id := run[0].value.SectionID
		if slices.Contains(m.state.HostSections, id) {
			m.loseSection(run, phases.OwnerHost)
			return
		}
		owner := run[ownerOf(run)].item
		from := len(fragments)
		for _, c := range run {
			if c.hook.Plugin != owner.hook.Plugin && !c.hook.joinsSection(id) {
				m.loseSection([]sectionClaim{c}, owner.hook.Subscription)
				continue
			}
			fragments = append(fragments, newFragment(c.item, c.value.MaxChars))
		}
		s := section{id: id, owner: owner.hook.Plugin, fragments: fragments[from:]}
		if m.dropBlank(&s); len(s.fragments) > 0 {
			slices.SortFunc(s.fragments, func(a, b fragment) int { return compareRank(a.item, b.item) })
			out = append(out, s)
		}
	})
	return out
}

// ownerOf returns the index of the claim whose plugin owns the section: the
// first in plan order that may have it as its own. One that may only join
// never drives the owner out; alone it stands for itself.
func ownerOf(run []sectionClaim) int {
	return max(0, slices.IndexFunc(run, func(c sectionClaim) bool { return c.hook.ownsSection(c.value.SectionID) }))
}

// loseSection records claims of a section that belongs to somebody else.
func (m *merger) loseSection(losers []sectionClaim, owner string) {
	for _, c := range losers {
		m.lose(c.item, c.value.SectionID, string(phases.CauseConflict), charsOf(c.value))
		m.conflict(c.item, owner, c.value.SectionID, "section")
	}
}

// dropBlank removes fragments with nothing to see in them. They take no place
// among the sections.
func (m *merger) dropBlank(s *section) {
	if !slices.ContainsFunc(s.fragments, func(f fragment) bool { return f.blank }) {
		return
	}
	all := !slices.ContainsFunc(s.fragments, func(f fragment) bool { return !f.blank })
	s.fragments = slices.DeleteFunc(s.fragments, func(f fragment) bool {
		if !f.blank {
			return false
		}
		f.lost = true
		if !all {
			m.leaveOut(f.item, f.id(), ReasonBlank, f.size)
		}
		return true
	})
	if all {
		m.out.LeftOut = append(m.out.LeftOut, phases.LeftOut{ID: s.id, Owner: s.owner, Reason: ReasonBlank})
	}
}

// firstSections keeps as many sections as there may be, by rank.
func (m *merger) firstSections(list []section) []section {
	if len(list) <= m.limits.Sections {
		return list
	}
	for i := range list[m.limits.Sections:] {
		m.omit(&list[m.limits.Sections+i], fmt.Sprintf("a phase keeps %d sections", m.limits.Sections))
	}
	return list[:m.limits.Sections]
}

// omit leaves a section out whole, with one row for all its fragments.
func (m *merger) omit(s *section, why string) {
	for i := range s.fragments {
		s.fragments[i].lost = true
	}
	m.overBudget(s.fragments[0].item, s.id, s.size(), why)
	m.out.LeftOut[len(m.out.LeftOut)-1].Owner = s.owner
}

// place writes the merged section out of fragments that were cut to size.
func (m *merger) place(s *section) {
	kept := 0
	for i := range s.fragments {
		if !s.fragments[i].fitted.Omitted {
			kept++
		}
	}
	if kept == 0 {
		m.omit(s, noRoom(s.fragments[0].cut.Limit))
		return
	}
	out := m.heading(s)
	out.Sources = make([]phases.HookSource, 0, kept)
	var parts []string
	for i := range s.fragments {
		f := &s.fragments[i]
		if f.fitted.Omitted {
			f.lost = true
			m.overBudget(f.item, f.id(), f.size, noRoom(f.cut.Limit))
			continue
		}
		f.section = s.id
		f.selfReport()
		m.recordCut(f)
		if out.Content = f.fitted.Text; kept > 1 {
			parts = append(parts, f.fitted.Text)
		}
		out.Sources = append(out.Sources, m.source(f.item))
		out.SourceRefs = append(out.SourceRefs, sectionOf(f).SourceRefs...)
	}
	if kept > 1 {
		out.Content = strings.Join(parts, joint)
	}
	out.Truncation = truncation(combined(s.fragments))
	m.out.Merged.Sections = append(m.out.Merged.Sections, out)
}

// joint stands between two fragments of a section; it is in no budget.
const joint = "\n\n"

// heading fills in everything about a section but its text. Title and
// placement are those of the owner's best fragment; a section is stable only if
// all of it is; a row of the compiler's table keeps its own title and stability.
func (m *merger) heading(s *section) phases.MergedSection {
	best := &s.fragments[max(0, slices.IndexFunc(s.fragments, func(f fragment) bool { return f.hook.Plugin == s.owner }))]
	out := phases.MergedSection{
		SectionID: s.id, Owner: s.owner, Priority: s.fragments[0].hook.Priority, Stability: phases.StabilityStable,
		Title: best.entry.text.title, Placement: cmp.Or(sectionOf(best).Placement, phases.PlacementSystem),
		OriginalChars: s.size() + text.Chars(joint)*(len(s.fragments)-1),
	}
	for i := range s.fragments {
		if sectionOf(&s.fragments[i]).Stability != phases.StabilityStable {
			out.Stability = phases.StabilityDynamic
		}
	}
	if title, known := knownTitle(s.id); known {
		out.Title, out.Stability = title, phases.StabilityDynamic
	}
	return out
}

// sectionOf returns the contribution of a section's fragment.
func sectionOf(f *fragment) *phases.PromptSection {
	c, ok := f.entry.Value.(*phases.PromptSection)
	if !ok {
		return &phases.PromptSection{} // cannot be: fragments of sections are made of sections
	}
	return c
}

// selfReport takes the plugin's own word for what it left away where no limit
// of ours cut the text. The numbers are a claim; they are bounded so that sums
// of them stay numbers.
func (f *fragment) selfReport() {
	const most = 1 << 40
	if c := sectionOf(f); f.cut.Limit == "" && selfCut(c) {
		f.cut = phases.Truncation{Limit: phases.LimitPlugin, Original: min(c.Cut.Original, most), Kept: min(c.Cut.Kept, most)}
	}
}

// combined is the truncation of a whole section: the sums, and the limit that
// took the most. On a tie it is the first of the order that limits have.
func combined(list []fragment) phases.Truncation {
	if len(list) == 1 {
		return list[0].cut
	}
	var out phases.Truncation
	most := -1
	for i := range list {
		c := list[i].cut
		out.Original += c.Original
		out.Kept += c.Kept
		lost := c.Original - c.Kept
		if c.Limit != "" && (lost > most || lost == most && order(c.Limit) < order(out.Limit)) {
			out.Limit, most = c.Limit, lost
		}
	}
	return out
}

// order is a limit's place in the order in which ties are settled.
func order(l phases.Limit) int {
	return slices.Index([]phases.Limit{
		phases.LimitPlugin, phases.LimitContribution, phases.LimitSubscription, phases.LimitSection, phases.LimitTotal,
	}, l)
}
