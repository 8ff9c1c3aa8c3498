package textrule

import "strings"

// The beginnings of the lines that are ours, which no body can have.
const (
	SourceWord    = "[source:"
	TruncatedWord = "[truncated:"
	OmittedWord   = "[omitted:"
)

// The sequences behind "<" that a body must not hold: the tags of the section's
// frame, and the boundary between the parts of a compiled prompt.
const (
	frameTag    = "AGENTS_MD"
	boundaryTag = "!-- grapnel:dynamic"
)

// Escape makes a text fit to be a body. The second result counts the places
// that were changed. The documentation of package chain has the rules.
func Escape(text string) (string, int) {
	var out strings.Builder
	count, done := 0, 0
	insert := func(at int) {
		if count == 0 {
			out.Grow(len(text) + len(text)/64 + 1)
		}
		count++
		out.WriteString(text[done:at])
		out.WriteByte('\\')
		done = at
	}
	for start := 0; start < len(text); {
		end := lineEnd(text, start)
		line := text[start:end]
		if matchLine(line) > 0 {
			insert(start)
		}
		for i := strings.IndexByte(line, '<'); i >= 0; {
			if matchTag(line[i:]) > 0 {
				insert(start + i + 1)
			}
			next := strings.IndexByte(line[i+1:], '<')
			if next < 0 {
				break
			}
			i += 1 + next
		}
		start = end + 1
	}
	if count == 0 {
		return text, 0
	}
	out.WriteString(text[done:])
	return out.String(), count
}

// lineEnd is the index of the LF that ends the line at start, or the length of
// the text.
func lineEnd(text string, start int) int {
	if n := strings.IndexByte(text[start:], '\n'); n >= 0 {
		return start + n
	}
	return len(text)
}

// matchLine returns the length of the sequence at the beginning of a line that
// has to be escaped there, or is: backslashes and one of our words. 0 means
// that there is none.
func matchLine(line string) int {
	i := skipBackslashes(line, 0)
	if i == len(line) || line[i] != '[' {
		return 0
	}
	for _, word := range [...]string{SourceWord, TruncatedWord, OmittedWord} {
		if end := matchWord(line, i, word, false); end > 0 {
			return end
		}
	}
	return 0
}

// matchTag is matchLine for a text that begins with "<".
func matchTag(s string) int {
	i := skipBackslashes(s, 1)
	if end := matchWord(s, i, boundaryTag, false); end > 0 {
		return end
	}
	if i < len(s) && s[i] == '/' {
		i++
	}
	return matchWord(s, i, frameTag, true)
}

// skipBackslashes skips backslashes, and what does not show among them.
func skipBackslashes(s string, i int) int {
	for {
		i = skipInvisible(s, i)
		if i == len(s) || s[i] != '\\' {
			return i
		}
		i++
	}
}

// matchWord returns the index behind the word, which is ASCII, if the text has
// it at i, leaving aside what does not show; otherwise 0. With fold the case
// does not matter.
func matchWord(s string, i int, word string, fold bool) int {
	for w := range len(word) {
		i = skipInvisible(s, i)
		if i == len(s) || s[i] != word[w] && (!fold || lower(s[i]) != lower(word[w])) {
			return 0
		}
		i++
	}
	return i
}

// lower is the lower case of an ASCII letter, and of nothing else.
func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		c += 'a' - 'A'
	}
	return c
}
