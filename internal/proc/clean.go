package proc

import (
	"strings"
	"unicode/utf8"
)

// ellipsis ends a text that was cut.
const ellipsis = "…"

// clean makes a plugin's text harmless to show: one line of valid UTF-8 of at
// most limit bytes, without terminal sequences, control characters and those
// that change the direction of text. What separated words becomes a space.
// Cleaning what is clean changes nothing.
func clean(s string, limit int) string {
	var b strings.Builder
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		if n := sequenceLen(s[i:], r); n > 0 {
			i += n
			continue
		}
		i += size
		switch {
		case strings.ContainsRune("\t\n\v\f\r\u0085\u2028\u2029", r):
			r = ' '
		case unwanted(r):
			continue
		}
		if b.Len()+utf8.RuneLen(r) > limit {
			return cut(b.String()+string(r), limit)
		}
		b.WriteRune(r)
	}
	return strings.TrimSpace(b.String())
}

// cut shortens a clean text of more than limit bytes: it and an ellipsis then
// have at most that.
func cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	room := limit - len(ellipsis)
	if room < 0 {
		return ""
	}
	for room > 0 && room < len(s) && !utf8.RuneStart(s[room]) {
		room--
	}
	return strings.TrimSpace(s[:min(room, len(s))]) + ellipsis
}

// unwanted reports whether a character is a control or changes the direction
// of the text around it.
func unwanted(r rune) bool {
	switch {
	case r < 0x20, r >= 0x7f && r <= 0x9f, r == '\ufeff':
		return true
	case r == '\u061c', r == '\u200e', r == '\u200f':
		return true
	}
	return r >= '\u202a' && r <= '\u202e' || r >= '\u2066' && r <= '\u2069'
}

// sequenceLen returns the length of the terminal sequence at the start of s,
// or 0 if its first character, r, begins none. A sequence that nothing ends
// goes to the end of the text.
func sequenceLen(s string, r rune) int {
	switch r {
	case '\u009b':
		return 2 + controlLen(s[2:])
	case '\u0090', '\u0098', '\u009d', '\u009e', '\u009f':
		return 2 + stringLen(s[2:])
	case 0x1b:
	default:
		return 0
	}
	if len(s) == 1 {
		return 1
	}
	switch s[1] {
	case '[':
		return 2 + controlLen(s[2:])
	case ']', 'P', 'X', '^', '_':
		return 2 + stringLen(s[2:])
	}
	n := 1
	for n < len(s) && s[n] >= 0x20 && s[n] <= 0x2f {
		n++
	}
	if n < len(s) && s[n] >= 0x30 && s[n] <= 0x7e {
		n++
	}
	return n
}

// controlLen returns the length of the rest of a control sequence: parameters
// and one final byte. A byte that belongs to neither ends it unread.
func controlLen(s string) int {
	for i := range len(s) {
		switch c := s[i]; {
		case c >= 0x40 && c <= 0x7e:
			return i + 1
		case c < 0x20 || c > 0x3f:
			return i
		}
	}
	return len(s)
}

// stringLen returns the length of the rest of a control string up to and with
// its terminator: BEL, ESC \ or its one-character form.
func stringLen(s string) int {
	for i := range len(s) {
		switch {
		case s[i] == 0x07:
			return i + 1
		case strings.HasPrefix(s[i:], "\x1b\\"), strings.HasPrefix(s[i:], "\u009c"):
			return i + 2
		}
	}
	return len(s)
}
