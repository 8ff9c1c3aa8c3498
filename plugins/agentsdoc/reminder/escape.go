package reminder

import (
	"strings"

	"github.com/grapnelhq/grapnel/lenient"
)

// Escape makes a text, which is escaped by the rules of package chain already,
// fit to stand in a reminder's tag: one backslash is put behind each "<" of a
// sequence that reads as the tag, or as the tag with backslashes in it. Removing
// one from each such sequence gives the text back. The second result counts the
// places.
func Escape(text string) (string, int) {
	var out strings.Builder
	count, done := 0, 0
	scan := lenient.Scan(text)
	for c, _, behind := scan.Next(); c != 0; c, _, behind = scan.Next() {
		if c == '<' && lenient.Tag(text, skipBackslashes(text, behind), tagName) > 0 {
			out.WriteString(text[done:behind])
			out.WriteByte('\\')
			done = behind
			count++
		}
	}
	if count == 0 {
		return text, 0
	}
	out.WriteString(text[done:])
	return out.String(), count
}

// skipBackslashes returns the index behind the backslashes that stand at i.
func skipBackslashes(text string, i int) int {
	for {
		i = lenient.Blanks(text, i)
		c, next := lenient.Shown(text, i)
		if c != '\\' {
			return i
		}
		i = next
	}
}
