package section

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// words are those that must not stand behind "[", in small letters: roles and orders of
// chat formats, and the lines that Grapnel writes itself.
func words() []string {
	return []string{"inst", "sys", "user", "assistant", "human", "tool", "memor", "truncated:", "omitted:", "source:"}
}

// Escape makes a memory one line that is nothing but text, as the package comment says.
// What it gives it leaves as it is: Escape of the result changes nothing.
func Escape(text string) string {
	text = line(text)
	if !strings.ContainsAny(text, "<[") {
		return text
	}
	var out strings.Builder
	out.Grow(len(text) + 8)
	for i := range len(text) {
		out.WriteByte(text[i])
		rest := text[i+1:]
		if text[i] == '<' && opens(rest) || text[i] == '[' && beginsWord(rest) {
			out.WriteByte('\\')
		}
	}
	return out.String()
}

// line drops what does not show, and makes one line of the rest.
func line(text string) string {
	text = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r), unicode.IsControl(r), r == '\u2028', r == '\u2029':
			return ' '
		case needed(r):
			return r
		case unicode.Is(unicode.Cf, r), unicode.Is(unicode.Co, r), tagOrFiller(r):
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, "\ufffd"))
	return strings.Join(strings.Fields(text), " ")
}

// needed reports whether a character that does not show belongs to how scripts and
// pictures are written: joiners and variation selectors.
func needed(r rune) bool {
	return r == '\u200c' || r == '\u200d' || r >= '\ufe00' && r <= '\ufe0f'
}

// tagOrFiller reports whether a character shows nothing although it is no format
// character: tags, further selectors and fillers.
func tagOrFiller(r rune) bool {
	switch r {
	case '\u034f', '\u115f', '\u1160', '\u17b4', '\u17b5', '\u3164', '\uffa0':
		return true
	}
	return r >= 0xe0000 && r <= 0xe0fff || unicode.Is(unicode.Variation_Selector, r)
}

// opens reports whether what stands behind a "<" can make a tag or a control word of
// it. What compares, points, or is escaped already does not.
func opens(rest string) bool {
	rest = strings.TrimLeftFunc(rest, blank)
	c, size := utf8.DecodeRuneInString(rest)
	return size > 0 && (c < '0' || c > '9') && !strings.ContainsRune(`=->\`, c)
}

// beginsWord reports whether a text begins with one of the words, or with a slash and
// one of them.
func beginsWord(rest string) bool {
	slash := match(rest, "/")
	for _, word := range words() {
		if match(rest[slash:], word) > 0 {
			return true
		}
	}
	return false
}

// match returns how long the beginning of a text is that shows the word and nothing
// else, or 0. The word is in small letters.
func match(text, word string) int {
	at := 0
	for _, want := range word {
		skipped := strings.TrimLeftFunc(text[at:], blank)
		at = len(text) - len(skipped)
		c, size := utf8.DecodeRuneInString(skipped)
		if size == 0 || unicode.ToLower(c) != want {
			return 0
		}
		at += size
	}
	return at
}

// blank reports whether a character of a line shows nothing.
func blank(r rune) bool { return r == ' ' || needed(r) }
