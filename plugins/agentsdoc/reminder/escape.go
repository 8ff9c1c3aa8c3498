package reminder

import (
	"strings"
	"unicode/utf8"

	"github.com/grapnelhq/grapnel/plugins/agentsdoc/chain/textrule"
)

// Escape makes a text, which is escaped by the rules of package chain already,
// fit to stand in a reminder's tag: one backslash is put behind each "<" of a
// sequence that reads as the tag, or as the tag with backslashes in it. Removing
// one from each such sequence gives the text back. The second result counts the
// places.
func Escape(text string) (string, int) {
	var out strings.Builder
	count, done := 0, 0
	for i := strings.IndexByte(text, '<'); i >= 0; {
		if isTag(text[i+1:]) {
			out.WriteString(text[done : i+1])
			out.WriteByte('\\')
			done = i + 1
			count++
		}
		next := strings.IndexByte(text[i+1:], '<')
		if next < 0 {
			break
		}
		i += 1 + next
	}
	if count == 0 {
		return text, 0
	}
	out.WriteString(text[done:])
	return out.String(), count
}

// isTag reports whether what follows a "<" reads as a tag of ours.
func isTag(s string) bool {
	c, rest := shown(s)
	for c == '\\' {
		c, rest = shown(rest)
	}
	if c == '/' {
		c, rest = shown(rest)
	}
	for i := 0; ; i++ {
		if lower(c) != tagName[i] {
			return false
		}
		if i == len(tagName)-1 {
			return true
		}
		c, rest = shown(rest)
	}
}

// shown takes the first character that shows something off a text, if that is
// ASCII; 0 stands for the end and for all others.
func shown(s string) (c byte, rest string) {
	for s != "" {
		if s[0] < utf8.RuneSelf {
			return s[0], s[1:]
		}
		_, size := utf8.DecodeRuneInString(s)
		if textrule.WithoutInvisible(s[:size]) != "" {
			break
		}
		s = s[size:]
	}
	return 0, ""
}

// lower is the lower case of an ASCII letter, and of nothing else.
func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		c += 'a' - 'A'
	}
	return c
}
