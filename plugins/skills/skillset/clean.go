package skillset

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxPrinted bounds a printed path, in characters.
const maxPrinted = 512

// hides reports whether a character may make a text look like another one:
// controls, format characters (bidirectional, zero-width, tags), fillers and
// variation selectors. Joiners and the two selectors of emoji do not count.
func hides(c rune) bool {
	switch c {
	case '\n', '\t', '\u200c', '\u200d', '\ufe0e', '\ufe0f':
		return false
	case 0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2028, 0x2029, 0x3164, 0xFFA0:
		return true
	}
	if c < 0x7F {
		return c < ' '
	}
	return unicode.IsControl(c) || unicode.Is(unicode.Cf, c) && !unicode.Is(unicode.Prepended_Concatenation_Mark, c) ||
		unicode.Is(unicode.Variation_Selector, c) || c >= 0xE0000 && c <= 0xE0FFF
}

// normalise returns a text with LF newlines and without a byte order mark.
func normalise(s string) string {
	s = strings.TrimPrefix(s, "\ufeff")
	if !strings.Contains(s, "\r") {
		return s
	}
	return strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\r", "\n")
}

// reveal puts U+FFFD in the place of characters that hide and of bytes that are
// not UTF-8, and counts them.
func reveal(s string) (string, int) {
	if utf8.ValidString(s) && !strings.ContainsFunc(s, hides) {
		return s, 0
	}
	count := 0
	var out strings.Builder
	out.Grow(len(s))
	for i, c := range s {
		if hides(c) || c == utf8.RuneError && !strings.HasPrefix(s[i:], string(utf8.RuneError)) {
			count++
			c = utf8.RuneError
		}
		out.WriteRune(c)
	}
	return out.String(), count
}

// oneLine makes a text one line: runs of blanks and newlines become one space.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// PrintPath makes a path fit to stand in a prompt or a diagnostic: a file's name
// can hold anything. Characters that hide, newlines, and < > [ ] " ` become
// \u{HEX}; a path that is longer than 512 characters loses its beginning to an
// ellipsis.
func PrintPath(path string) string {
	if strings.ContainsFunc(path, unprintable) {
		var out strings.Builder
		for _, c := range path {
			if unprintable(c) {
				fmt.Fprintf(&out, `\u{%x}`, c)
			} else {
				out.WriteRune(c)
			}
		}
		path = out.String()
	}
	if n := utf8.RuneCountInString(path); n > maxPrinted {
		return "…" + string([]rune(path)[n-maxPrinted+1:])
	}
	return path
}

// unprintable reports whether a character of a path is replaced.
func unprintable(c rune) bool {
	switch c {
	case '<', '>', '[', ']', '"', '`', '\n', '\t', '\u200c', '\u200d', '\ufe0e', '\ufe0f', utf8.RuneError:
		return true
	}
	return hides(c)
}
