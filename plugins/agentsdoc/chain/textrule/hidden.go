package textrule

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Hidden says what a text holds that a reader does not see.
type Hidden struct {
	// Count is the number of such characters.
	Count int
	// Lines are the numbers of the lines that hold them, from 1.
	Lines []int
}

// FindHidden looks for bidirectional controls, zero-width characters and tags.
// Variation selectors do not count: they stand behind many a picture.
func FindHidden(text string) Hidden {
	var h Hidden
	if isASCII(text) {
		return h
	}
	line, counted := 1, 0
	for at := 0; at < len(text); {
		c := text[at]
		if c < utf8.RuneSelf {
			if c == '\n' {
				line++
			}
			at++
			continue
		}
		r, size := utf8.DecodeRuneInString(text[at:])
		if hidden(r) {
			h.Count++
			if counted != line {
				h.Lines, counted = append(h.Lines, line), line
			}
		}
		at += size
	}
	return h
}

// hidden reports whether a character is one that [FindHidden] counts.
func hidden(c rune) bool {
	if c < 0x61C {
		return false
	}
	switch {
	case c >= 0x200B && c <= 0x200D, c == 0x180E, c >= 0x2060 && c <= 0x2064, c >= 0x206A && c <= 0x206F, c == 0xFEFF:
		return true
	}
	return isTag(c) || unicode.Is(unicode.Bidi_Control, c)
}

// isTag reports whether a character is one of the tags, which spell out ASCII
// without showing anything.
func isTag(c rune) bool { return c >= 0xE0000 && c <= 0xE007F }

// IsBlank reports whether a text has nothing but white space.
func IsBlank(text string) bool { return strings.TrimSpace(text) == "" }

// isASCII reports whether a text is all ASCII, several bytes at a time.
func isASCII(s string) bool {
	for ; len(s) >= 8; s = s[8:] {
		if s[0]|s[1]|s[2]|s[3]|s[4]|s[5]|s[6]|s[7] >= utf8.RuneSelf {
			return false
		}
	}
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
