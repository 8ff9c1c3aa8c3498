package textrule

import (
	"strings"

	"github.com/grapnelhq/grapnel/lenient"
)

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

// lineWords are the words of our lines, with blanks where a careless reader takes any.
func lineWords() [3]string { return [...]string{"[ source :", "[ truncated :", "[ omitted :"} }

// Escape makes a text fit to be a body. The second result counts the places
// that were changed. The documentation of package chain has the rules.
func Escape(text string) (string, int) {
	var out strings.Builder
	count, done := 0, 0
	scan := lenient.Scan(text)
	for c, at, behind := scan.Next(); c != 0; c, at, behind = scan.Next() {
		p, ok := match(text, c, at, behind)
		if !ok {
			continue
		}
		if count == 0 {
			out.Grow(len(text) + len(text)/64 + 1)
		}
		count++
		out.WriteString(text[done:p.insert])
		out.WriteByte('\\')
		done = p.insert
	}
	if count == 0 {
		return text, 0
	}
	out.WriteString(text[done:])
	return out.String(), count
}

// sequence is a place in a text that has to be escaped, or is: its beginning, its end,
// and where the backslash goes.
type sequence struct{ begin, insert, end int }

// match returns the sequence around a bracket, which is from index at to behind.
func match(text string, c byte, at, behind int) (sequence, bool) {
	if c == '<' {
		end := matchTag(text, behind)
		return sequence{at, behind, end}, end > 0
	}
	for _, word := range lineWords() {
		if end := lenient.Word(text, at, word); end > 0 && lenient.StartsLine(text, at, `\`) {
			begin := at - (len(text[:at]) - len(strings.TrimRight(text[:at], `\`)))
			return sequence{begin, at, end}, true
		}
	}
	return sequence{}, false
}

// matchTag returns the end of a tag that begins before text[i:], be it with backslashes;
// 0 if there is none.
func matchTag(text string, i int) int {
	for {
		i = lenient.Blanks(text, i)
		c, next := lenient.Shown(text, i)
		if c != '\\' {
			break
		}
		i = next
	}
	if end := lenient.Word(text, i, boundaryTag); end > 0 {
		return end
	}
	return lenient.Tag(text, i, frameTag)
}
