package recall

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// fold returns the form in which a word is indexed: lower case, without accents,
// and with one character for all its forms (full and half width, ligatures, numbers
// in circles, letters of mathematics, decomposed kana and Hangul). It is what NFKC
// and case folding do for words, less what no text for people holds, and with
// accents gone: who types in a hurry leaves them away. Invisible characters vanish.
//
// The result consists of letters, digits and the marks that some scripts write
// vowels with. It may be empty.
func fold(word string) string {
	if lower, ok := foldASCII(word); ok {
		return lower
	}
	out := make([]rune, 0, len(word))
	for _, c := range word {
		switch {
		case unwritten(c):
		case c >= 0x3099 && c <= 0x309A, c == 0xFF9E, c == 0xFF9F:
			out = voice(out, c)
		case c >= 0x1161 && c <= 0x11C2:
			out = joinJamo(out, c)
		default:
			out = foldRune(out, c)
		}
	}
	return string(out)
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

// foldRune appends the folded form of one character that stands alone.
func foldRune(out []rune, c rune) []rune {
	switch {
	case c < utf8.RuneSelf:
		return append(out, unicode.ToLower(c))
	case c >= 0xFF01 && c <= 0xFF5E: // full width
		return append(out, unicode.ToLower(c-0xFEE0))
	case c >= 0xFF66 && c <= 0xFF9D: // half width
		full, _ := utf8.DecodeRuneInString(halfWidth[3*(c-0xFF66):])
		return append(out, full)
	case c >= 0x1D400 && c <= 0x1D6A3: // mathematics: 13 alphabets
		return append(out, 'a'+(c-0x1D400)%26)
	case c >= 0x1D7CE && c <= 0x1D7FF: // and five times ten digits
		return append(out, '0'+(c-0x1D7CE)%10)
	}
	if folded := foldingOf(c); folded != "" {
		return append(out, []rune(folded)...)
	}
	return append(out, unicode.ToLower(c))
}

// halfWidth is the katakana from U+FF66 to U+FF9D, at three bytes each.
const halfWidth = "ヲァィゥェォャュョッーアイウエオカキクケコサシスセソタチツテトナニヌネノハヒフヘホマミムメモヤユヨラリルレロワン"

// voice joins a sign of voice to the kana before it; a sign that is lost goes.
func voice(out []rune, sign rune) []rune {
	if len(out) == 0 {
		return out
	}
	last := &out[len(out)-1]
	kana := *last
	if kana >= 0x30A1 {
		kana -= 0x60 // katakana as hiragana
	}
	half := sign == 0x309A || sign == 0xFF9F
	switch {
	case kana >= 'は' && kana <= 'ほ' && (kana-'は')%3 == 0:
		*last++
		if half {
			*last++
		}
	case half:
	case kana >= 'か' && kana <= 'ぢ' && (kana-'か')%2 == 0, kana == 'つ', kana == 'て', kana == 'と':
		*last++
	case kana == 'う':
		*last += 'ゔ' - 'う' // katakana stands in the same order
	}
	return out
}

// The arithmetic of Hangul, from chapter 3.12 of the Unicode Standard.
const (
	hangulBase  = 0xAC00
	leadBase    = 0x1100
	vowelBase   = 0x1161
	tailBase    = 0x11A7
	leads       = 19
	vowels      = 21
	tails       = 28
	hangulCount = leads * vowels * tails
)

// joinJamo joins a vowel or a final consonant to the syllable before it. Korean from
// the file names of some systems is written so.
func joinJamo(out []rune, c rune) []rune {
	if len(out) == 0 {
		return append(out, c)
	}
	last := &out[len(out)-1]
	lead, syllable := *last-leadBase, *last-hangulBase
	switch {
	case lead >= 0 && lead < leads && c < vowelBase+vowels:
		*last = hangulBase + (lead*vowels+c-vowelBase)*tails
	case syllable >= 0 && syllable < hangulCount && syllable%tails == 0 && c > tailBase && c < tailBase+tails:
		*last += c - tailBase
	default:
		out = append(out, c)
	}
	return out
}
