package text

import "strings"

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

// tag is the part of a frame that a body must not imitate.
type tag struct {
	name       string
	closing    bool
	attributes bool // the frame's own tag has some, so any may follow the name
}

// guard knows what a body may not contain because of its frame.
type guard struct {
	tags  []tag
	lines []string // lines without a tag, trimmed of blanks
}

// guardRoom is where what a frame has to guard usually fits. The caller of
// newGuard keeps it, so that guards stay on the stack.
type guardRoom struct {
	tags  [4]tag
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
	return g
}

// appendLine appends a line to guard unless it is blank.
func appendLine(lines []string, line string) []string {
	if line = strings.Trim(line, blanks); line != "" {
		lines = append(lines, line)
	}
	return lines
}

// isTag reports whether s, which begins with '<', begins with a guarded tag.
func (g *guard) isTag(s string) bool {
	for i := range g.tags {
		if g.tags[i].begins(s) {
			return true
		}
	}
	return false
}

// isLine reports whether a line, given without its newline, is a marker of
// ours or a guarded line of the frame.
func (g *guard) isLine(line string) bool {
	line = strings.Trim(line, blanks)
	if isMarker(line) {
		return true
	}
	for _, guarded := range g.lines {
		if len(line) == len(guarded) && equalFold(line, guarded) {
			return true
		}
	}
	return false
}

// begins reports whether s begins with the tag: name in any ASCII case, blanks
// and newlines before the '>', and attributes if the frame's tag has them.
// Every scan ends at the next '<', so a whole text costs one pass.
func (t *tag) begins(s string) bool {
	i := 1
	if t.closing {
		if len(s) < 2 || s[1] != '/' {
			return false
		}
		i = 2
	}
	if len(s) < i+len(t.name) || !equalFold(s[i:i+len(t.name)], t.name) {
		return false
	}
	rest := s[i+len(t.name):]
	after := strings.TrimLeft(rest, blanks+"\n")
	if strings.HasPrefix(after, ">") {
		return true
	}
	if !t.attributes || len(after) == len(rest) {
		return false
	}
	end := strings.IndexAny(after, "<>")
	return end >= 0 && after[end] == '>'
}

// appendTags appends each tag in s: '<', perhaps '/', a name, and '>', perhaps
// with blanks or attributes between.
func appendTags(tags []tag, s string) []tag {
	for {
		i := strings.IndexByte(s, '<')
		if i < 0 {
			return tags
		}
		s = s[i+1:]
		if t, ok := parseTag(s); ok {
			tags = append(tags, t)
		}
	}
}

// parseTag reads the tag that begins before s.
func parseTag(s string) (tag, bool) {
	name, closing := strings.CutPrefix(s, "/")
	n := 0
	for n < len(name) && isNameByte(name[n], n == 0) {
		n++
	}
	if n == 0 {
		return tag{}, false
	}
	t := tag{name: name[:n], closing: closing}
	after := strings.TrimLeft(name[n:], blanks+"\n")
	if strings.HasPrefix(after, ">") {
		return t, true
	}
	end := strings.IndexAny(after, "<>")
	t.attributes = end >= 0 && after[end] == '>' && len(after) < len(name)-n
	return t, t.attributes
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
