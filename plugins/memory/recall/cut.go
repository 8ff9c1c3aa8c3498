package recall

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rivo/uniseg"
)

// ellipsis stands at the end of a text that was cut. It counts.
const ellipsis = "…"

// Cut makes a text one line of at most limit characters, and says whether it had to
// leave anything away. Blanks and newlines become single spaces, and bytes that are
// not UTF-8 become U+FFFD. A text that is too long ends in "…": it is cut after the
// last word that fits, if that costs no more than a quarter of the room, otherwise at
// the last grapheme boundary, and in the midst of a grapheme only where one fills the
// room. A limit of 0 or less leaves nothing.
func Cut(text string, limit int) (line string, cut bool) {
	whole := oneLine(text)
	line = cutLine(whole, limit)
	return line, line != whole
}

// oneLine makes a text one line of valid UTF-8.
func oneLine(text string) string {
	return strings.Join(strings.Fields(strings.ToValidUTF8(text, "\uFFFD")), " ")
}

// cutLine is Cut for a text that is one line.
func cutLine(line string, limit int) string {
	if limit <= 0 {
		return ""
	}
	if utf8.RuneCountInString(line) <= limit {
		return line
	}
	room := clip(line, limit-1)
	kept := line[:boundary(line, len(room))]
	if kept == "" {
		kept = room
	}
	if next, _ := utf8.DecodeRuneInString(line[len(kept):]); next != ' ' {
		if i := strings.LastIndexByte(kept, ' '); 4*i >= 3*len(kept) {
			kept = kept[:i]
		}
	}
	return strings.TrimRightFunc(kept, trailing) + ellipsis
}

// trailing reports what looks odd before an ellipsis.
func trailing(c rune) bool { return unicode.IsSpace(c) || strings.ContainsRune(",;:.(-–—…", c) }

// boundary returns the last grapheme boundary of s up to end, which is the beginning
// of a character.
func boundary(s string, end int) int {
	last, state := 0, -1
	for rest := s; rest != ""; {
		var cluster string
		cluster, rest, _, state = uniseg.FirstGraphemeClusterInString(rest, state)
		if last+len(cluster) > end {
			break
		}
		last += len(cluster)
	}
	return last
}
