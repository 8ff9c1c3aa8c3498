package text

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// ellipsis stands at the end of what Sanitize has cut.
const ellipsis = "…"

// maxSequence is how many bytes of a terminal's escape sequence are believed.
// What goes on for longer is shown, or one introducer could hide a whole text.
const maxSequence = 256

// Sanitize makes foreign text fit for one line of a log, a diagnostic or a
// terminal. Escape sequences of terminals (colours, titles, cursor movements)
// are dropped. Whatever else is not printable is shown as \u{…} with its hex
// number: newlines, control, bidirectional and zero-width characters, blanks
// other than the space. Bytes that are not UTF-8 become U+FFFD.
//
// The result has at most limit characters; if it had to be cut it ends with an
// ellipsis, never inside a \u{…}. Clean text comes back as it is.
func Sanitize(s string, limit int) string {
	if limit <= 0 {
		return ""
	}
	if isClean(s) && (len(s) <= limit || Chars(s) <= limit) {
		return s
	}
	var out strings.Builder
	used := 0 // characters in out
	keep := 0 // bytes of out that leave room for an ellipsis
	for s != "" {
		if n := sequence(s); n > 0 {
			s = s[n:]
			continue
		}
		r, size := utf8.DecodeRuneInString(s)
		s = s[size:]
		shown := visible(r)
		if used += Chars(shown); used > limit {
			return out.String()[:keep] + ellipsis
		}
		out.WriteString(shown)
		if used < limit {
			keep = out.Len()
		}
	}
	return out.String()
}

// isClean reports whether nothing in s needs a replacement.
func isClean(s string) bool {
	for i := 0; i < len(s); {
		if c := s[i]; c < utf8.RuneSelf {
			if c < ' ' || c == 0x7f {
				return false
			}
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		if !strconv.IsPrint(r) || size == 1 {
			return false
		}
		i += size
	}
	return true
}

// visible returns what is shown for r.
func visible(r rune) string {
	if strconv.IsPrint(r) {
		return string(r)
	}
	return `\u{` + strconv.FormatInt(int64(r), 16) + "}"
}

// sequence returns the length of the escape sequence (ECMA-48) that s begins
// with, 0 if there is none or it does not end in time.
func sequence(s string) int {
	if len(s) < 2 || s[0] != 0x1b {
		return 0
	}
	s = s[:min(len(s), maxSequence)]
	switch s[1] {
	case '[': // control sequence: parameters and intermediates, final byte
		return through(s, 2, 0x20, 0x3f, 0x40, 0x7e)
	case ']', 'P', 'X', '^', '_': // a string: to BEL or ESC \
		end := strings.IndexAny(s[2:], "\a\x1b\n")
		if end >= 0 && s[2+end] == '\a' {
			return 2 + end + 1
		}
		if end >= 0 && strings.HasPrefix(s[2+end:], "\x1b\\") {
			return 2 + end + 2
		}
		return 0
	default: // intermediates, final byte
		return through(s, 1, 0x20, 0x2f, 0x30, 0x7e)
	}
}

// through skips bytes from first to last, beginning at i, and returns the index
// behind the final byte that must follow them, or 0.
func through(s string, i int, first, last, finalFirst, finalLast byte) int {
	for i < len(s) && first <= s[i] && s[i] <= last {
		i++
	}
	if i < len(s) && finalFirst <= s[i] && s[i] <= finalLast {
		return i + 1
	}
	return 0
}
