package recall

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// fold returns the form in which a word is indexed: lower case, without accents,
// and with one character for all its forms (full and half width, ligatures, numbers
// in circles, letters of mathematics, decomposed kana and Hangul). It is NFKC (Unicode
// Standard Annex 15) and lower case, and accents and strokes are gone: who types in
// a hurry leaves them away. Invisible characters vanish.
//
// Of letters, digits and the marks that some scripts write vowels with it makes
// nothing else. It may be empty.
func fold(word string) string {
	if lower, ok := foldASCII(word); ok {
		return lower
	}
	var out strings.Builder
	out.Grow(len(word))
	for _, c := range word {
		if unwritten(c) {
			continue
		}
		if !written(c) {
			out.WriteRune(c)
			continue
		}
		for _, c := range norm.NFKD.String(string(c)) {
			if written(c) && !unwritten(c) {
				out.WriteString(plain(unicode.ToLower(c)))
			}
		}
	}
	return strings.Map(settled, norm.NFC.String(out.String()))
}

// foldASCII is fold for what most words are.
func foldASCII(word string) (string, bool) {
	for i := range len(word) {
		if word[i] >= utf8.RuneSelf {
			return "", false
		}
	}
	return strings.ToLower(word), true
}

// written reports what words consist of.
func written(c rune) bool { return unicode.In(c, unicode.L, unicode.N, unicode.M) }

// unwritten reports characters that a word is the same without: accents and other
// signs above and below letters, the vowel signs of Hebrew and Arabic, the stretched
// line of Arabic, and all that is invisible.
func unwritten(c rune) bool {
	switch {
	case c < 0x300:
		return c == 0xAD
	case c <= 0x36F, c >= 0x483 && c <= 0x489, c >= 0x591 && c <= 0x5C7, c == 0x640,
		c >= 0x64B && c <= 0x65F, c == 0x670, c >= 0xFE00 && c <= 0xFE0F, c >= 0xE0100 && c <= 0xE01EF:
		return true
	}
	return unicode.Is(unicode.Cf, c)
}

// plain returns what a lower-case letter is typed as by those who have no key for
// it: letters with a stroke, and those that are two. Unicode takes none of them
// apart.
func plain(c rune) string {
	switch c {
	case 'ß':
		return "ss"
	case 'æ':
		return "ae"
	case 'œ':
		return "oe"
	case 'þ':
		return "th"
	case 'ð', 'đ':
		return "d"
	case 'ħ':
		return "h"
	case 'ı', 'ɨ':
		return "i"
	case 'ĸ':
		return "k"
	case 'ł':
		return "l"
	case 'ŋ':
		return "n"
	case 'ø':
		return "o"
	case 'ŧ':
		return "t"
	case 'ƶ':
		return "z"
	case 'ς':
		return "σ"
	}
	return string(c)
}

// settled drops what composing has left over: signs of voice that no kana has taken,
// and the stroke of a sign that is never composed.
func settled(c rune) rune {
	if c == 0x3099 || c == 0x309A || unwritten(c) {
		return -1
	}
	return c
}
