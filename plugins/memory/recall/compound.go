package recall

import (
	"strings"
	"unicode/utf8"
)

// compound takes a compound apart: at points, then at underscores and hyphens, then
// where the case of letters changes, then between letters and digits. What has parts
// is a whole besides, without its joints: so order_id, orderId, OrderID and order-id
// have one term in common, and those of their parts.
func (t *tokenizer) compound(s string) {
	if isPlain(s) {
		t.leaf(s)
		return
	}
	t.divide(s, byPoint)
}

// isPlain reports words without joints, capitals inside and digits, which is most of
// them.
func isPlain(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < 'a' || c > 'z') && (i > 0 || c < 'A' || c > 'Z') {
			return false
		}
	}
	return true
}

// level is what a compound is divided by.
type level int

const (
	byPoint level = iota
	byHyphen
	byCase
	byDigit
	undivided
)

// maxPieces is how many pieces joined by points make a whole: host names and
// versions do, sentences that lack their blanks do not.
const maxPieces = 4

// divide finds the leaves and wholes of a compound, from the given level on.
func (t *tokenizer) divide(s string, at level) {
	// Long words without joints are hashes and encoded bytes: their parts are noise.
	if at == undivided || at == byDigit && !divisible(s) || at == byCase && utf8.RuneCountInString(s) > maxTerm {
		t.leaf(s)
		return
	}
	pieces, rest := 0, s
	for rest != "" {
		n := pieceEnd(rest, at)
		piece := strings.Trim(rest[:n], joints(at))
		rest = rest[n:]
		if piece != "" {
			pieces++
			t.divide(piece, at+1)
		}
	}
	if pieces > 1 && (at != byPoint || pieces <= maxPieces) {
		t.whole(s)
	}
}

// joints are the characters that a level divides at and takes away.
func joints(at level) string {
	switch at {
	case byPoint:
		return "."
	case byHyphen:
		return "_-‐‑"
	case byCase, byDigit, undivided:
	}
	return ""
}

// pieceEnd returns the end of the first piece of s.
func pieceEnd(s string, at level) int {
	switch at {
	case byPoint, byHyphen:
		if i := strings.IndexAny(s, joints(at)); i >= 0 {
			_, size := utf8.DecodeRuneInString(s[i:])
			return i + size
		}
	case byCase:
		return humpEnd(s)
	case byDigit:
		return digitsEnd(s)
	case undivided:
	}
	return len(s)
}

// humpEnd returns the end of the first hump of a word: fooBar is foo and Bar,
// HTTPServer is HTTP and Server.
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
	if s == "" || s[0] != 's' {
		return false
	}
	c, _ := utf8.DecodeRuneInString(s[1:])
	k := classOf(c)
	return k != lower && k != digit
}

// divisible reports whether a word has letters and digits and is not divided into
// single letters by them: utf8 is, k8s and v2 are not.
func divisible(s string) bool {
	letters, digits := 0, false
	for _, c := range s {
		switch classOf(c) {
		case upper, lower:
			letters++
		case digit:
			if letters == 1 {
				return false
			}
			letters, digits = 0, true
		case between, silent, dense, hangul:
		}
	}
	return digits && letters != 1
}

// digitsEnd returns the end of the letters, or of the digits, that s begins with.
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

// leaf adds an undivided part. That of "IDs" is in the singular.
func (t *tokenizer) leaf(s string) {
	if n := len(s) - 1; n > 1 && s[n] == 's' && s[n-1] >= 'A' && s[n-1] <= 'Z' {
		s = s[:n]
	}
	if plain := fold(unjoin(s)); plain != "" {
		t.leaves = append(t.leaves, plain)
	}
}

// whole adds a compound without its joints.
func (t *tokenizer) whole(s string) {
	plain := fold(unjoin(s))
	if n := len(t.wholes); utf8.RuneCountInString(plain) > maxTerm || n > 0 && t.wholes[n-1] == plain {
		return
	}
	t.wholes = append(t.wholes, plain)
}

// unjoin takes joints and apostrophes away.
func unjoin(s string) string {
	return strings.Map(func(c rune) rune {
		if isJoint(c) || c == '\'' || c == '’' {
			return -1
		}
		return c
	}, s)
}
