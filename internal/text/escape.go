package text

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// Boundary separates the stable from the dynamic part of a compiled prompt. No text of a section may contain it.
const Boundary = "<!-- grapnel:dynamic -->"

// blanks are invisible at the end of a line.
const blanks = " \t\r\v\f"

// markerWord is how a line begins that reads like a [Marker].
const markerWord = "[ truncated : kept"

// Escape inserts a backslash after the first character of each occurrence in s of what
// only the host may write, and returns the number of occurrences:
//
//   - [Boundary];
//   - each opening or closing tag, read leniently, of a name that is a tag in either
//     half of the frame, whatever follows the name;
//   - for a half of the frame without a tag ("---BEGIN---"), its line next to
//     the body, as a whole line, in any ASCII case;
//   - a line, read leniently, that [Marker] could have written.
//
// s should be normalised. Text without any of these comes back as it is, without
// allocation. Escape of the result changes nothing. It cannot be undone.
func Escape(s string, frame Frame) (string, int) {
	var space guardSpace
	g := newGuard(frame, &space)
	var marks []int
	scan := Scan(s)
	for c, at, after := scan.Next(); c != 0; c, at, after = scan.Next() {
		if g.guards(s, c, at, after) {
			marks = append(marks, after)
		}
	}
	s, tags := Backslashes(s, marks), len(marks)
	s, lines := escapeLines(s, &g)
	return s, tags + lines
}

// Backslashes inserts a backslash at each of the ascending marks.
func Backslashes(s string, marks []int) string {
	if len(marks) == 0 {
		return s
	}
	var out strings.Builder
	out.Grow(len(s) + len(marks))
	done := 0
	for _, at := range marks {
		out.WriteString(s[done:at])
		out.WriteByte('\\')
		done = at
	}
	out.WriteString(s[done:])
	return out.String()
}

// escapeLines escapes guarded lines. Tags are escaped first: a backslash in a tag can
// neither make nor hide a guarded line.
func escapeLines(s string, g *guard) (string, int) {
	if len(g.lines) == 0 {
		return s, 0
	}
	var marks []int
	count, begin := 0, 0
	for line := range strings.Lines(s) {
		if visible := strings.TrimSuffix(line, "\n"); g.isLine(visible) {
			first := len(visible) - len(strings.TrimLeft(visible, blanks))
			_, size := utf8.DecodeRuneInString(visible[first:])
			first += size
			// More than one if the frame's halves differ by just such a backslash.
			for ; g.isLine(visible); visible = visible[:first] + `\` + visible[first:] {
				marks = append(marks, begin+first)
			}
			count++
		}
		begin += len(line)
	}
	return Backslashes(s, marks), count
}

// Frame is the text around a fragment's body. It survives every cut whole. The zero value means no frame.
type Frame struct {
	// Open stands before the body: perhaps a preamble, then usually a line with a tag such as <AGENTS_MD>.
	Open string
	// Close stands after the body: usually the closing tag.
	Close string
}

func (f Frame) size() int {
	n := 0
	for _, part := range [...]string{f.Open, f.Close} {
		if part != "" {
			n += Chars(part) + 1
		}
	}
	return n
}

type guard struct {
	tags  []string // names
	lines []string // lines without a tag, trimmed of blanks
}

// guardSpace keeps a guard on its caller's stack.
type guardSpace struct {
	tags  [4]string
	lines [2]string
}

// newGuard reads a frame. A half without any tag is guarded by its line next to the body.
func newGuard(f Frame, space *guardSpace) guard {
	if f == (Frame{}) {
		return guard{}
	}
	open := appendTags(space.tags[:0], f.Open)
	g := guard{tags: appendTags(open, f.Close), lines: space.lines[:0]}
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

func appendLine(lines []string, line string) []string {
	if line = strings.Trim(line, blanks); line != "" {
		lines = append(lines, line)
	}
	return lines
}

// guards reports whether the bracket c, from index at to after, begins what only the host may write.
func (g *guard) guards(s string, c byte, at, after int) bool {
	if c == '[' {
		return Word(s, at, markerWord) > 0 && StartsLine(s, at, "")
	}
	return strings.HasPrefix(s[at:], Boundary) || g.tagEnd(s, after) > 0
}

// tagEnd returns the end of the name of a guarded tag whose "<" ends at i, or 0.
func (g *guard) tagEnd(s string, i int) int {
	for _, name := range g.tags {
		if end := tagEnd(s, i, name); end > 0 {
			return end
		}
	}
	return 0
}

// tagEnd is guard.tagEnd for one name. An opening tag with a blank before its name needs
// a ">": it may be a comparison.
func tagEnd(s string, i int, name string) int {
	if !isASCII(name) { // compared as it is
		rest := strings.TrimPrefix(s[i:], "/")
		if end := len(s) - len(rest) + len(name); strings.HasPrefix(rest, name) && Ends(s, end) {
			return end
		}
		return 0
	}
	end := Tag(s, i, name)
	if end == 0 || !Ends(s, end) {
		return 0
	}
	begin := Blanks(s, i)
	if c, _ := Shown(s, begin); begin == i || c == '/' {
		return end
	}
	for i = end; i < len(s); {
		c, next := Shown(s, i)
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

// cutTag returns the end of the name of a guarded tag that s ends with, or 0.
func (g *guard) cutTag(s string) int {
	if len(g.tags) == 0 {
		return 0
	}
	for i := len(s) - 1; i >= 0; i-- {
		if c, behind := Opening(s, i); c == '<' {
			return g.tagEnd(s, behind)
		}
	}
	return 0
}

func (g *guard) isLine(line string) bool {
	line = strings.Trim(line, blanks)
	return slices.ContainsFunc(g.lines, func(guarded string) bool { return equalFold(line, guarded) })
}

func appendTags(tags []string, s string) []string {
	for {
		_, after, found := strings.Cut(s, "<")
		if !found {
			return tags
		}
		s = after
		if name := tagName(s); name != "" {
			tags = append(tags, name)
		}
	}
}

// tagName returns the name of the tag whose "<" stands before s: perhaps "/", a name,
// perhaps blanks or attributes, and ">". It is empty for anything else.
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

// isNameByte follows XML, and is generous beyond ASCII.
func isNameByte(c byte, first bool) bool {
	letter := 'a' <= lower(c) && lower(c) <= 'z' || c == '_' || c >= utf8.RuneSelf
	return letter || !first && ('0' <= c && c <= '9' || c == '-' || c == '.' || c == ':')
}

// equalFold ignores the case of ASCII letters only.
func equalFold(a, b string) bool {
	for i := range min(len(a), len(b)) {
		if lower(a[i]) != lower(b[i]) {
			return false
		}
	}
	return len(a) == len(b)
}
