package lenient

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Scanner finds the places of a text at which a tag or a line in brackets may begin:
// where it shows "<" or "[". The zero value has an empty text.
type Scanner struct {
	s string
	// ascii says that there are neither entities nor characters beyond ASCII, so that
	// the next of each is found at once. angle and bracket are where.
	ascii          bool
	angle, bracket int
	at             int
}

// Scan returns a scanner of s.
func Scan(s string) Scanner {
	sc := Scanner{s: s, ascii: isASCII(s) && strings.IndexByte(s, '&') < 0}
	if sc.ascii {
		sc.angle, sc.bracket = indexFrom(s, 0, '<'), indexFrom(s, 0, '[')
	}
	return sc
}

// Next returns the next place: what is shown there, '<' or '[', its index and that
// behind it. At the end c is 0.
func (sc *Scanner) Next() (c byte, at, behind int) {
	if sc.ascii {
		switch {
		case sc.angle < sc.bracket:
			at, sc.angle = sc.angle, indexFrom(sc.s, sc.angle+1, '<')
		case sc.bracket < len(sc.s):
			at, sc.bracket = sc.bracket, indexFrom(sc.s, sc.bracket+1, '[')
		default:
			return 0, len(sc.s), len(sc.s)
		}
		return sc.s[at], at, at + 1
	}
	for sc.at < len(sc.s) {
		at := sc.at
		if !mayOpen(sc.s[at]) {
			sc.at++
			continue
		}
		if c, behind := Opening(sc.s, at); c != 0 {
			sc.at = behind
			return c, at, behind
		}
		sc.at++
	}
	return 0, len(sc.s), len(sc.s)
}

// mayOpen reports whether a character that shows "<" or "[" may begin with the byte.
func mayOpen(b byte) bool {
	switch b {
	case '<', '[', '&', 0xcb, 0xe1, 0xe2, 0xe3, 0xef:
		return true
	}
	return false
}

// Opening returns what a tag or a line in brackets begins with, '<' or '[', if s shows it
// right at index i, and the index behind it; 0 if it does not.
func Opening(s string, i int) (c byte, behind int) {
	r, size := decode(s[i:])
	switch {
	case r == '<' || r == '[':
		c = byte(r)
	case strings.ContainsRune(angles, r):
		c = '<'
	case strings.ContainsRune(brackets, r):
		c = '['
	default:
		return 0, i
	}
	return c, i + size
}

// indexFrom is the index of c in s from i on; the length of s if it is not there.
func indexFrom(s string, i int, c byte) int {
	if n := strings.IndexByte(s[i:], c); n >= 0 {
		return i + n
	}
	return len(s)
}

// Word returns the index behind word if s shows it from index i on; 0 if it does not.
// The word is ASCII; case does not matter. A blank in it stands for any number of blanks, and
// before punctuation there may be the backslash of Markdown.
func Word(s string, i int, word string) int {
	for w := range len(word) {
		if word[w] == ' ' {
			i = Blanks(s, i)
			continue
		}
		c, next := Shown(s, i)
		if c == '\\' && w > 0 && (lower(word[w]) < 'a' || lower(word[w]) > 'z') {
			c, next = Shown(s, next)
		}
		if c == 0 || c != lower(word[w]) {
			return 0
		}
		i = next
	}
	return i
}

// Blanks returns the index behind the blanks and line breaks that s shows from i on.
func Blanks(s string, i int) int {
	for {
		c, next := Shown(s, i)
		if c != ' ' && c != '\n' {
			return i
		}
		i = next
	}
}

// Tag returns the index behind the name if s, from the index i behind a "<" on, reads as
// an opening or closing tag of that name, which is ASCII; 0 if it does not.
// Blanks and line breaks may stand before the name. What follows it is not looked at:
// see [Ends].
func Tag(s string, i int, name string) int {
	if plain := i + len(s[i:]) - len(strings.TrimPrefix(s[i:], "/")); plain < len(s) { // as most tags of others
		if c := lower(s[plain]); 'a' <= c && c <= 'z' && c != lower(name[0]) {
			return 0
		}
	}
	i = Blanks(s, i)
	if c, next := Shown(s, i); c == '/' {
		i = Blanks(s, next)
	}
	return Word(s, i, name)
}

// Ends reports whether a name that ends at index i of s goes no further.
func Ends(s string, i int) bool {
	c, next := Shown(s, i)
	if c == 0 {
		r, _ := utf8.DecodeLastRuneInString(s[i:next])
		return !unicode.IsLetter(r) && !unicode.IsDigit(r)
	}
	named := 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '_' || c == '-' || c == '.' || c == ':'
	return !named
}

// Lines counts the lines of s that begin with word, which begins with "[", for a reader
// that overlooks what [StartsLine] does.
func Lines(s, word string) int {
	n := 0
	sc := Scan(s)
	for c, at, _ := sc.Next(); c != 0; c, at, _ = sc.Next() {
		if c == '[' && StartsLine(s, at, "") && Word(s, at, word) > 0 {
			n++
		}
	}
	return n
}

// StartsLine reports whether nothing stands before index i in its line but what may stand
// before a line that is quoted, listed, indented or emphasised, or characters of also.
func StartsLine(s string, i int, also string) bool {
	for i > 0 {
		r, size := utf8.DecodeLastRuneInString(s[:i])
		if r == ';' || size == 1 && isEntityByte(s[i-1]) {
			r, size = lastEntity(s[:i])
		}
		i -= size
		switch c, shows := show(r); {
		case c == '\n':
			return true
		case !shows || strings.ContainsRune(lineMarks, r):
		case c == 0 || strings.IndexByte(lineMarks, c) < 0 && strings.IndexByte(also, c) < 0:
			return false
		}
	}
	return true
}

// lineMarks are the characters that quote, list, number, indent or emphasise a line.
const lineMarks = " >-*+#_~`\"'|.()0123456789=:•·‣◦▪●○■“”‘’«»¶│┃┆"

// lastEntity reads the entity that s ends with, or its last byte.
func lastEntity(s string) (r rune, size int) {
	if at := strings.LastIndexByte(s[max(0, len(s)-maxEntity):], '&'); at >= 0 {
		at += max(0, len(s)-maxEntity)
		if r, size := entity(s[at:]); size == len(s)-at {
			return r, size
		}
	}
	return rune(s[len(s)-1]), 1
}
