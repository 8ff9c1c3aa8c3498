package providers

import (
	"strings"
	"unicode/utf8"

	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
)

// laySystem cuts the full text at the breakpoints.
func (l *Layout) laySystem(r Request, plan []manifest.Breakpoint) {
	full := r.Prompt.FullText
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
			end, ok = endOfSection(r, b.SectionID)
		}
		if !ok || end < from {
			l.Warnf(CodeBreakpoint, "the breakpoint after %s has no place in the prompt", place(b))
			continue
		}
		if end == from { // two breakpoints at one place
			continue
		}
		l.System = append(l.System, Segment{Text: full[from:end], Break: b})
		from = end
	}
	if from < len(full) {
		l.System = append(l.System, Segment{Text: full[from:]})
	}
}

// endOfSection returns where a dynamic section ends in the full text. It walks
// the sections before it: a heading of one line, a blank line, and so many
// characters. Titles are not compared, because manifests may hide them. It is
// false when the text is not built like that.
func endOfSection(r Request, id string) (int, bool) {
	full := r.Prompt.FullText
	at := len(full) - len(r.Prompt.DynamicText)
	for i := range r.Sections {
		s := &r.Sections[i]
		if !inDynamicPart(s) {
			continue
		}
		rest := full[at:]
		if !strings.HasPrefix(rest, "## ") {
			return 0, false
		}
		heading, body, ok := strings.Cut(rest, "\n\n")
		size, enough := prefixOf(body, s.Chars)
		if !ok || !enough || strings.Contains(heading, "\n") {
			return 0, false
		}
		at += len(heading) + len("\n\n") + size
		if at < len(full) && !strings.HasPrefix(full[at:], "\n\n## ") {
			return 0, false
		}
		if s.SectionID == id {
			return at, true
		}
		at = min(at+len("\n\n"), len(full))
	}
	return 0, false
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
