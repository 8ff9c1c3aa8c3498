package recall

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// fold returns the form in which a word is indexed: NFKC (Unicode Standard Annex 15) in lower case without accents
// and strokes, which people in a hurry do not type, and without invisible characters. The result may be empty.
func fold(word string) string {
	if !strings.ContainsFunc(word, func(c rune) bool { return c >= utf8.RuneSelf }) {
		return strings.ToLower(word)
	}
	var out strings.Builder
	for _, c := range word {
		if !written(c) {
			if !unwritten(c) {
				out.WriteRune(c)
			}
			continue
		}
		for _, c := range norm.NFKD.String(string(c)) {
			if written(c) && !unwritten(c) {
				out.WriteRune(unicode.ToLower(c))
			}
		}
	}
	return strings.Map(settled, norm.NFC.String(typed.Replace(out.String())))
}

func written(c rune) bool { return unicode.In(c, unicode.L, unicode.N, unicode.M) }

// unwritten reports characters without which a word stays the same: signs above and below letters, the vowel signs of
// Hebrew and Arabic, the stretched line of Arabic, and everything invisible.
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

// typed replaces lower-case letters that Unicode does not decompose by what people type without a key for them.
//
//nolint:gochecknoglobals // an immutable table
var typed = strings.NewReplacer(
	"ß", "ss", "æ", "ae", "œ", "oe", "þ", "th", "ð", "d", "đ", "d", "ħ", "h", "ı", "i", "ɨ", "i", "ĸ", "k", "ł", "l", "ŋ", "n", "ø", "o", "ŧ", "t",
	"ƶ", "z", "ς", "σ",
)

// settled drops what composing leaves over: voice marks that no kana has taken, and the stroke of a sign that is
// never composed.
func settled(c rune) rune {
	if c == 0x3099 || c == 0x309A || unwritten(c) {
		return -1
	}
	return c
}
