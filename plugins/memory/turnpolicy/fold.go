package turnpolicy

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// folded is a text as the rules see it, and where its bytes come from.
type folded struct {
	text string
	// at has the offset in the source for each byte, and its length at the end.
	at []int32
}

// fold makes texts alike that say the same: lower case, no accents, ASCII for
// full-width letters and signs, one kind of quote, space and dash, nothing that is
// invisible. What is no UTF-8 becomes U+FFFD.
func fold(source string) folded {
	var b strings.Builder
	b.Grow(len(source))
	at := make([]int32, 0, len(source)+1)
	for i, r := range source {
		from := b.Len()
		if r < utf8.RuneSelf {
			b.WriteByte(foldASCII(source[i]))
		} else {
			b.WriteString(foldRune(r))
		}
		for range b.Len() - from {
			at = append(at, int32(i)) //nolint:gosec // a window has a few thousand characters
		}
	}
	at = append(at, int32(len(source))) //nolint:gosec // as above
	return folded{b.String(), at}
}

// source returns the part of a source that became the bytes from i to j.
func (f folded) source(source string, i, j int) string {
	return source[f.at[i]:f.at[j]]
}

// foldASCII lowers letters and makes controls spaces, among them the one that stands
// for what is blanked.
func foldASCII(c byte) byte {
	switch {
	case c == '\n':
		return c
	case c < ' ' || c == 0x7f:
		return ' '
	case 'A' <= c && c <= 'Z':
		return c + 'a' - 'A'
	}
	return c
}

// foldRune folds one character outside ASCII.
func foldRune(r rune) string {
	switch {
	case r >= 0xff01 && r <= 0xff5e: // full-width forms of ASCII
		return string(rune(foldASCII(byte(r - 0xfee0))))
	case r >= 0x300 && r <= 0x36f, unicode.Is(unicode.Cf, r), unicode.Is(unicode.Variation_Selector, r):
		return "" // combining accents, and what is invisible
	case unicode.Is(unicode.Zs, r):
		return " "
	}
	r = unicode.ToLower(r)
	if s, ok := foldLetter(r); ok {
		return s
	}
	return foldSign(r)
}

// foldSign folds quotes and dashes.
func foldSign(r rune) string {
	switch r {
	case '‘', '’', '‛', 'ʼ', '′':
		return "'"
	case '“', '”', '„', '‟', '″':
		return `"`
	case '‐', '‑', '‒':
		return "-"
	case '–', '―', '—':
		return "—"
	}
	return string(r)
}

// foldLetter returns the letters below a Latin letter's accent.
func foldLetter(r rune) (string, bool) {
	switch r {
	case 'à', 'á', 'â', 'ã', 'ä', 'å', 'ā', 'ă', 'ą':
		return "a", true
	case 'ç', 'ć', 'č':
		return "c", true
	case 'è', 'é', 'ê', 'ë', 'ē', 'ė', 'ę', 'ě':
		return "e", true
	case 'ì', 'í', 'î', 'ï', 'ī', 'į', 'ı':
		return "i", true
	case 'ñ', 'ń', 'ň':
		return "n", true
	case 'ò', 'ó', 'ô', 'õ', 'ö', 'ø', 'ō', 'ő':
		return "o", true
	case 'ù', 'ú', 'û', 'ü', 'ū', 'ů', 'ű':
		return "u", true
	case 'ý', 'ÿ':
		return "y", true
	case 'ś', 'š':
		return "s", true
	case 'ź', 'ż', 'ž':
		return "z", true
	case 'ł':
		return "l", true
	case 'ß':
		return "ss", true
	case 'æ':
		return "ae", true
	case 'œ':
		return "oe", true
	}
	return "", false
}
