package sdk

import (
	"cmp"
	"strings"

	"github.com/grapnelhq/grapnel/internal/text"
)

// BoundaryTag in [Escaper.Tags] escapes the line between the stable and the dynamic part of a compiled prompt, which is a
// comment that begins so, for a plugin that does it itself. The host escapes that line in every section.
const BoundaryTag = "!-- grapnel:dynamic"

// Escaper escapes text so that it cannot forge a plugin's own tags and lines. It reads leniently: any case, letters
// of other scripts that look alike, HTML entities, and blanks, line breaks and invisible characters in between. The
// zero value changes nothing.
//
// Each place gets one backslash more than it has, so that removing one from each
// place restores the text, and escaping a text twice escapes it twice.
type Escaper struct {
	// Tags are the names of tags, such as "NOTES": each "<", "</" followed by the
	// name gets a backslash after its first character, whatever follows the name.
	// A name that begins with "!" is the beginning of a comment. Names are ASCII.
	Tags []string
	// Lines are the beginnings of lines, such as "[source :": each "[" that begins such a line, perhaps quoted,
	// listed, indented or emphasised, gets a backslash before it. They are ASCII and begin with "[". A blank stands
	// for any number of blanks, none included.
	Lines []string
}

// Escape returns s with its backslashes, and their number. A text without any such place
// is returned as it is, without allocation. It takes linear time.
func (e Escaper) Escape(s string) (escaped string, places int) {
	var marks []int
	scan := text.Scan(s)
	for c, at, after := scan.Next(); c != 0; c, at, after = scan.Next() {
		if p, ok := e.match(s, c, at, after); ok {
			marks = append(marks, p.insert)
		}
	}
	return text.Backslashes(s, marks), len(marks)
}

// Cut returns the beginning of an escaped text that has at most the given bytes and characters. It ends before the
// last newline that keeps at least half of that, otherwise at a grapheme boundary (a first grapheme that is too long
// is divided), and never inside an escaped place. The result may be empty; math.MaxInt does not limit.
func (e Escaper) Cut(escaped string, bytes, chars int) string {
	at := len(LongestPrefix(escaped, bytes, chars))
	if at == len(escaped) {
		return escaped
	}
	if i := strings.LastIndexByte(escaped[:at], '\n'); i > 0 && 2*i >= at {
		if e.outside(escaped, i) == i {
			return escaped[:i]
		}
		at = i
	}
	for {
		next := e.outside(escaped, cmp.Or(text.ClusterEnd(escaped, at), at))
		if next == at {
			return escaped[:at]
		}
		at = next
	}
}

// place is an escaped or guarded place, and where its next backslash goes.
type place struct{ begin, insert, end int }

func (e Escaper) match(s string, c byte, at, after int) (place, bool) {
	if c == '<' {
		end := e.matchTag(s, after)
		return place{at, after, end}, end > 0
	}
	for _, line := range e.Lines {
		if end := text.Word(s, at, line); end > 0 && text.StartsLine(s, at, `\`) {
			return place{len(strings.TrimRight(s[:at], `\`)), at, end}, true
		}
	}
	return place{}, false
}

// matchTag returns the end of a tag whose "<" ends at i, perhaps with backslashes, or 0.
func (e Escaper) matchTag(s string, i int) int {
	for {
		i = text.Blanks(s, i)
		c, next := text.Shown(s, i)
		if c != '\\' {
			break
		}
		i = next
	}
	for _, name := range e.Tags {
		find := text.Tag
		if strings.HasPrefix(name, "!") {
			find = text.Word
		}
		if end := find(s, i, name); end > 0 {
			return end
		}
	}
	return 0
}

// outside moves an index in an escaped place to its beginning, or to the end of the line before if it begins a line.
func (e Escaper) outside(s string, at int) int {
	// The bracket of a line stands after its backslashes, perhaps after the index.
	next := len(s) - len(strings.TrimLeft(s[at:], `\`))
	if moved, ok := e.outsideBracket(s, next, at); ok {
		return moved
	}
	for i := at - 1; i >= 0; i-- {
		if c, _ := text.Opening(s, i); c != 0 {
			at, _ = e.outsideBracket(s, i, at)
			break
		}
	}
	return at
}

func (e Escaper) outsideBracket(s string, i, at int) (int, bool) {
	if i >= len(s) {
		return at, false
	}
	c, after := text.Opening(s, i)
	if c == 0 {
		return at, false
	}
	p, ok := e.match(s, c, i, after)
	if !ok || at <= p.begin || at >= p.end {
		return at, false
	}
	if p.begin > 0 && s[p.begin-1] == '\n' {
		return p.begin - 1, true
	}
	return p.begin, true
}
