package text

import (
	"slices"
	"strings"
)

// Fitted is a fragment that keeps to its limit.
type Fitted struct {
	// Text is the whole fragment: frame, body, marker. Empty if Omitted.
	Text string
	// Body is what is kept of the body, without frame and marker.
	Body string
	// Original and Kept count the characters of frame and body, before and after.
	Original, Kept int
	// Cut says that something was cut off, and that Text has a marker.
	Cut bool
	// Omitted says that not even a beginning fits into the limit.
	Omitted bool
}

// Size returns the characters of a fragment that is not cut, with a body of bodyChars characters.
func Size(frame Frame, bodyChars int) int {
	n := bodyChars + frame.size()
	if bodyChars == 0 && n > 0 {
		n-- // the frame's halves are joined to each other
	}
	return n
}

// Least returns the smallest limit with which [CutOf] keeps anything of a body of bodyChars characters, if its first
// grapheme cluster is one character.
func Least(frame Frame, bodyChars, original int) int {
	return min(Size(frame, bodyChars), frame.size()+1+markerSize(original))
}

// Render joins the parts of a fragment that are not empty by newlines. An empty marker means that nothing was cut.
func Render(frame Frame, body, marker string) string {
	parts := slices.DeleteFunc([]string{frame.Open, body, marker, frame.Close}, func(s string) bool { return s == "" })
	return strings.Join(parts, "\n")
}

// Cut makes a fragment of the body s and its frame that has at most limit characters. s must be normalised and
// escaped for the same frame. If the fragment is too long, Cut keeps a [Head] of s, which never ends in a line or tag
// that [Escape] prevents, or omits the fragment. A larger limit never keeps less.
func Cut(s string, limit int, frame Frame) Fitted {
	return CutOf(s, Size(frame, Chars(s)), limit, frame)
}

// CutOf is [Cut] for a fragment that was cut before: its frame and body had original characters.
func CutOf(s string, original, limit int, frame Frame) Fitted {
	if size := Size(frame, Chars(s)); limit >= 0 && size <= limit {
		return Fitted{Text: Render(frame, s, ""), Body: s, Original: original, Kept: size}
	}
	body := ""
	if limit -= frame.size() + markerSize(original); limit >= 1 {
		body = guardedHead(s, limit, frame)
	}
	if body == "" {
		return Fitted{Original: original, Omitted: true}
	}
	kept := Size(frame, Chars(body))
	return Fitted{
		Text: Render(frame, body, Marker(kept, original)), Body: body, Original: original, Kept: kept, Cut: true,
	}
}

// Marker returns the line that says how much a cut kept, without a newline:
//
//	[truncated: kept 15,950 of 40,212 characters]
func Marker(kept, original int) string {
	return "[truncated: kept " + Thousands(kept) + " of " + Thousands(original) + " characters]"
}

func markerSize(original int) int { return len(Marker(original, original)) + 1 }

// Head returns the beginning of s that a cut to limit characters keeps. It ends before the last newline that leaves
// at least half of limit, or else at the last grapheme boundary; a grapheme cluster of more than 1,024 characters may
// be divided. s should be normalised. The result never gets shorter when limit grows.
func Head(s string, limit int) string {
	end := Offset(s, limit)
	if end == len(s) {
		return s
	}
	if newline := strings.LastIndexByte(s[:end+1], '\n'); newline >= 0 && 2*Chars(s[:newline]) >= limit {
		return s[:newline]
	}
	return s[:ClusterEnd(s, end)]
}

// guardedHead is Head, shortened while it ends in a line or tag of the frame.
func guardedHead(s string, limit int, frame Frame) string {
	var space guardSpace
	g := newGuard(frame, &space)
	head := Head(s, limit)
	for {
		visible := strings.TrimRight(head, blanks)
		if line := visible[strings.LastIndexByte(visible, '\n')+1:]; line == "" || !g.isLine(line) {
			end := g.cutTag(head)
			if end == 0 {
				return head
			}
			visible = head[:end]
		}
		head = Head(s, Chars(visible)-1)
	}
}
