package turnpolicy

import (
	"strings"
	"unicode/utf8"
)

// lookHead and lookTail are how many characters are looked at, from the beginning
// and from the end of a text.
const (
	lookHead = 4_000
	lookTail = 4_000
)

// window is a part of a text that is looked at.
type window struct {
	text string
	// inFence says that the part begins inside a block of code.
	inFence bool
	// torn says that it begins somewhere in a sentence.
	torn bool
}

// windows returns the parts of a text that are looked at: all of a short one, and
// the two ends of a long one. What lies between is only searched for lines that
// begin or end blocks of code.
func windows(text string) []window {
	head := prefixLen(text, lookHead)
	if head == len(text) {
		return []window{{text: text}}
	}
	tail := max(head, len(text)-suffixLen(text, lookTail))
	rest := window{text: text[tail:], inFence: fenced(text[:tail])}
	rest.torn = text[tail-1] != '\n'
	if tail == head {
		// The two meet: the text is whole, and no sentence is torn.
		return []window{{text: text}}
	}
	return []window{{text: text[:head]}, rest}
}

// prefixLen returns the length of the first n characters.
func prefixLen(text string, n int) int {
	for i := range text {
		if n == 0 {
			return i
		}
		n--
	}
	return len(text)
}

// suffixLen returns the length of the last n characters.
func suffixLen(text string, n int) int {
	i := len(text)
	for ; n > 0 && i > 0; n-- {
		_, size := utf8.DecodeLastRuneInString(text[:i])
		i -= size
	}
	return len(text) - i
}

// fenced reports whether a text ends inside a block of code.
func fenced(text string) bool {
	open := ""
	for line := range strings.SplitSeq(text, "\n") {
		open = fence(line, open)
	}
	return open != ""
}

// fence returns the mark that ends the block of code in which the line after this
// one stands, given that of this line; "" is none.
func fence(line, open string) string {
	line = strings.TrimLeft(line, " \t")
	switch {
	case open == "" && strings.HasPrefix(line, "```"):
		return "```"
	case open == "" && strings.HasPrefix(line, "~~~"):
		return "~~~"
	case open != "" && strings.HasPrefix(line, open):
		return ""
	}
	return open
}
