package text

import (
	"strings"
	"unicode/utf8"
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
//   - each tag of the form <NAME> or </NAME> in either half of the frame,
//     anywhere, in any ASCII case and with blanks or newlines before the '>';
//     if the frame's own tag has attributes, with any attributes;
//   - for a half of the frame without a tag ("---BEGIN---"), its line next to
//     the body, as a whole line, in any ASCII case;
//   - a whole line of the form that [Marker] writes.
//
// Blanks around a whole line do not hide it. s should be normalised: lines end
// at LF. Text without any of these comes back as it is, without allocation.
//
// What was escaped is no occurrence any more, so Escape of the result changes
// nothing. There is no way back: `<\X>` may have been written so.
func Escape(s string, frame Frame) (string, int) {
	var room guardRoom
	g := newGuard(frame, &room)
	s, tags := escapeTags(s, &g)
	s, lines := escapeLines(s, &g)
	return s, tags + lines
}

// escapeTags deals with what begins with '<', wherever it stands.
func escapeTags(s string, g *guard) (string, int) {
	var out strings.Builder
	count, written := 0, 0
	for i := 0; ; i++ {
		next := strings.IndexByte(s[i:], '<')
		if next < 0 {
			break
		}
		i += next
		if !strings.HasPrefix(s[i:], Boundary) && !g.isTag(s[i:]) {
			continue
		}
		if count == 0 {
			out.Grow(len(s) + slack)
		}
		out.WriteString(s[written : i+1])
		out.WriteByte('\\')
		written = i + 1
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
	if len(g.lines) == 0 && !strings.Contains(s, markerHead) {
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
