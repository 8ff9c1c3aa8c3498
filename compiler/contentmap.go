package compiler

import (
	"cmp"
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/internal/engine/sections"
	"github.com/grapnelhq/grapnel/internal/text"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
)

// contentMap collects who wrote what of the text of one section after another.
type contentMap struct {
	spans []manifest.Span
	// from is the section's first span, and chars the length of its text so far.
	from, chars int
}

func (m *contentMap) next() { m.from, m.chars = len(m.spans), 0 }

// done returns the section's spans.
func (m *contentMap) done() []manifest.Span { return slices.Clip(m.spans[m.from:]) }

// add adds text behind what is there already.
func (m *contentMap) add(s, owner, id string) {
	n := text.Chars(s)
	if n == 0 {
		return
	}
	owner, id = cmp.Or(valid(owner), phases.OwnerBuiltin), valid(id)
	if last := len(m.spans) - 1; last >= m.from && m.spans[last].Owner == owner && m.spans[last].ContributionID == id {
		m.spans[last].Length += n
	} else {
		m.spans = append(m.spans, manifest.Span{Offset: m.chars, Length: n, Owner: owner, ContributionID: id})
	}
	m.chars += n
}

// addCut adds a text that ends in the marker of its cut, if it was cut.
func (m *contentMap) addCut(s string, cut phases.Truncation, owner, id string) {
	marker := markerOf(s, cut)
	m.add(strings.TrimSuffix(s, marker), owner, id)
	m.add(marker, phases.OwnerBuiltin, "")
}

// markerOf returns the marker at the end of a text that was cut, with the newline in front of it.
func markerOf(s string, cut phases.Truncation) string {
	if cut.Limit == "" {
		return ""
	}
	rest, found := strings.CutSuffix(s, text.Marker(cut.Kept, cut.Original))
	if !found {
		return ""
	}
	return s[len(strings.TrimSuffix(rest, "\n")):]
}

// attribute maps the section's text: what is left of final, then body and note.
func (s *section) attribute(m *contentMap, left string) {
	m.next()
	s.attributeFinal(m, left)
	if s.body != "" {
		if m.chars > 0 {
			m.add(join, phases.OwnerBuiltin, "")
		}
		owner := phases.OwnerHost
		if s.SectionID == sections.HiddenToolDomains {
			owner = phases.OwnerBuiltin
		}
		m.addCut(s.body, s.bodyCut, owner, "")
		if s.note != "" {
			m.add(join+s.note, phases.OwnerBuiltin, "")
		}
	}
	s.ContentMap, s.Chars = m.done(), m.chars
}

// attributeFinal maps what is left of final. Where that was repaired, guarded or trimmed, its parts are too; text that
// only several parts together made such is the section owner's.
func (s *section) attributeFinal(m *contentMap, left string) {
	if len(s.parts) == 0 {
		m.add(left, s.Owner, s.contribution)
		return
	}
	texts, rest := make([]string, len(s.parts)), s.final
	for i := range s.parts {
		n := min(len(rest), s.parts[i].Bytes)
		texts[i], rest = rest[:n], rest[n:]
		if left != s.final {
			texts[i] = guard(valid(texts[i]))
		}
	}
	all := s.final
	if left != s.final {
		all = strings.Join(texts, "")
	}
	skip := strings.Index(all, left) // only blank lines are in front of it
	if rest != "" || trim(all) != left {
		m.add(left, s.Owner, "")
		return
	}
	keep := len(left)
	for i, t := range texts {
		from := min(skip, len(t))
		to := min(len(t), from+keep)
		skip, keep = skip-from, keep-(to-from)
		m.add(t[from:to], s.parts[i].Owner, s.parts[i].ContributionID)
	}
}
