package skills

import (
	"strings"
	"unicode/utf8"
)

// tagName is the name of the frame's tag in small letters.
const tagName = "skill"

// escape puts a backslash behind each "<" with which a text could open or close
// the frame of a full text: before SKILL or /SKILL in any case, whatever follows,
// joiners between the letters included. The host does the same for the exact
// tags; a text in the list has no frame, and a joiner does not show.
func escape(text string) string {
	var out strings.Builder
	done := 0
	for i := 0; ; {
		next := strings.IndexByte(text[i:], '<')
		if next < 0 {
			break
		}
		i += next + 1
		if !beginsTag(text[i:]) {
			continue
		}
		out.WriteString(text[done:i])
		out.WriteByte('\\')
		done = i
	}
	if done == 0 {
		return text
	}
	out.WriteString(text[done:])
	return out.String()
}

// beginsTag reports whether the text behind a "<" begins the frame's tag.
func beginsTag(s string) bool {
	s = strings.TrimPrefix(skipJoiners(s), "/")
	for i := range len(tagName) {
		s = skipJoiners(s)
		if s == "" || s[0]|0x20 != tagName[i] {
			return false
		}
		s = s[1:]
	}
	return true
}

// skipJoiners drops what skillset leaves in a text although it does not show.
func skipJoiners(s string) string {
	for s != "" {
		c, size := utf8.DecodeRuneInString(s)
		switch c {
		case '\u200c', '\u200d', '\ufe0e', '\ufe0f':
			s = s[size:]
		default:
			return s
		}
	}
	return s
}
