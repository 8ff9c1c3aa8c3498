package providers

import (
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/manifest"
)

// behind takes the sections of [Request.AfterConversation] out of the system
// prompt and makes them the layout's tail. It returns the request without them,
// as if they had never been in the dynamic part.
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

// openAtEnd reports whether something can be put behind the conversation: it is
// the user's turn to speak, or nobody has spoken.
func (l *Layout) openAtEnd(r Request) bool {
	n := len(l.Messages)
	switch {
	case len(r.Sections) == 0:
		l.Warnf(CodeNotBehind, "no section stands behind the conversation: the request has no rows of sections")
	case n > 0 && l.Messages[n-1].Assistant:
		l.Warnf(CodeNotBehind, "no section stands behind the conversation: it ends with the assistant's words")
	default:
		return true
	}
	return false
}

// warnOfStayers names sections that cannot be taken out. One that is not in the
// prompt at all needs no word.
func (l *Layout) warnOfStayers(r Request, pieces []piece) {
	for _, id := range r.AfterConversation {
		there := slices.ContainsFunc(r.Sections, func(s manifest.Section) bool { return s.SectionID == id })
		if there && !slices.ContainsFunc(pieces, func(p piece) bool { return p.id == id }) {
			l.Warnf(CodeNotBehind, "the section %s stays where it is: it is not one of the dynamic part", id)
		}
	}
}

// piece is a dynamic section as it stands in the prompt.
type piece struct{ id, text string }

// dynamicPieces cuts the dynamic part into its sections; none where the rows are
// not those of the text.
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

// replaced moves breakpoints behind a section that is gone to the one before it
// that is still there, and leaves out those that have none.
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

// joined is what the compiler makes of both parts.
func joined(stable, boundary, dynamic string) string {
	if stable == "" || dynamic == "" {
		return stable + dynamic
	}
	return stable + "\n\n" + boundary + "\n\n" + dynamic
}
