package recall

import (
	"math"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/blevesearch/snowballstem"
	"github.com/blevesearch/snowballstem/english"

	"github.com/grapnelhq/grapnel/sdk/prompttext"
)

// Version is the version of the rules by which terms are made.
const Version = 2

// maxTerm bounds a term, in characters. Longer words keep their beginning; longer identifiers are indexed by their
// parts alone.
const maxTerm = 64

// Index returns the terms of a text with how often each occurs, and the text's length: how many there are in all. A
// store keeps [Version] beside what Index returned, and indexes its items again when it has changed.
func Index(text string) (counts map[string]int, length int) { return index(text, tuned()) }

func index(text string, with tuning) (counts map[string]int, length int) {
	counts = map[string]int{}
	tokens(text, with, func(t token) {
		counts[t.term]++
		length++
	})
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

type kind int

const (
	word  kind = iota // a word by itself
	part              // a part of an identifier or of another compound
	whole             // a compound without what joins it
	gram              // two neighbours in a dense script, or a single character without any
)

type token struct {
	// term is indexed; plain is the folded word that it was made of.
	term, plain string
	kind        kind
}

// class says how a character takes part in words.
type class int

const (
	between class = iota // divides words: blanks, most punctuation, symbols, emoji
	upper
	lower // and letters without case
	digit
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

type tokenizer struct {
	tuning tuning
	emit   func(token)
	// leaves are the undivided parts of the current compound, and wholes its compounds of more than one, folded.
	leaves, wholes []string
}

func tokens(text string, with tuning, emit func(token)) {
	t := tokenizer{tuning: with, emit: emit}
	for len(text) > 0 {
		c, size := utf8.DecodeRuneInString(text)
		switch k := classOf(c); k {
		case between, silent:
			text = text[size:]
		case dense, hangul:
			n := strings.IndexFunc(text, func(c rune) bool { other := classOf(c); return other != k && other != silent })
			if n < 0 {
				n = len(text)
			}
			t.grams(text[:n])
			text = text[n:]
		case upper, lower, digit:
			n := compoundEnd(text)
			t.divide(text[:n], byPoint)
			text = text[n:]
			text = text[t.sign(text):]
			t.flush()
		}
	}
}

// compoundEnd returns the end of the word or compound that s begins with: letters and digits, and single joints
// between them.
func compoundEnd(s string) int {
	end, letters, joint := 0, 0, false
	for i, c := range s {
		size := utf8.RuneLen(c)
		switch classOf(c) {
		case upper, lower, digit, silent:
			letters++
			end, joint = i+size, false
		case dense, hangul:
			return end
		case between:
			apostrophe := c == '\'' || c == '’'
			if joint || !apostrophe && !isJoint(c) || apostrophe && (letters < 3 || !shortEnding(s[i+size:])) {
				return end
			}
			joint = true
			if !apostrophe {
				letters = 0
			}
		}
	}
	return end
}

func isJoint(c rune) bool { return strings.ContainsRune("._-‐‑", c) }

// shortEnding reports whether s begins with one or two letters and no more: what follows the apostrophe in "don't"
// and "they've", but not in "l'été".
func shortEnding(s string) bool {
	n := 0
	for _, c := range s {
		if k := classOf(c); k != lower && k != upper || n > 2 {
			break
		}
		n++
	}
	return n == 1 || n == 2
}

// level is what a compound is divided by.
type level int

const (
	byPoint  level = iota
	byHyphen       // and underscore
	byCase         // where the case of letters changes
	byDigit        // between letters and digits
	undivided
)

// maxPieces is how many pieces joined by points make a whole: host names and versions do, sentences without blanks do
// not.
const maxPieces = 4

// divide finds the leaves and wholes of a compound. What has parts is also a whole without its joints: order_id,
// orderId, OrderID and order-id share one term besides those of their parts.
func (t *tokenizer) divide(s string, at level) {
	// Long words without joints are hashes and encoded bytes: their parts are noise.
	if at == undivided || at == byDigit && !divisible(s) || at == byCase && utf8.RuneCountInString(s) > maxTerm {
		t.leaf(s)
		return
	}
	pieces := 0
	for _, piece := range split(s, at) {
		if piece != "" {
			pieces++
			t.divide(piece, at+1)
		}
	}
	if pieces > 1 && (at != byPoint || pieces <= maxPieces) {
		plain := fold(unjoin(s))
		if n := len(t.wholes); utf8.RuneCountInString(plain) <= maxTerm && (n == 0 || t.wholes[n-1] != plain) {
			t.wholes = append(t.wholes, plain)
		}
	}
}

func split(s string, at level) []string {
	switch at {
	case byPoint:
		return strings.Split(s, ".")
	case byHyphen:
		return strings.FieldsFunc(s, func(c rune) bool { return c != '.' && isJoint(c) })
	case byCase, byDigit, undivided:
	}
	ends := humpEnd
	if at == byDigit {
		ends = digitsEnd
	}
	var pieces []string
	for s != "" {
		n := ends(s)
		pieces, s = append(pieces, s[:n]), s[n:]
	}
	return pieces
}

// humpEnd returns the end of the first hump of a word: fooBar is foo and Bar, HTTPServer is HTTP and Server.
func humpEnd(s string) int {
	before, seen, previous := between, 0, 0
	for i, c := range s {
		k := classOf(c)
		switch {
		case k == silent || k == between:
			continue
		case k == upper && (before == lower || before == digit):
			return i
		case k == lower && before == upper && seen > 1 && !plural(s[i:]):
			return previous
		}
		before, previous, seen = k, i, seen+1
	}
	return len(s)
}

// plural reports whether s is the ending of "URLs" and "IDs".
func plural(s string) bool {
	if s[0] != 's' {
		return false
	}
	c, _ := utf8.DecodeRuneInString(s[1:])
	k := classOf(c)
	return k != lower && k != digit
}

// divisible reports whether a word has letters and digits and is not divided into single letters by them: utf8 is,
// k8s and v2 are not.
func divisible(s string) bool {
	letters, digits := 0, false
	for _, c := range s {
		switch k := classOf(c); {
		case k == upper || k == lower:
			letters++
		case k == digit && letters == 1:
			return false
		case k == digit:
			letters, digits = 0, true
		}
	}
	return digits && letters != 1
}

func digitsEnd(s string) int {
	first, _ := utf8.DecodeRuneInString(s)
	digits := classOf(first) == digit
	for i, c := range s {
		if k := classOf(c); k != silent && k != between && (k == digit) != digits {
			return i
		}
	}
	return len(s)
}

// leaf adds an undivided part, in the singular for "IDs".
func (t *tokenizer) leaf(s string) {
	if n := len(s) - 1; n > 1 && s[n] == 's' && s[n-1] >= 'A' && s[n-1] <= 'Z' {
		s = s[:n]
	}
	if plain := fold(unjoin(s)); plain != "" {
		t.leaves = append(t.leaves, plain)
	}
}

func unjoin(s string) string {
	return strings.Map(func(c rune) rune {
		if isJoint(c) || c == '\'' || c == '’' {
			return -1
		}
		return c
	}, s)
}

// sign adds to a name of one letter the signs of C++, C# and F#, and returns how many bytes of s they take.
func (t *tokenizer) sign(s string) int {
	if len(t.leaves) != 1 || utf8.RuneCountInString(t.leaves[0]) != 1 {
		return 0
	}
	switch {
	case strings.HasPrefix(s, "++"):
		t.leaves[0] += "pp"
		return 2
	case strings.HasPrefix(s, "#"):
		t.leaves[0] += "sharp"
		return 1
	}
	return 0
}

func (t *tokenizer) grams(text string) {
	chars := []rune(fold(text))
	if len(chars) == 1 {
		t.emit(token{string(chars), string(chars), gram})
	}
	for i := range max(0, len(chars)-1) {
		pair := string(chars[i : i+2])
		t.emit(token{pair, pair, gram})
	}
}

func (t *tokenizer) flush() {
	put := func(plain string, k kind) {
		if plain = clip(plain, maxTerm); plain != "" {
			t.emit(token{t.tuning.term(plain), plain, k})
		}
	}
	for _, plain := range t.leaves {
		switch {
		case len(t.leaves) == 1:
			put(plain, word)
		case utf8.RuneCountInString(plain) > 1 || strings.Trim(plain, "0123456789") == "":
			put(plain, part) // a single letter says nothing
		}
	}
	for _, plain := range t.wholes {
		put(plain, whole)
	}
	t.leaves, t.wholes = t.leaves[:0], t.wholes[:0]
}

func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return prompttext.Prefix(s, math.MaxInt, n)
}
