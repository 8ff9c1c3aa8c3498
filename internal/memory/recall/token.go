package recall

import (
	"iter"
	"math"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/blevesearch/snowballstem"
	"github.com/blevesearch/snowballstem/english"

	"github.com/grapnelhq/grapnel/sdk"
)

// Version is the version of the rules by which terms are made.
const Version = 3

// maxTerm bounds a term, in characters. Longer words keep their beginning.
const maxTerm = 64

// Index returns the terms of a text with how often each occurs, and the text's length: how many there are in all. A
// store keeps [Version] beside what Index returned, and indexes its items again when it has changed.
func Index(text string) (counts map[string]int, length int) {
	counts = map[string]int{}
	for t := range tokens(text) {
		counts[t.term]++
		length++
	}
	return counts, length
}

// Key returns a text normalised so that texts which a reader takes for the same have one key: folded, with single
// blanks, without what is around the words. Punctuation between the words counts: C++ and C# differ.
func Key(text string) string {
	return strings.Trim(strings.Join(strings.Fields(fold(text)), " "), " .!?…。·•*-–—\"'“”„‘’")
}

// stem returns the English stem of a folded word. It ignores the language: an English word in a German sentence is
// common, and a wrong stem is harmless as long as items and queries lose the same.
func stem(word string) string {
	if len(word) < 4 || strings.Trim(word, "abcdefghijklmnopqrstuvwxyz") != "" {
		return word
	}
	env := snowballstem.NewEnv(word)
	english.Stem(env)
	return env.Current()
}

type token struct {
	// term is indexed; plain is the folded word or pair that it was made of.
	term, plain string
	pair        bool // two neighbours in a script without words, or a single character without any
}

// class says how a character takes part in words.
type class int

const (
	between class = iota // divides words: blanks, punctuation, symbols, emoji
	letter               // and digits
	capital
	silent // belongs to the character before it
	dense  // written without blanks between words: Chinese, Japanese, Thai, Lao, Khmer and Burmese
	hangul // Korean, with blanks between words, and endings that vary
)

func classOf(c rune) class {
	switch {
	case isDense(c):
		return dense
	case unicode.Is(unicode.Hangul, c) && unicode.IsLetter(c):
		return hangul
	case unicode.IsUpper(c):
		return capital
	case unicode.IsLetter(c), unicode.IsNumber(c):
		return letter
	case unicode.IsMark(c), unicode.Is(unicode.Cf, c):
		return silent
	}
	return between
}

// isDense reports characters of scripts without blanks between words, with the signs that Unicode assigns to no
// script: the long vowel of kana, its voice marks.
func isDense(c rune) bool {
	switch {
	case c < 0xE00:
		return false
	case c >= 0x3041 && c <= 0x309F, c >= 0x30A1 && c <= 0x30FF:
		return c != 0x30FB // the dot between foreign names
	case c >= 0xFF66 && c <= 0xFF9F:
		return true
	case unicode.Is(unicode.Han, c):
		return unicode.IsLetter(c) || unicode.IsNumber(c)
	}
	return unicode.In(c, unicode.Thai, unicode.Lao, unicode.Myanmar, unicode.Khmer) && (unicode.IsLetter(c) || unicode.IsMark(c))
}

// tokens divides a text into words at what is neither a letter nor a digit, and where a capital follows a small letter:
// order_id, order-id and orderId are the same two words.
func tokens(text string) iter.Seq[token] {
	return func(yield func(token) bool) {
		for len(text) > 0 {
			c, size := utf8.DecodeRuneInString(text)
			k := classOf(c)
			if k == between || k == silent {
				text = text[size:]
				continue
			}
			n := runEnd(text, k)
			plain := fold(text[:n])
			text = text[n:]
			if k == dense || k == hangul {
				if !pairs(plain, yield) {
					return
				}
			} else if plain = clip(plain, maxTerm); plain != "" && !yield(token{term: stem(plain), plain: plain}) {
				return
			}
		}
	}
}

// runEnd returns the end of the word, or of the run of a dense script, that s begins with.
func runEnd(s string, k class) int {
	before := k
	for i, c := range s {
		now := classOf(c)
		switch {
		case now == silent:
			continue
		case now == capital && before == letter, now != k && (now > silent || k > silent || now == between):
			return i
		}
		before = now
	}
	return len(s)
}

// pairs yields the pairs of a text, or its only character, and reports whether the caller wants more.
func pairs(text string, yield func(token) bool) bool {
	chars := []rune(text)
	if len(chars) == 1 {
		return yield(token{text, text, true})
	}
	for i := range max(0, len(chars)-1) {
		pair := string(chars[i : i+2])
		if !yield(token{pair, pair, true}) {
			return false
		}
	}
	return true
}

func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return sdk.LongestPrefix(s, math.MaxInt, n)
}
