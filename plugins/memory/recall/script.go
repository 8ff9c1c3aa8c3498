package recall

import "unicode"

// class says how a character takes part in words.
type class int

const (
	// between is what divides words: blanks, most punctuation, symbols, emoji.
	between class = iota
	// upper and lower are letters. Letters without case are lower.
	upper
	lower
	digit
	// silent is what belongs to the character before it.
	silent
	// dense is writing without blanks between words: Chinese, Japanese, Thai, Lao,
	// Khmer and Burmese.
	dense
	// hangul is Korean, whose words have blanks between them and endings that vary.
	hangul
)

// classOf returns the class of a character.
func classOf(c rune) class {
	switch {
	case c >= 'a' && c <= 'z':
		return lower
	case c >= 'A' && c <= 'Z':
		return upper
	case c >= '0' && c <= '9':
		return digit
	case c < 0x80:
		return between
	case c < 0x0E00:
		return classOfAlphabetic(c)
	case isDense(c):
		return dense
	case unicode.Is(unicode.Hangul, c) && unicode.IsLetter(c):
		return hangul
	}
	return classOfAlphabetic(c)
}

// classOfAlphabetic returns the class of a character that is of no dense script.
func classOfAlphabetic(c rune) class {
	switch {
	case unicode.IsUpper(c):
		return upper
	case unicode.IsLetter(c):
		return lower
	case unicode.IsNumber(c):
		return digit
	case unicode.IsMark(c), unicode.Is(unicode.Cf, c):
		return silent
	}
	return between
}

// isDense reports characters of scripts without blanks between words, with the
// signs that Unicode counts to no script: the long vowel of kana, its signs of voice.
func isDense(c rune) bool {
	switch {
	case c >= 0x3041 && c <= 0x309F, c >= 0x30A1 && c <= 0x30FF:
		return c != 0x30FB // the dot between foreign names
	case c >= 0xFF66 && c <= 0xFF9F:
		return true
	case c < 0x1100, c >= 0x1780 && c < 0x1800:
		return unicode.In(c, unicode.Thai, unicode.Lao, unicode.Myanmar, unicode.Khmer) && (unicode.IsLetter(c) || unicode.IsMark(c))
	}
	return unicode.Is(unicode.Han, c) && (unicode.IsLetter(c) || unicode.IsNumber(c))
}
