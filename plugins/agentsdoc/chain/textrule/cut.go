package textrule

import (
	"strings"
	"unicode/utf8"

	"github.com/rivo/uniseg"

	"github.com/grapnelhq/grapnel/lenient"
)

// Extent is a length in both units that a budget counts: bytes, and Unicode
// scalar values.
type Extent struct {
	Bytes, Chars int
}

// ExtentOf measures a text.
func ExtentOf(s string) Extent { return Extent{len(s), utf8.RuneCountInString(s)} }

// Plus adds.
func (e Extent) Plus(f Extent) Extent { return Extent{e.Bytes + f.Bytes, e.Chars + f.Chars} }

// Minus subtracts.
func (e Extent) Minus(f Extent) Extent { return Extent{e.Bytes - f.Bytes, e.Chars - f.Chars} }

// Fits reports whether e is no longer than room in either unit.
func (e Extent) Fits(room Extent) bool { return e.Bytes <= room.Bytes && e.Chars <= room.Chars }

// PrefixIn returns the index behind the longest beginning of whole characters
// that fits.
func PrefixIn(s string, room Extent) int {
	if room.Bytes <= 0 || room.Chars <= 0 {
		return 0
	}
	s = RunePrefix(s, room.Bytes)
	if len(s) <= room.Chars {
		return len(s)
	}
	for i := range s {
		if room.Chars == 0 {
			return i
		}
		room.Chars--
	}
	return len(s)
}

// Cut returns the beginning of a body, without the LF that ends it, that fits:
// up to the last LF if that keeps at least half, otherwise up to a boundary of
// graphemes. It never ends inside an escaped sequence. It may be empty.
func Cut(body string, room Extent) string {
	at := PrefixIn(body, room)
	if at == len(body) {
		return body
	}
	if i := strings.LastIndexByte(body[:at], '\n'); i > 0 && 2*i >= at {
		if outsideEscape(body, i) == i {
			return body[:i]
		}
		at = i
	}
	for {
		next := outsideEscape(body, graphemeBoundary(body, at))
		if next == at {
			return body[:at]
		}
		at = next
	}
}

// graphemeBoundary returns the last boundary of graphemes up to at, which is a
// boundary of characters; or at itself where one grapheme is all there is.
func graphemeBoundary(s string, at int) int {
	start := at
	// Between two ASCII characters there is always a boundary.
	for start > 0 && (s[start-1] >= utf8.RuneSelf || start < len(s) && s[start] >= utf8.RuneSelf) {
		start--
	}
	state, end := -1, start
	for rest := s[start:]; rest != ""; {
		var cluster string
		cluster, rest, _, state = uniseg.FirstGraphemeClusterInString(rest, state)
		if end+len(cluster) > at {
			break
		}
		end += len(cluster)
	}
	if end == 0 {
		return at
	}
	return end
}

// outsideEscape moves an index out of an escaped sequence, to its beginning;
// where that begins a line, to the end of the line before.
func outsideEscape(body string, at int) int {
	// The bracket of a line stands behind its backslashes, so it may come later.
	next := len(body) - len(strings.TrimLeft(body[at:], `\`))
	if next < len(body) && inside(body, next, &at) {
		return at
	}
	for i := at - 1; i >= 0; i-- {
		if c, _ := lenient.Opening(body, i); c != 0 {
			inside(body, i, &at)
			break
		}
	}
	return at
}

// inside moves at out of the sequence whose bracket is at index i, if it is in one.
func inside(body string, i int, at *int) bool {
	c, behind := lenient.Opening(body, i)
	if c == 0 {
		return false
	}
	s, ok := match(body, c, i, behind)
	if !ok || *at <= s.begin || *at >= s.end {
		return false
	}
	*at = s.begin
	if s.begin > 0 && body[s.begin-1] == '\n' {
		*at--
	}
	return true
}

// RunePrefix is the longest beginning of whole characters in n bytes.
func RunePrefix(s string, n int) string {
	if n >= len(s) {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
