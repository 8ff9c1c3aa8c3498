package merge

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/internal/engine/sections"
	"github.com/grapnelhq/grapnel/internal/text"
	"github.com/grapnelhq/grapnel/phases"
)

type contextClaim = claim[*phases.PromptContext]

// contexts takes texts by rank into what the turn's limits leave. A text that does not fit is cut or omitted; a
// smaller one of lower rank may still fit.
func (m *merger) contexts() {
	m.inContext = claims(m, m.inContext)
	if len(m.inContext) == 0 {
		return
	}
	list := m.latest(m.inContext)
	turn := without(m.state.Contexts, list)
	slots, left := m.limits.Contexts-len(turn), m.limits.ContextChars
	for i := range turn {
		left -= text.Chars(turn[i].Content)
	}
	slices.SortFunc(list, func(a, b contextClaim) int { return compareRank(a.item, b.item) })
	for _, c := range list {
		f := newFragment(c.item, c.value.MaxChars)
		switch {
		case f.blank:
			m.lose(c.item, c.id(), ReasonBlank, f.size)
			continue
		case slots <= 0:
			c.lost = true
			m.overBudget(c.item, c.id(), f.size, fmt.Sprintf("a turn keeps %d contexts", m.limits.Contexts))
			continue
		}
		f.bounds.total = left
		m.claimBudget(&f, unbounded)
		if m.fit(&f); f.fitted.Omitted {
			c.lost = true
			m.overBudget(c.item, c.id(), f.size, fmt.Sprintf(nothingFits, f.cut.Limit))
			continue
		}
		m.recordCut(&f)
		slots--
		if f.fitted.Cut {
			left -= text.Chars(f.fitted.Text)
		} else {
			left -= f.size
		}
		m.out.Merged.Contexts = append(m.out.Merged.Contexts, contextEntry(c, &f))
	}
	m.out.Contexts = slices.Concat(turn, m.out.Merged.Contexts)
	slices.SortStableFunc(m.out.Contexts, func(a, b phases.ContextEntry) int { return cmp.Compare(b.Priority, a.Priority) })
}

func contextEntry(c contextClaim, f *fragment) phases.ContextEntry {
	return phases.ContextEntry{
		ContributionID: c.id(), Domain: c.value.Domain, Content: f.fitted.Text, Priority: c.hook.Priority,
		Owner: c.hook.Subscription, Render: c.value.Rendered(), SourceRefs: c.value.SourceRefs, Truncation: truncation(f.cut),
	}
}

// latest keeps of each plugin's contexts with one id the last in plan order.
func (m *merger) latest(list []contextClaim) []contextClaim {
	if len(list) == 1 {
		return list
	}
	slices.SortFunc(list, func(a, b contextClaim) int {
		return cmp.Or(cmp.Compare(a.hook.Plugin, b.hook.Plugin), cmp.Compare(a.id(), b.id()), cmp.Compare(a.seq, b.seq))
	})
	kept := list[:0]
	runs(list, func(a, b contextClaim) bool { return a.hook.Plugin == b.hook.Plugin && a.id() == b.id() }, func(run []contextClaim) {
		for _, c := range run[:len(run)-1] {
			m.lose(c.item, c.id(), ReasonReplaced, charsOf(c.value))
		}
		kept = append(kept, run[len(run)-1])
	})
	return kept
}

// without returns the turn's contexts but for those that a new one of the same plugin and id replaces, whether or not
// the new one fits: a plugin took the old text back.
func without(turn []phases.ContextEntry, list []contextClaim) []phases.ContextEntry {
	return slices.DeleteFunc(slices.Clone(turn), func(e phases.ContextEntry) bool {
		plugin, _, _ := strings.Cut(e.Owner, ".") // a plugin's name has no dot
		return slices.ContainsFunc(list, func(c contextClaim) bool { return c.hook.Plugin == plugin && c.id() == e.ContributionID })
	})
}

type sectionClaim = claim[*phases.PromptSection]

// section is one section id with all fragments that may be in it, in rank order.
type section struct {
	id, owner       string
	fragments       []fragment
	demand, granted int // what the fragments can use, and what they got
}

func (s *section) size() int {
	n := 0
	for i := range s.fragments {
		n += s.fragments[i].size
	}
	return n
}

// sections settles who owns each id, allocates the text budget, and cuts.
func (m *merger) sections() {
	m.inSection = claims(m, m.inSection)
	if len(m.inSection) == 0 {
		return
	}
	m.own()
	owned := m.owners
	slices.SortFunc(owned, func(a, b section) int { return compareRank(a.fragments[0].item, b.fragments[0].item) })
	if most := max(0, min(len(owned), m.limits.Sections)); most < len(owned) {
		for i := range owned[most:] {
			m.omit(&owned[most+i], fmt.Sprintf("a phase keeps %d sections", m.limits.Sections))
		}
		owned = owned[:most]
	}
	m.demand(owned)
	allocate(owned, m.limits.TotalChars)
	m.out.Merged.Sections = make([]phases.MergedSection, 0, len(owned))
	for i := range owned {
		m.share(&owned[i])
		m.place(&owned[i])
	}
}

// own groups the claims by id and drops blank ones and those of plugins that neither own nor may join the section.
// Each section's fragments are in rank order.
func (m *merger) own() {
	list := m.inSection
	slices.SortFunc(list, func(a, b sectionClaim) int {
		return cmp.Or(cmp.Compare(a.value.SectionID, b.value.SectionID), cmp.Compare(a.seq, b.seq))
	})
	m.fragments = slices.Grow(m.fragments, len(list)) // never grows again: sections point into it
	runs(list, func(a, b sectionClaim) bool { return a.value.SectionID == b.value.SectionID }, func(run []sectionClaim) {
		id := run[0].value.SectionID
		if _, ok := slices.BinarySearch(m.state.HostSections, id); ok {
			m.loseSection(run, phases.OwnerHost)
			return
		}
		// The first in plan order that may own the section does; one that may only join owns it only if nobody may.
		first := slices.IndexFunc(run, func(c sectionClaim) bool { return c.hook.ownsSection(id) })
		owner := run[max(0, first)].item
		from := len(m.fragments)
		for _, c := range run {
			if c.hook.Plugin != owner.hook.Plugin && !c.hook.joinsSection(id) {
				m.loseSection([]sectionClaim{c}, owner.hook.Subscription)
				continue
			}
			m.fragments = append(m.fragments, newFragment(c.item, c.value.MaxChars))
		}
		s := section{id: id, owner: owner.hook.Plugin, fragments: m.fragments[from:]}
		if m.dropBlank(&s); len(s.fragments) > 0 {
			slices.SortFunc(s.fragments, func(a, b fragment) int { return compareRank(a.item, b.item) })
			m.owners = append(m.owners, s)
		}
	})
}

// loseSection records claims of a section that belongs to another.
func (m *merger) loseSection(losers []sectionClaim, owner string) {
	for _, c := range losers {
		m.lose(c.item, c.value.SectionID, string(phases.CauseConflict), charsOf(c.value))
		m.conflict(c.item, owner, c.value.SectionID, "section")
	}
}

func (m *merger) dropBlank(s *section) {
	all := !slices.ContainsFunc(s.fragments, func(f fragment) bool { return !f.blank })
	s.fragments = slices.DeleteFunc(s.fragments, func(f fragment) bool {
		if f.blank {
			f.lost = true
			if !all {
				m.omitPart(f.item, f.id(), ReasonBlank, f.size)
			}
		}
		return f.blank
	})
	if all {
		m.out.Omitted = append(m.out.Omitted, phases.Omitted{ID: s.id, Owner: s.owner, Reason: ReasonBlank})
	}
}

// omit drops a whole section, with one row for all its fragments.
func (m *merger) omit(s *section, why string) {
	for i := range s.fragments {
		s.fragments[i].lost = true
	}
	m.overBudget(s.fragments[0].item, s.id, s.size(), why)
	m.out.Omitted[len(m.out.Omitted)-1].Owner = s.owner
}

// place writes the merged section from fragments that were cut to size.
func (m *merger) place(s *section) {
	if !slices.ContainsFunc(s.fragments, func(f fragment) bool { return !f.fitted.Omitted }) {
		m.omit(s, fmt.Sprintf(nothingFits, s.fragments[0].cut.Limit))
		return
	}
	out := m.heading(s)
	out.Sources = make([]phases.HookSource, 0, len(s.fragments))
	texts, cuts := len(m.texts), len(m.cuts)
	for i := range s.fragments {
		f := &s.fragments[i]
		if f.fitted.Omitted {
			f.lost = true
			m.overBudget(f.item, f.id(), f.size, fmt.Sprintf(nothingFits, f.cut.Limit))
		} else {
			f.section = s.id
			f.selfReport()
			m.recordCut(f)
			if len(s.fragments) > 1 || f.fitted.Cut { // else the source says it
				out.Parts = f.appendParts(out.Parts)
			}
			m.texts = append(m.texts, f.fitted.Text)
			out.Sources = append(out.Sources, m.source(f.item))
			out.SourceRefs = append(out.SourceRefs, sectionOf(f).SourceRefs...)
		}
		m.cuts = append(m.cuts, f.cut)
	}
	out.Content = strings.Join(m.texts[texts:], joint)
	if out.Truncation = truncation(sections.Combine(m.cuts[cuts:])); out.Truncation != nil { // joints count too
		out.Truncation.Original += text.Chars(joint) * (len(s.fragments) - 1)
		out.Truncation.Kept += text.Chars(joint) * (len(m.texts[texts:]) - 1)
	}
	m.out.Merged.Sections = append(m.out.Merged.Sections, out)
}

// appendParts says who wrote the fragment, and the joint in front of it.
func (f *fragment) appendParts(parts []phases.TextPart) []phases.TextPart {
	add := func(s, owner, id string) {
		if s != "" {
			parts = append(parts, phases.TextPart{Bytes: len(s), Owner: owner, ContributionID: id})
		}
	}
	if len(parts) > 0 {
		add(joint, phases.OwnerBuiltin, "")
	}
	whole, marker, end := f.fitted.Text, "", ""
	if f.fitted.Cut {
		marker = "\n" + text.Marker(f.fitted.Kept, f.fitted.Original)
		if end = f.frame.Close; end != "" {
			marker += "\n"
		}
	}
	add(whole[:len(whole)-len(marker)-len(end)], f.hook.Plugin, f.id())
	add(marker, phases.OwnerBuiltin, "")
	add(end, f.hook.Plugin, f.id())
	return parts
}

const (
	joint       = "\n\n" // of fragments
	nothingFits = "the %s limit leaves no room for anything of it"
)

// heading fills in all of a section but its text. Title and placement are those of the owner's best fragment; the
// section is stable only if all fragments are. A row of the compiler's table keeps its own title and stability.
func (m *merger) heading(s *section) phases.MergedSection {
	best := &s.fragments[max(0, slices.IndexFunc(s.fragments, func(f fragment) bool { return f.hook.Plugin == s.owner }))]
	out := phases.MergedSection{
		SectionID: s.id, Owner: s.owner, Priority: s.fragments[0].hook.Priority, Stability: phases.StabilityStable,
		Title: best.entry.text.title, Placement: cmp.Or(sectionOf(best).Placement, phases.PlacementSystem),
		OriginalChars: text.Chars(joint) * (len(s.fragments) - 1),
	}
	for i := range s.fragments {
		out.OriginalChars += s.fragments[i].original()
	}
	if slices.ContainsFunc(s.fragments, func(f fragment) bool { return sectionOf(&f).Stability != phases.StabilityStable }) {
		out.Stability = phases.StabilityDynamic
	}
	if row := sections.ForHooks(s.id); row != nil {
		out.Title, out.Stability = row.Title, row.Stability
	}
	return out
}

func sectionOf(f *fragment) *phases.PromptSection {
	c, _ := f.entry.Value.(*phases.PromptSection)
	return c
}

// mostReported bounds the numbers of plugins' own cuts so that their sums do not overflow.
const mostReported = 1 << 40

// selfReport records what the plugin says it cut itself, if no limit of ours did.
func (f *fragment) selfReport() {
	if f.cut.Limit == "" && f.cut.Kept < f.cut.Original {
		f.cut.Limit = phases.LimitPlugin
	}
}

// original is the length of the fragment before any cut, also the plugin's own.
func (f *fragment) original() int {
	c, ok := f.entry.Value.(*phases.PromptSection)
	if !ok || !selfCut(c) {
		return f.size
	}
	original, kept := min(c.Cut.Original, mostReported), min(c.Cut.Kept, mostReported)
	return max(original, f.size+original-kept)
}
