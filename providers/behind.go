package providers

import (
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
)

// behind moves the sections of [Request.AfterConversation] from the dynamic part to the
// layout's tail. It returns the request without them.
func (l *Layout) behind(r Request) Request {
	if len(r.AfterConversation) == 0 || !l.openAtEnd(r) {
		return r
	}
	pieces := dynamicPieces(r)
	l.warnOfStayers(r, pieces)
	moves := func(p piece) bool { return slices.Contains(r.AfterConversation, p.id) }
	if !slices.ContainsFunc(pieces, moves) {
		return r
	}
	var kept, moved []string
	for _, p := range pieces {
		if moves(p) {
			moved = append(moved, p.text)
			l.change(manifest.RequestPlacement, p.id, string(phases.PlacementSystem), PlaceAfterConversation)
		} else {
			kept = append(kept, p.text)
		}
	}
	l.Tail = strings.Join(moved, "\n\n")
	r.Prompt.CachePlan.Breakpoints = replaced(r.Prompt.CachePlan.Breakpoints, pieces, moves)
	r.Prompt.DynamicText = strings.Join(kept, "\n\n")
	r.Prompt.FullText = joined(r.Prompt.StableText, r.Prompt.Boundary, r.Prompt.DynamicText)
	r.Sections = slices.DeleteFunc(slices.Clone(r.Sections), func(s manifest.Section) bool {
		return slices.Contains(r.AfterConversation, s.SectionID) && inDynamicPart(&s)
	})
	return r
}

func (l *Layout) openAtEnd(r Request) bool {
	n := len(l.Messages)
	switch {
	case len(r.Sections) == 0:
		l.Warnf(codeNotBehind, "no section stands behind the conversation: the request has no rows of sections")
	case n > 0 && l.Messages[n-1].Assistant:
		l.Warnf(codeNotBehind, "no section stands behind the conversation: it ends with the assistant's words")
	default:
		return true
	}
	return false
}

func (l *Layout) warnOfStayers(r Request, pieces []piece) {
	for _, id := range r.AfterConversation {
		exists := slices.ContainsFunc(r.Sections, func(s manifest.Section) bool { return s.SectionID == id })
		if exists && !slices.ContainsFunc(pieces, func(p piece) bool { return p.id == id }) {
			l.Warnf(codeNotBehind, "the section %s stays in place: it is not in the dynamic part", id)
		}
	}
}

type piece struct{ id, text string }

// dynamicPieces cuts the dynamic part into its sections; nil if the rows do not match the text.
func dynamicPieces(r Request) []piece {
	full := r.Prompt.FullText
	at := len(full) - len(r.Prompt.DynamicText)
	var out []piece
	for _, end := range sectionEnds(r) {
		out = append(out, piece{end.mark.SectionID, full[at:end.at]})
		at = min(end.at+len("\n\n"), len(full))
	}
	if at < len(full) {
		return nil
	}
	return out
}

// replaced moves breakpoints of sections that are gone to the section before, or removes them.
func replaced(plan []manifest.Breakpoint, pieces []piece, gone func(piece) bool) []manifest.Breakpoint {
	var out []manifest.Breakpoint
	for _, b := range plan {
		if b.After == manifest.AfterDynamic {
			i := slices.IndexFunc(pieces, func(p piece) bool { return p.id == b.SectionID })
			for i >= 0 && gone(pieces[i]) {
				i--
			}
			if i < 0 {
				continue
			}
			b.SectionID = pieces[i].id
		}
		out = append(out, b)
	}
	return out
}

func joined(stable, boundary, dynamic string) string {
	if stable == "" || dynamic == "" {
		return stable + dynamic
	}
	return stable + "\n\n" + boundary + "\n\n" + dynamic
}
