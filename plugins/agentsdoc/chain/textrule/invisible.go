package textrule

import (
	"strings"
	"unicode"
)

// invisible reports whether a character takes up no room on a screen, so that a
// text with it looks like the text without: format characters (zero-width ones,
// bidirectional controls, tags), variation selectors, and fillers.
func invisible(c rune) bool {
	if c < 0xAD {
		return false
	}
	switch c {
	case 0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x3164, 0xFFA0:
		return true
	}
	return unicode.Is(unicode.Cf, c) || unicode.Is(unicode.Variation_Selector, c) ||
		c >= 0xE0000 && c <= 0xE0FFF
}

// WithoutInvisible drops what does not show.
func WithoutInvisible(s string) string {
	return strings.Map(func(c rune) rune {
		if invisible(c) {
			return -1
		}
		return c
	}, s)
}
