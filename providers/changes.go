package providers

import (
	"slices"

	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
)

// Places of sections, besides those of package phases.
const (
	// PlaceAfterConversation is behind the conversation: the end of the user's message, or a system message (OpenAI).
	PlaceAfterConversation = "after_conversation"
	// PlaceFirstMessage is the beginning of the user's first message.
	PlaceFirstMessage = "first_message"
)

// Change is one thing that a request has different from its manifest. runtime.Turn.ReportRequest puts them on record.
type Change = manifest.RequestChange

func (l *Layout) change(kind manifest.RequestChangeKind, id, recorded, sent string) {
	l.Changes = append(l.Changes, Change{Kind: kind, ID: id, Manifest: recorded, Sent: sent})
}

// Move notes that the request's sections of one placement stand elsewhere. Adapters use it.
func (l *Layout) Move(r Request, from phases.Placement, to string) {
	for i := range r.Sections {
		s := &r.Sections[i]
		behind := slices.ContainsFunc(l.Changes, func(c Change) bool { return c.Kind == manifest.RequestPlacement && c.ID == s.SectionID })
		if s.Placement == from && !behind && (from != phases.PlacementSystem || inDynamicPart(s)) {
			l.change(manifest.RequestPlacement, s.SectionID, string(from), to)
		}
	}
}
