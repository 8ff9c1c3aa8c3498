package proc

import (
	"strings"
	"unicode/utf8"

	"github.com/grapnelhq/grapnel/internal/text/lazyregexp"
)

// ellipsis ends a text that was cut.
const ellipsis = "…"

// sequences are those of terminals, in both their forms. One that nothing ends extends to the end of the text.
var sequences = lazyregexp.New(`(?s)(?:\x1b\[|\x{9b})[ -?]*[@-~]?|` + // control sequences
	`(?:\x1b[\]PX^_]|[\x{90}\x{98}\x{9d}-\x{9f}]).*?(?:\x07|\x1b\\|\x{9c}|\z)|` + // control strings
	`\x1b[ -/]*[0-~]?`)

// clean makes a plugin's text harmless to show: one line of valid UTF-8 of at most limit bytes, without terminal
// sequences, control characters and direction marks. What separated words becomes a space. It is idempotent.
func clean(s string, limit int) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case strings.ContainsRune("\t\n\v\f\r\u0085\u2028\u2029", r):
			return ' '
		case unwanted(r):
			return -1
		}
		return r
	}, sequences().ReplaceAllString(s, ""))
	return cut(strings.TrimSpace(s), limit)
}

// cut shortens a clean text to limit bytes, ellipsis included.
func cut(s string, limit int) string {
	end := limit - len(ellipsis)
	switch {
	case len(s) <= limit:
		return s
	case end < 0:
		return ""
	}
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return strings.TrimSpace(s[:end]) + ellipsis
}

// unwanted reports whether r is a control or direction character.
func unwanted(r rune) bool {
	switch {
	case r < 0x20, r >= 0x7f && r <= 0x9f, r == '\ufeff', r == '\u061c', r == '\u200e', r == '\u200f':
		return true
	}
	return r >= '\u202a' && r <= '\u202e' || r >= '\u2066' && r <= '\u2069'
}
