package providers

import (
	"slices"

	"github.com/grapnelhq/grapnel/phases"
)

// ChangeKind says what differs between a request and its manifest.
type ChangeKind string

// The kinds.
const (
	ChangePlacement ChangeKind = "placement"  // a section stands elsewhere; Manifest and Sent are places
	ChangeToolName  ChangeKind = "tool_name"  // a tool has another name
	ChangeToolGone  ChangeKind = "tool_gone"  // a tool is not sent
	ChangeCacheKey  ChangeKind = "cache_key"  // the plan's key is sent as a hash of it
	ChangeCallID    ChangeKind = "call_id"    // a call of the history has another id
	ChangeMedia     ChangeKind = "media"      // an image or document is sent as a note
	ChangeErrorText ChangeKind = "error_text" // a result without text has one
)

// Places of sections, besides those of package phases.
const (
	// PlaceAfterConversation is behind the conversation: the end of the user's message, or a system message (OpenAI).
	PlaceAfterConversation = "after_conversation"
	// PlaceFirstMessage is the beginning of the user's first message.
	PlaceFirstMessage = "first_message"
)

// Change is one thing that a request has different from its manifest. As long as no section leaves the placement
// "system", the system prompt that is sent begins with the text of fingerprint_full.
type Change struct {
	Kind ChangeKind `json:"kind"`
	// ID is the section's, the tool's or the call's.
	ID       string `json:"id,omitempty"`
	Manifest string `json:"manifest,omitempty"`
	Sent     string `json:"sent,omitempty"`
}

func (l *Layout) change(kind ChangeKind, id, manifest, sent string) {
	l.Changes = append(l.Changes, Change{Kind: kind, ID: id, Manifest: manifest, Sent: sent})
}

// Move notes that the request's sections of one placement stand elsewhere. Adapters use it.
func (l *Layout) Move(r Request, from phases.Placement, to string) {
	for i := range r.Sections {
		s := &r.Sections[i]
		behind := slices.ContainsFunc(l.Changes, func(c Change) bool { return c.Kind == ChangePlacement && c.ID == s.SectionID })
		if s.Placement == from && !behind && (from != phases.PlacementSystem || inDynamicPart(s)) {
			l.change(ChangePlacement, s.SectionID, string(from), to)
		}
	}
}
