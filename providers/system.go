package providers

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
)

// laySystem cuts the full text at the breakpoints and, if there are any, behind each dynamic section: providers
// compare piece by piece, and the next plan may have its breakpoints behind other sections.
func (l *Layout) laySystem(r Request, plan []manifest.Breakpoint) {
	full := r.Prompt.FullText
	ends := sectionEnds(r)
	var cuts []cut
	from := 0
	for _, b := range plan {
		end, ok := 0, false
		switch b.After {
		case manifest.AfterTools:
			l.BreakAfterTools = len(l.Tools) > 0
			if !l.BreakAfterTools {
				l.Warnf(CodeBreakpoint, "the breakpoint after the tools has no place: there are no tools")
			}
			continue
		case manifest.AfterStable:
			end, ok = len(r.Prompt.StableText), r.Prompt.StableText != ""
		case manifest.AfterDynamic:
			i := slices.IndexFunc(ends, func(c cut) bool { return c.mark.SectionID == b.SectionID })
			if ok = i >= 0; ok {
				end = ends[i].at
			}
		}
		if !ok || end < from {
			l.Warnf(CodeBreakpoint, "the breakpoint after %s has no place in the prompt", place(b))
			continue
		}
		if end > from { // else two breakpoints at one place
			cuts = append(cuts, cut{end, b})
			from = end
		}
	}
	for _, end := range ends {
		i, taken := slices.BinarySearchFunc(cuts, end.at, func(c cut, at int) int { return cmp.Compare(c.at, at) })
		if !taken && len(cuts) > 0 {
			cuts = slices.Insert(cuts, i, cut{at: end.at})
		}
	}
	from = 0
	for _, c := range cuts {
		l.System = append(l.System, Segment{Text: full[from:c.at], Break: c.mark})
		from = c.at
	}
	if from < len(full) {
		l.System = append(l.System, Segment{Text: full[from:]})
	}
}

// cut is a place where the text is cut. Its mark has no After without a breakpoint.
type cut struct {
	at   int
	mark manifest.Breakpoint
}

// sectionEnds returns where the dynamic sections end in the full text, as far as it consists of a heading of one
// line, a blank line, and the section's characters. Manifests may hide titles, so they are not compared.
func sectionEnds(r Request) []cut {
	full := r.Prompt.FullText
	at := len(full) - len(r.Prompt.DynamicText)
	var ends []cut
	for i := range r.Sections {
		s := &r.Sections[i]
		if !inDynamicPart(s) {
			continue
		}
		rest := full[at:]
		heading, body, ok := strings.Cut(rest, "\n\n")
		size, enough := prefixOf(body, s.Chars)
		if !ok || !enough || !strings.HasPrefix(heading, "## ") || strings.Contains(heading, "\n") {
			break
		}
		at += len(heading) + len("\n\n") + size
		if at < len(full) && !strings.HasPrefix(full[at:], "\n\n## ") {
			break
		}
		ends = append(ends, cut{at, manifest.Breakpoint{SectionID: s.SectionID}})
		at = min(at+len("\n\n"), len(full))
	}
	return ends
}

func inDynamicPart(s *manifest.Section) bool {
	return s.Stability != phases.StabilityStable &&
		s.Placement != phases.PlacementSystemMessage && s.Placement != phases.PlacementUserMessage
}

// prefixOf returns the size of the first characters in bytes.
func prefixOf(s string, chars int) (size int, ok bool) {
	for range chars {
		if size >= len(s) {
			return 0, false
		}
		_, n := utf8.DecodeRuneInString(s[size:])
		size += n
	}
	return size, true
}

// SystemText returns the system prompt in one piece.
func (l *Layout) SystemText() string {
	var b strings.Builder
	for _, s := range l.System {
		b.WriteString(s.Text)
	}
	return b.String()
}
