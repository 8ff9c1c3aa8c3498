package lenient

import (
	"bytes"
	"html"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Shown returns what s shows at index i: the ASCII character that is there or looks
// alike, letters in lower case; ' ' for any blank, '\n' for what some reader takes for a
// line break, and 0 for everything else and at the end. Next is the index behind it.
// Characters that do not show are passed over.
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

// show is Shown for one character; not shows for one that does not show.
func show(r rune) (c byte, shows bool) {
	switch {
	case r < utf8.RuneSelf:
		c = ascii(r)
		return c, c != 0 // else a control character
	case hidden(r):
		return 0, false
	default:
		return fold(r), true
	}
}

// decode reads a character, or the HTML entity of one.
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

// maxEntity bounds an entity. Longer ones stand for nothing that looks like ASCII.
const maxEntity = 32

// maxBareEntity bounds the old entities that browsers take without a semicolon, such as
// "&lt" and "&nbsp".
const maxBareEntity = len("&Aacute")

// entity reads the entity of one character at the beginning of s; size 0 if there is
// none.
func entity(s string) (r rune, size int) {
	end := 1
	for end < len(s) && end < maxEntity && isEntityByte(s[end]) {
		end++
	}
	if end < len(s) && s[end] == ';' {
		text := html.UnescapeString(s[:end+1])
		if r, n := utf8.DecodeRuneInString(text); n == len(text) && r != utf8.RuneError {
			return r, end + 1
		}
	}
	for n := min(end, maxBareEntity); n > 2 && s[1] != '#'; n-- {
		text := html.UnescapeString(s[:n])
		if r, size := utf8.DecodeRuneInString(text); size == len(text) && r != utf8.RuneError {
			return r, n
		}
	}
	if s[1:min(2, len(s))] == "#" { // a number ends where its digits do
		digits := 2
		if digits < len(s) && lower(s[digits]) == 'x' {
			digits++
		}
		end := digits
		for end < len(s) && end < maxEntity && isDigit(s[end], digits == 3) {
			end++
		}
		if end > digits {
			text := html.UnescapeString(s[:end])
			if r, n := utf8.DecodeRuneInString(text); n == len(text) {
				return r, end
			}
		}
	}
	return 0, 0
}

func isEntityByte(c byte) bool {
	return c == '#' || '0' <= c && c <= '9' || 'a' <= lower(c) && lower(c) <= 'z'
}

func isDigit(c byte, hex bool) bool {
	return '0' <= c && c <= '9' || hex && 'a' <= lower(c) && lower(c) <= 'f'
}

// ascii is Shown for ASCII; 0 for what is not, and for controls.
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

// fold is Shown for a character that shows.
func fold(r rune) byte {
	switch {
	case r == '\u0085' || r == '\u2028' || r == '\u2029':
		return '\n'
	case unicode.Is(unicode.Z, r) || r == '\u2800':
		return ' '
	}
	if c := Lookalike(r); c < utf8.RuneSelf {
		return ascii(c)
	}
	var room [utf8.UTFMax]byte
	whole := norm.NFKD.Properties(utf8.AppendRune(room[:0], r)).Decomposition()
	first, size := utf8.DecodeRune(whole)
	if len(whole) == 0 || bytes.ContainsFunc(whole[size:], func(r rune) bool { return !hidden(r) }) {
		return 0
	}
	return ascii(Lookalike(first))
}

// hidden reports whether a character beyond ASCII takes no room of its own: format
// characters, marks that are set upon others, selectors, fillers and tags.
func hidden(r rune) bool {
	if r < 0x80 || r == '\u0085' {
		return false
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.M, unicode.Other_Default_Ignorable_Code_Point) || 0xE0000 <= r && r <= 0xE0FFF
}

// angles and brackets look like "<" and "[", by compatibility decomposition or not.
const (
	angles   = "\u2329\u3008\ufe3f‹❮❰⟨ᐸᚲ⦑⧼˂＜﹤≮"
	brackets = "\ufe39\ufe3b\ufe5d【〔⟦❲⦋⁅［﹇"
)

// alike lists, for each ASCII character, those of other scripts that look like it and
// that compatibility decomposition does not bring back to it.
const alike = "aАаΑα" + "bВвΒЬьβ" + "cСсϹϲ" + "dԀԁ" + "eЕеΕεЁё" + "fϜϝƒ" + "gԌԍɡ" + "hНнΗһҺ" + "iІіΙιıӀӏ" + "jЈјϳ" + "kКкΚκ" + "lⅬӏ" + "mМмΜ" +
	"nΝΠηп" + "oОоΟοσօ" + "pРрΡρ" + "qԚԛ" + "rгᴦ" + "sЅѕꜱ" + "tТтΤτ" + "uԱսυ" + "vѴѵΝνᴠ" + "wԜԝѡω" + "xХхΧχ" + "yУуΥγҮү" + "zΖζᴢ" +
	"<" + angles + ">›❯❱⟩〉〉ᐳ⦒⧽˃" + "/⁄∕╱⧸⟋Ⳇ〳" + "[" + brackets + "]】〕⟧❳⦌⁆" + ":ːː׃։∶꞉˸" + "_‿⁀ˍ" + "-‐‑‒–—−⁃" + "#♯⌗" + "\\∖⧵⧹"

// Lookalike returns the ASCII character that a letter or sign of another script looks
// like, letters in lower case, and any other character as it is. It knows nothing of
// compatibility forms.
func Lookalike(r rune) rune {
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

// isASCII looks at eight bytes at a time.
func isASCII(s string) bool {
	for ; len(s) >= 8; s = s[8:] {
		w := uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 | uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
		if w&0x8080808080808080 != 0 {
			return false
		}
	}
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
