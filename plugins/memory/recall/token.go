package recall

import (
	"strings"
	"unicode/utf8"
)

// maxTerm bounds a term, in characters. Longer words keep their beginning; longer
// identifiers are indexed by their parts alone.
const maxTerm = 64

// kind says what a token was in its text.
type kind int

const (
	// word is a word that stands for itself.
	word kind = iota
	// part is a part of an identifier or of another compound.
	part
	// whole is a compound without what joins it.
	whole
	// gram is two neighbours in a dense script, or a single character that has none.
	gram
)

// token is one occurrence of a term.
type token struct {
	// term is what is indexed.
	term string
	// plain is the folded word that the term was made of.
	plain string
	kind  kind
}

// tokenizer divides texts into tokens. It is for one text at a time.
type tokenizer struct {
	tuning tuning
	emit   func(token)
	// leaves are the undivided parts of the compound at hand, folded; wholes are its
	// compounds of more than one.
	leaves, wholes []string
}

// tokens calls emit for each token of a text, from its beginning to its end.
func tokens(text string, with tuning, emit func(token)) {
	t := tokenizer{tuning: with, emit: emit}
	for len(text) > 0 {
		c, size := utf8.DecodeRuneInString(text)
		switch classOf(c) {
		case between, silent:
			text = text[size:]
		case dense, hangul:
			n := denseEnd(text)
			t.grams(text[:n])
			text = text[n:]
		case upper, lower, digit:
			n := compoundEnd(text)
			t.compound(text[:n])
			text = text[n:]
			text = text[t.sign(text):]
			t.flush()
		}
	}
}

// denseEnd returns the end of the dense text, or of the Korean one, that s begins
// with.
func denseEnd(s string) int {
	first, _ := utf8.DecodeRuneInString(s)
	want := classOf(first)
	for i, c := range s {
		if k := classOf(c); k != want && k != silent {
			return i
		}
	}
	return len(s)
}

// compoundEnd returns the end of the word or compound that s begins with: letters
// and digits, and single joints between them.
func compoundEnd(s string) int {
	end, joint := 0, false
	letters := 0
	for i := 0; i < len(s); {
		c, size := utf8.DecodeRuneInString(s[i:])
		i += size
		switch classOf(c) {
		case upper, lower, digit, silent:
			letters++
			end, joint = i, false
		case dense, hangul:
			return end
		case between:
			apostrophe := c == '\'' || c == '’'
			switch {
			case joint:
				return end
			case apostrophe && (letters < 3 || !shortEnding(s[i:])):
				return end
			case !apostrophe && !isJoint(c):
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

// isJoint reports what joins words into compounds.
func isJoint(c rune) bool { return c == '_' || c == '-' || c == '.' || c == '‐' || c == '‑' }

// shortEnding reports whether s begins with one or two letters and no more: what
// follows the apostrophe in "don't" and "they've", but not in "l'été".
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

// sign adds to a name of one letter the signs that some programming languages have
// in theirs, and returns how many bytes of s they take.
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

// grams emits the pairs of neighbours of a dense text.
func (t *tokenizer) grams(text string) {
	s := fold(text)
	_, size := utf8.DecodeRuneInString(s)
	if size > 0 && size == len(s) {
		t.emit(token{s, s, gram})
	}
	for size > 0 && size < len(s) {
		_, next := utf8.DecodeRuneInString(s[size:])
		t.emit(token{s[:size+next], s[:size+next], gram})
		s, size = s[size:], next
	}
}

// flush emits the compound at hand.
func (t *tokenizer) flush() {
	k := word
	if len(t.leaves) > 1 {
		k = part
	}
	for _, plain := range t.leaves {
		// A letter that is left over says nothing, unless it is all there is.
		if k == word || utf8.RuneCountInString(plain) > 1 || isNumber(plain) {
			t.put(plain, k)
		}
	}
	for _, plain := range t.wholes {
		t.put(plain, whole)
	}
	t.leaves, t.wholes = t.leaves[:0], t.wholes[:0]
}

// put emits one word.
func (t *tokenizer) put(plain string, k kind) {
	if plain = clip(plain, maxTerm); plain != "" {
		t.emit(token{t.tuning.term(plain), plain, k})
	}
}

// clip returns the first n characters of s.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}

// isNumber reports whether s is of ASCII digits.
func isNumber(s string) bool { return strings.Trim(s, "0123456789") == "" }
