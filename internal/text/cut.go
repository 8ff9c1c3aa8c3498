package text

import "strings"

// Fitted is a fragment that keeps to its limit.
type Fitted struct {
	// Text is the whole fragment: frame, body, marker. Empty if Omitted.
	Text string
	// Body is what is left of the body, without frame and marker.
	Body string
	// Original and Kept count the characters of the body, before and after.
	Original, Kept int
	// Cut says that something was cut off, and that Text has a marker.
	Cut bool
	// Omitted says that the limit leaves no room for anything of use.
	Omitted bool
}

// Size returns the characters of a fragment that is not cut, with a body of so
// many characters.
func Size(frame Frame, bodyChars int) int {
	n := bodyChars + frame.size()
	if bodyChars == 0 && n > 0 {
		n-- // the frame's halves are joined to each other
	}
	return n
}

// Least returns the smallest limit under which [Cut] keeps anything of a body
// of so many characters: the whole fragment or, if smaller, frame, marker and
// one character. (Cut keeps a body's first grapheme cluster whole, so when
// that is longer than one character, it may need more.)
func Least(frame Frame, bodyChars int) int {
	return min(Size(frame, bodyChars), frame.size()+1+markerSize(bodyChars))
}

// Render joins the parts of a fragment that are not empty by newlines, each
// beginning a line. An empty marker means that nothing was cut.
func Render(frame Frame, body, marker string) string {
	var room [4]string
	parts := room[:0]
	for _, part := range [...]string{frame.Open, body, marker, frame.Close} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, "\n")
}

// Cut makes a fragment of the body s and its frame that has at most limit
// characters, marker and joining newlines included. A limit of 0 or less
// leaves room for nothing; it does not mean "no limit".
//
// s must be normalised and escaped for the same frame. If everything fits,
// nothing is cut. Otherwise the head is kept by the rule of [Head], in what
// the frame and the widest marker leave of the limit. If that is not even one
// grapheme cluster, the fragment is left out.
//
// A cut never makes what [Escape] prevents: a head that would end in a line
// or tag of the frame, because the cut took the rest of it, ends earlier. A larger limit never keeps less.
func Cut(s string, limit int, frame Frame) Fitted {
	original := Chars(s)
	if limit < 0 || Size(frame, original) > limit {
		return cut(s, original, limit, frame)
	}
	return Fitted{Text: Render(frame, s, ""), Body: s, Original: original, Kept: original}
}

// cut is Cut for what does not fit.
func cut(s string, original, limit int, frame Frame) Fitted {
	out := Fitted{Original: original, Omitted: true}
	room := limit - frame.size() - markerSize(original)
	if room < 1 {
		return out
	}
	body := honestHead(s, room, frame)
	if body == "" {
		return out
	}
	kept := Chars(body)
	return Fitted{
		Text: Render(frame, body, Marker(kept, original)), Body: body, Original: original, Kept: kept, Cut: true,
	}
}

// Head returns the beginning of s that a cut to room characters keeps. It is s
// if that has no more than room characters. Otherwise it ends before the last
// newline that leaves at least half of room, or else at the last grapheme
// boundary within room; a grapheme cluster of more than 1,024 characters may
// be divided. The newline on which it ends is not part of it: the one that
// joins the marker stands in its place. s should be normalised.
//
// The result has at most room characters, is valid UTF-8 if s is, and never
// gets shorter when room grows.
func Head(s string, room int) string {
	end := offset(s, room)
	if end == len(s) {
		return s
	}
	if newline := strings.LastIndexByte(s[:end+1], '\n'); newline >= 0 && 2*Chars(s[:newline]) >= room {
		return s[:newline]
	}
	return s[:clusterEnd(s, end)]
}

// honestHead is Head, going back as if there were less room while the last
// line or tag is one that only the host may write. One step suffices unless the two
// halves of a frame begin alike.
func honestHead(s string, room int, frame Frame) string {
	var space guardRoom
	g := newGuard(frame, &space)
	head := Head(s, room)
	for {
		// All heads that end within the blanks behind a line would be refused
		// like it, so the next try ends before its last visible character.
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
