package skills

import (
	"strings"

	"github.com/grapnelhq/grapnel/lenient"
)

// tagName is the name of the frame's tag.
const tagName = "SKILL"

// escape puts a backslash behind each "<" with which a text could open or close
// the frame of a full text, whatever follows the name. The host does the same for
// the frame's own body; a text in the list has no frame.
func escape(text string) string {
	var out strings.Builder
	done := 0
	scan := lenient.Scan(text)
	for c, _, behind := scan.Next(); c != 0; c, _, behind = scan.Next() {
		if c == '<' && lenient.Tag(text, behind, tagName) > 0 {
			out.WriteString(text[done:behind])
			out.WriteByte('\\')
			done = behind
		}
	}
	if done == 0 {
		return text
	}
	out.WriteString(text[done:])
	return out.String()
}
