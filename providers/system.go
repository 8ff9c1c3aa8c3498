package providers

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
)

// laySystem cuts the full text at the breakpoints and, where there is one, behind
// each dynamic section: a provider that compares piece by piece finds the end of
// what it has kept only where a piece ends, and the next plan may go on from
// another section.
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
				l.Warnf(CodeBreakpoint, "the breakpoint after the tools has no place: there are none")
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
	if len(cuts) > 0 {
		cuts = withEnds(cuts, ends)
	}
	l.cutAt(full, cuts)
}

// cut is a place where the text is cut. A place without a breakpoint has a mark
// without After.
type cut struct {
	at   int
	mark manifest.Breakpoint
}

// withEnds adds the ends of sections to the breakpoints.
func withEnds(cuts, ends []cut) []cut {
	for _, end := range ends {
		i, taken := slices.BinarySearchFunc(cuts, end.at, func(c cut, at int) int { return cmp.Compare(c.at, at) })
		if !taken {
			cuts = slices.Insert(cuts, i, cut{at: end.at})
		}
	}
	return cuts
}

// cutAt makes pieces of the text.
func (l *Layout) cutAt(full string, cuts []cut) {
	from := 0
	for _, c := range cuts {
		l.System = append(l.System, Segment{Text: full[from:c.at], Break: c.mark})
		from = c.at
	}
	if from < len(full) {
		l.System = append(l.System, Segment{Text: full[from:]})
	}
}

// sectionEnds returns where the dynamic sections end in the full text. It walks
// them: a heading of one line, a blank line, and so many characters. Titles are
// not compared, because manifests may hide them. It stops where the text is not
// built like that.
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

// prefixOf returns the size of the first so many characters in bytes.
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
