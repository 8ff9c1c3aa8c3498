package text

import (
	"strings"
	"unicode/utf8"

	"github.com/grapnelhq/grapnel/lenient"
)

// Boundary separates the stable from the dynamic part of a compiled prompt. No
// text of a section may contain it.
const Boundary = "<!-- grapnel:dynamic -->"

// blanks are the characters that a reader does not see at the end of a line.
const blanks = " \t\r\v\f"

// slack is the room for backslashes in the first allocation of an escaped text.
const slack = 64

// Escape inserts a backslash after the first character of each occurrence in s
// of what only the host may write, and returns how many occurrences there were:
//
//   - [Boundary], exactly, anywhere;
//   - each opening or closing tag of a name that is a tag in either half of the
//     frame, anywhere, as a careless reader takes it for one (package lenient),
//     whatever follows the name;
//   - for a half of the frame without a tag ("---BEGIN---"), its line next to
//     the body, as a whole line, in any ASCII case;
//   - a line that a careless reader takes for one that [Marker] writes, quoted,
//     listed or indented too.
//
// s should be normalised: lines end at LF. Text without any of these comes back
// as it is, without allocation.
//
// What was escaped is no occurrence any more, so Escape of the result changes
// nothing. There is no way back: `<\X>` may have been written so.
func Escape(s string, frame Frame) (string, int) {
	var room guardRoom
	g := newGuard(frame, &room)
	s, tags := escapeOpenings(s, &g)
	s, lines := escapeLines(s, &g)
	return s, tags + lines
}

// escapeOpenings deals with tags and markers, which begin with a bracket.
func escapeOpenings(s string, g *guard) (string, int) {
	var out strings.Builder
	count, written := 0, 0
	scan := lenient.Scan(s)
	for c, at, behind := scan.Next(); c != 0; c, at, behind = scan.Next() {
		if !g.guards(s, c, at, behind) {
			continue
		}
		if count == 0 {
			out.Grow(len(s) + slack)
		}
		out.WriteString(s[written:behind])
		out.WriteByte('\\')
		written = behind
		count++
	}
	if count == 0 {
		return s, 0
	}
	out.WriteString(s[written:])
	return out.String(), count
}

// escapeLines deals with whole lines. Escaping tags first is safe: a backslash
// before the end of a tag can neither make nor hide a tag here.
func escapeLines(s string, g *guard) (string, int) {
	if len(g.lines) == 0 {
		return s, 0
	}
	var out strings.Builder
	count, written := 0, 0
	for begin := 0; begin < len(s); {
		end := len(s)
		if n := strings.IndexByte(s[begin:], '\n'); n >= 0 {
			end = begin + n
		}
		if line := s[begin:end]; g.isLine(line) {
			if count == 0 {
				out.Grow(len(s) + slack)
			}
			out.WriteString(s[written:begin])
			out.WriteString(escapeLine(line, g))
			written = end
			count++
		}
		begin = end + 1
	}
	if count == 0 {
		return s, 0
	}
	out.WriteString(s[written:])
	return out.String(), count
}

// escapeLine puts a backslash behind the first visible character. It repeats
// that as long as the result is guarded too, which takes a frame whose two
// halves differ by just such a backslash.
func escapeLine(line string, g *guard) string {
	first := len(line) - len(strings.TrimLeft(line, blanks))
	_, size := utf8.DecodeRuneInString(line[first:])
	first += size
	for g.isLine(line) {
		line = line[:first] + `\` + line[first:]
	}
	return line
}
