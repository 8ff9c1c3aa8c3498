package text

import (
	"bytes"
	"encoding/binary"
	"html"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Scanner finds the places of a text where a tag or a line in brackets may begin: where it shows "<" or "[".
type Scanner struct {
	s              string
	at             int
	ascii          bool // neither entities nor characters beyond ASCII
	angle, bracket int  // the next of each, if ascii
}

// Scan returns a scanner of s.
func Scan(s string) Scanner {
	sc := Scanner{s: s, ascii: isASCII(s) && strings.IndexByte(s, '&') < 0}
	if sc.ascii {
		sc.angle, sc.bracket = indexFrom(s, 0, '<'), indexFrom(s, 0, '[')
	}
	return sc
}

// Next returns the next place: what it shows, '<' or '[', its index and the index after it. At the end c is 0.
func (sc *Scanner) Next() (c byte, at, after int) {
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
	for at := sc.at; at < len(sc.s); {
		at = closed(sc.s, at)
		for stop := min(at+8, len(sc.s)); at < stop; at++ {
			if !mayOpen(sc.s[at]) {
				continue
			}
			if c, sc.at = Opening(sc.s, at); c != 0 {
				return c, at, sc.at
			}
		}
	}
	sc.at = len(sc.s)
	return 0, len(sc.s), len(sc.s)
}

// closed skips bytes of s from i on that are ASCII and open nothing, eight at a time.
func closed(s string, i int) int {
	rest := []byte(s)[i:] // the bytes are not copied
	for len(rest) > 8 {
		if w := binary.LittleEndian.Uint64(rest); (w|((w^each*'<')-each)|((w^each*'[')-each)|((w^each*'&')-each))&high != 0 {
			break
		}
		rest = rest[8:]
	}
	return len(s) - len(rest)
}

// mayOpen reports whether a character that shows "<" or "[" may begin with b.
func mayOpen(b byte) bool {
	return b == '<' || b == '[' || b == '&' || b == 0xcb || 0xe1 <= b && b <= 0xe3 || b == 0xef
}

// Opening returns '<' or '[' if s shows it right at index i, and the index after it; otherwise 0.
func Opening(s string, i int) (c byte, after int) {
	r, size := decode(s[i:])
	switch {
	case '〔' < r && r < '\ufe39': // kana, ideographs, Hangul
		return 0, i
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

func indexFrom(s string, i int, c byte) int {
	if n := strings.IndexByte(s[i:], c); n >= 0 {
		return i + n
	}
	return len(s)
}

// Word returns the index after word if s shows it from index i on, otherwise 0. The word is ASCII in any case. A
// blank in it stands for any number of blanks, and a backslash may stand before punctuation.
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

// Blanks returns the index after the blanks and line breaks that s shows from i on.
func Blanks(s string, i int) int {
	for {
		c, next := Shown(s, i)
		if c != ' ' && c != '\n' {
			return i
		}
		i = next
	}
}

// Tag returns the index after the name if s, from the index i after a "<" on, reads as an opening or closing tag of
// that name, which is ASCII; otherwise 0. The name may go on: see [Ends].
func Tag(s string, i int, name string) int {
	if plain := i + len(s[i:]) - len(strings.TrimPrefix(s[i:], "/")); plain < len(s) { // fast for other tags
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

// Ends reports whether a name ends at index i of s.
func Ends(s string, i int) bool {
	c, next := Shown(s, i)
	if c == 0 {
		r, _ := utf8.DecodeLastRuneInString(s[i:next])
		return !unicode.IsLetter(r) && !unicode.IsDigit(r)
	}
	return !isNameByte(c, false)
}

// StartsLine reports whether index i begins its line, perhaps quoted, listed, indented, emphasised or after
// characters of also.
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

// lineMarks quote, list, number, indent or emphasise a line.
const lineMarks = " >-*+#_~`\"'|.()0123456789=:•·‣◦▪●○■“”‘’«»¶│┃┆"

func lastEntity(s string) (r rune, size int) {
	if at := strings.LastIndexByte(s[max(0, len(s)-maxEntity):], '&'); at >= 0 {
		at += max(0, len(s)-maxEntity)
		if r, size := entity(s[at:]); size == len(s)-at {
			return r, size
		}
	}
	return rune(s[len(s)-1]), 1
}

// Shown returns what s shows at index i: an ASCII character or its lookalike, letters in lower case; ' ' for any
// blank, '\n' for any line break, and 0 for everything else and at the end. next is the index after it. It skips
// characters that do not show.
func Shown(s string, i int) (c byte, next int) {
	for i < len(s) {
		if b := s[i]; ' ' <= b && b < 0x7f && b != '&' {
			return lower(b), i + 1
		}
		r, size := decode(s[i:])
		i += size
		if c, shows := show(r); shows {
			return c, i
		}
	}
	return 0, len(s)
}

func show(r rune) (c byte, shows bool) {
	switch {
	case r < utf8.RuneSelf:
		c = ascii(r)
		return c, c != 0
	case hidden(r):
		return 0, false
	default:
		return fold(r), true
	}
}

func decode(s string) (r rune, size int) {
	if s[0] == '&' {
		if r, size := entity(s); size > 0 {
			return r, size
		}
	}
	if s[0] < utf8.RuneSelf {
		return rune(s[0]), 1
	}
	return utf8.DecodeRuneInString(s)
}

const (
	maxEntity     = 32             // longer ones stand for nothing that looks like ASCII
	maxBareEntity = len("&Aacute") // old ones that browsers accept without a semicolon
)

// entity decodes the entity of one character at the beginning of s; size is 0 without one.
func entity(s string) (r rune, size int) {
	end := 1
	for end < len(s) && end < maxEntity && isEntityByte(s[end]) {
		end++
	}
	if end < len(s) && s[end] == ';' {
		if r, ok := unescape(s[:end+1]); ok && r != utf8.RuneError {
			return r, end + 1
		}
	}
	if !strings.HasPrefix(s, "&#") {
		for n := min(end, maxBareEntity); n > 2; n-- {
			if r, ok := unescape(s[:n]); ok && r != utf8.RuneError {
				return r, n
			}
		}
		return 0, 0
	}
	digits := 2 // a number ends where its digits do
	if digits < len(s) && lower(s[digits]) == 'x' {
		digits++
	}
	for end = digits; end < len(s) && end < maxEntity && isDigit(s[end], digits == 3); {
		end++
	}
	if r, ok := unescape(s[:end]); ok && end > digits {
		return r, end
	}
	return 0, 0
}

func unescape(entity string) (rune, bool) {
	text := html.UnescapeString(entity)
	r, size := utf8.DecodeRuneInString(text)
	return r, size == len(text)
}

func isEntityByte(c byte) bool {
	return c == '#' || '0' <= c && c <= '9' || 'a' <= lower(c) && lower(c) <= 'z'
}

func isDigit(c byte, hex bool) bool {
	return '0' <= c && c <= '9' || hex && 'a' <= lower(c) && lower(c) <= 'f'
}

// ascii is Shown for ASCII; 0 for others and controls.
func ascii(r rune) byte {
	switch {
	case r >= utf8.RuneSelf || r == 0x7f || r < 0:
		return 0
	case r == '\n' || r == '\v' || r == '\f' || r == '\r' || 0x1c <= r && r <= 0x1e:
		return '\n'
	case r == '\t':
		return ' '
	case r < ' ':
		return 0
	}
	return lower(byte(r))
}

// fold is Shown for a visible character beyond ASCII.
func fold(r rune) byte {
	switch {
	case r == '\u0085' || r == '\u2028' || r == '\u2029':
		return '\n'
	case unicode.Is(unicode.Z, r) || r == '\u2800':
		return ' '
	}
	if c := lookalike(r); c < utf8.RuneSelf {
		return ascii(c)
	}
	whole := norm.NFKD.PropertiesString(string(r)).Decomposition()
	first, size := utf8.DecodeRune(whole)
	if len(whole) == 0 || bytes.ContainsFunc(whole[size:], func(r rune) bool { return !hidden(r) }) {
		return 0
	}
	return ascii(lookalike(first))
}

// hidden reports whether a character beyond ASCII has no shape of its own: format characters, combining marks,
// selectors, fillers and tags.
func hidden(r rune) bool {
	if r < 0x80 || r == '\u0085' {
		return false
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.M, unicode.Other_Default_Ignorable_Code_Point) || 0xE0000 <= r && r <= 0xE0FFF
}

// angles and brackets look like "<" and "[".
const (
	angles   = "\u2329\u3008\ufe3f‹❮❰⟨ᐸᚲ⦑⧼˂＜﹤≮"
	brackets = "\ufe39\ufe3b\ufe5d【〔⟦❲⦋⁅［﹇"
)

// alike lists, after each ASCII character, those of other scripts that look like it. Compatibility decomposition
// covers more.
const alike = "aАаΑα" + "bВвΒЬьβ" + "cСсϹϲ" + "dԀԁ" + "eЕеΕεЁё" + "fϜϝƒ" + "gԌԍɡ" + "hНнΗһҺ" + "iІіΙιıӀӏ" + "jЈјϳ" + "kКкΚκ" + "lⅬӏ" + "mМмΜ" +
	"nΝΠηп" + "oОоΟοσօ" + "pРрΡρ" + "qԚԛ" + "rгᴦ" + "sЅѕꜱ" + "tТтΤτ" + "uԱսυ" + "vѴѵΝνᴠ" + "wԜԝѡω" + "xХхΧχ" + "yУуΥγҮү" + "zΖζᴢ" +
	"<" + angles + ">›❯❱⟩〉〉ᐳ⦒⧽˃" + "/⁄∕╱⧸⟋Ⳇ〳" + "[" + brackets + "]】〕⟧❳⦌⁆" + ":ːː׃։∶꞉˸" + "_‿⁀ˍ" + "-‐‑‒–—−⁃" + "#♯⌗" + "\\∖⧵⧹"

// lookalike returns the ASCII character that a letter or sign of another script looks like, letters in lower case,
// and any other character as it is.
func lookalike(r rune) rune {
	if r < utf8.RuneSelf {
		return r
	}
	at := strings.IndexRune(alike, r)
	if at < 0 {
		return r
	}
	for at--; alike[at] >= utf8.RuneSelf; at-- {
	}
	return rune(alike[at])
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		c += 'a' - 'A'
	}
	return c
}

func isASCII(s string) bool {
	for i := asciiPrefix(s); i < len(s); i++ {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
