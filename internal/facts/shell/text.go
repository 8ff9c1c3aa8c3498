package shell

import (
	"slices"
	"strings"
)

// Plain shows the wildcards in a word as a shell does, and … for what is unknown.
func Plain(word string) string {
	if !HasAny(word, unknown+string(Star)+string(Any)+string(top)) {
		return word
	}
	return plain.Replace(word)
}

// HasAny is [strings.ContainsAny] for the marks of this package, which begin with the same two bytes and are rare.
func HasAny(word, marks string) bool {
	return strings.Contains(word, "\xee\x80") && strings.ContainsAny(word, marks)
}

// Known reports whether a text has neither parts that are unknown nor a directory's name in the place of [Top].
func Known(text string) bool { return !HasAny(text, unknown+string(top)) }

// Visible is a text without wildcards' marks and signs that a terminal obeys, cut to 200 letters.
func Visible(name string) string {
	text := []rune(Plain(strings.ToValidUTF8(name, "\uFFFD")))
	for i, r := range text {
		if r < ' ' || r == 0x7f {
			text[i] = '\uFFFD'
		}
	}
	if len(text) > 200 {
		text = append(text[:199:199], '…')
	}
	return string(text)
}

// OneOf reports whether one of the words is in a list, which has spaces between its words.
func OneOf(list string, words ...string) bool {
	return slices.ContainsFunc(words, func(word string) bool { return contains(list, word) })
}

func contains(list, word string) bool {
	for from := 0; word != ""; from++ {
		at := strings.Index(list[from:], word)
		if at < 0 {
			return false
		}
		from += at
		end := from + len(word)
		if (from == 0 || list[from-1] == ' ') && (end == len(list) || list[end] == ' ') {
			return !strings.Contains(word, " ")
		}
	}
	return false
}
