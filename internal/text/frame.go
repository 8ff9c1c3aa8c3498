package text

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/grapnelhq/grapnel/lenient"
)

// Frame is what stands around a fragment's body. It survives every cut whole.
// The zero value is no frame.
type Frame struct {
	// Open stands before the body: perhaps a preamble, then usually a line
	// with a tag such as <AGENTS_MD>.
	Open string
	// Close stands after the body: usually the closing tag.
	Close string
}

// size returns the characters that the frame adds to a body that is not empty.
func (f Frame) size() int {
	n := 0
	for _, part := range [...]string{f.Open, f.Close} {
		if part != "" {
			n += Chars(part) + 1
		}
	}
	return n
}

// guard knows what a body may not contain because of its frame.
type guard struct {
	tags  []string // names
	lines []string // lines without a tag, trimmed of blanks
}

// guardRoom is where what a frame has to guard usually fits. The caller of
// newGuard keeps it, so that guards stay on the stack.
type guardRoom struct {
	tags  [4]string
	lines [2]string
}

// newGuard reads a frame. A half of it without any tag is guarded by the line
// of it that is next to the body.
func newGuard(f Frame, room *guardRoom) guard {
	open := appendTags(room.tags[:0], f.Open)
	g := guard{tags: appendTags(open, f.Close), lines: room.lines[:0]}
	if len(open) == 0 {
		half := strings.TrimRight(f.Open, blanks+"\n")
		g.lines = appendLine(g.lines, half[strings.LastIndexByte(half, '\n')+1:])
	}
	if len(g.tags) == len(open) {
		line, _, _ := strings.Cut(strings.TrimLeft(f.Close, blanks+"\n"), "\n")
		g.lines = appendLine(g.lines, line)
	}
	g.tags = slices.Compact(g.tags) // usually the same, opened and closed
	return g
}

// appendLine appends a line to guard unless it is blank.
func appendLine(lines []string, line string) []string {
	if line = strings.Trim(line, blanks); line != "" {
		lines = append(lines, line)
	}
	return lines
}

// guards reports whether what a tag or a marker begins with stands before one that only
// the host may write. It is c, from index at to behind.
func (g *guard) guards(s string, c byte, at, behind int) bool {
	if c == '[' {
		return lenient.Word(s, at, markerWord) > 0 && lenient.StartsLine(s, at, "")
	}
	if strings.HasPrefix(s[at:], Boundary) {
		return true
	}
	return g.tagEnd(s, behind) > 0
}

// tagEnd returns where the name ends of a guarded tag that begins before s[i:]; 0 if none
// does.
func (g *guard) tagEnd(s string, i int) int {
	for _, name := range g.tags {
		if end := tagEnd(s, i, name); end > 0 {
			return end
		}
	}
	return 0
}

// tagEnd is guard.tagEnd for one name. With a blank before the name of an opening tag it
// may be a comparison, unless something closes it.
func tagEnd(s string, i int, name string) int {
	if strings.IndexFunc(name, func(r rune) bool { return r >= utf8.RuneSelf }) >= 0 { // compared as it is
		if strings.HasPrefix(s[i:], "/") {
			i++
		}
		if end := i + len(name); strings.HasPrefix(s[i:], name) && lenient.Ends(s, end) {
			return end
		}
		return 0
	}
	end := lenient.Tag(s, i, name)
	if end == 0 || !lenient.Ends(s, end) {
		return 0
	}
	begin := lenient.Blanks(s, i)
	if c, _ := lenient.Shown(s, begin); begin == i || c == '/' {
		return end
	}
	for i = end; i < len(s); {
		c, next := lenient.Shown(s, i)
		switch c {
		case '>':
			return end
		case '<':
			return 0
		}
		i = next
	}
	return 0
}

// cutTag returns where the name ends of a guarded tag that s ends with; 0 if there is
// none. A cut makes one of a longer name.
func (g *guard) cutTag(s string) int {
	if len(g.tags) == 0 {
		return 0
	}
	for i := len(s) - 1; i >= 0; i-- {
		if c, behind := lenient.Opening(s, i); c == '<' {
			return g.tagEnd(s, behind)
		}
	}
	return 0
}

// isLine reports whether a line, given without its newline, is a guarded line of the
// frame.
func (g *guard) isLine(line string) bool {
	line = strings.Trim(line, blanks)
	for _, guarded := range g.lines {
		if len(line) == len(guarded) && equalFold(line, guarded) {
			return true
		}
	}
	return false
}

// appendTags appends the name of each tag in s: '<', perhaps '/', a name, and '>',
// perhaps with blanks or attributes between.
func appendTags(tags []string, s string) []string {
	for {
		i := strings.IndexByte(s, '<')
		if i < 0 {
			return tags
		}
		s = s[i+1:]
		if name := tagName(s); name != "" {
			tags = append(tags, name)
		}
	}
}

// tagName returns the name of the tag that begins before s; empty if none does.
func tagName(s string) string {
	s = strings.TrimPrefix(s, "/")
	n := 0
	for n < len(s) && isNameByte(s[n], n == 0) {
		n++
	}
	after := strings.TrimLeft(s[n:], blanks+"\n")
	end := strings.IndexAny(after, "<>")
	if end < 0 || after[end] != '>' || end > 0 && len(after) == len(s)-n {
		return ""
	}
	return s[:n]
}

// isNameByte is XML's idea of a name, generous beyond ASCII.
func isNameByte(c byte, first bool) bool {
	switch {
	case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', c == '_', c >= 0x80:
		return true
	default:
		return !first && ('0' <= c && c <= '9' || c == '-' || c == '.' || c == ':')
	}
}

// equalFold compares strings of one length, ignoring the case of ASCII letters
// only; strings.EqualFold would take the Kelvin sign for a k.
func equalFold(a, b string) bool {
	for i := range len(a) {
		if lower(a[i]) != lower(b[i]) {
			return false
		}
	}
	return true
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}
