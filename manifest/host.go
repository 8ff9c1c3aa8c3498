package manifest

import (
	"cmp"
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/phases"
)

// FileOfHost is the status of a file that the host gives the model by itself.
const FileOfHost = "host"

// HostEvent is something that a host reported about itself: what it loaded, changed or refused, or who started a call.
type HostEvent struct {
	// Event is the host's name of the event.
	Event string `json:"event"`
	// CallID is the host's id of the call that it is about; absent without one.
	CallID string `json:"call_id,omitempty"`
	// Refused is why the host was told not to do it; absent where it was only recorded.
	Refused string `json:"refused,omitempty"`
	// Facts are what the host said of it, in its own words.
	Facts []HostFact `json:"facts"`
}

// HostFact is a name and a value.
type HostFact struct {
	// Name is the host's own name for the value.
	Name string `json:"name"`
	// Value is the host's text, or one that somebody else wrote, such as the name of a skill.
	Value string `json:"value"`
}

// Body returns a rendered section without its heading, which messages and the parts of an observed request do not have.
func (m *Manifest) Body(s *Section, rendered string) string {
	if s.Placement == phases.PlacementSystem && m.Observed == "" {
		_, rendered, _ = strings.Cut(rendered, "\n\n")
	}
	return rendered
}

// WithMessages returns the record of an observed request with the parts of its messages as sections behind its own, for
// questions about texts; any other record as it is. It is not a valid record: ids repeat.
func (m *Manifest) WithMessages() *Manifest {
	if m.Observed == "" || m.History == nil {
		return m
	}
	all := *m
	all.Sections, all.SectionIDs = slices.Clip(m.Sections), slices.Clip(m.SectionIDs)
	for _, p := range m.History.Added {
		id := cmp.Or(p.ID, p.Kind)
		all.SectionIDs = append(all.SectionIDs, id)
		all.Sections = append(all.Sections, Section{
			SectionID: id, Title: p.Kind, Stability: phases.StabilityDynamic, Placement: phases.PlacementUserMessage, Owner: p.Owner, Position: len(all.Sections),
			Chars: p.Chars, OriginalChars: p.Chars, Hash: p.Hash, ContentMap: wholeOf(p.Chars, p.Owner), SourceRefs: []phases.SourceRef{},
		})
	}
	return &all
}

func wholeOf(chars int, owner string) []Span { return []Span{{Length: chars, Owner: owner}} }
