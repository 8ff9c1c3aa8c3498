package chain

import (
	"strings"
	"unicode/utf8"

	"github.com/rivo/uniseg"
)

// extent is a length in both units that the budget counts.
type extent struct {
	bytes, chars int
}

// extentOf measures a text.
func extentOf(s string) extent { return extent{len(s), utf8.RuneCountInString(s)} }

// plus adds.
func (e extent) plus(f extent) extent { return extent{e.bytes + f.bytes, e.chars + f.chars} }

// minus subtracts.
func (e extent) minus(f extent) extent { return extent{e.bytes - f.bytes, e.chars - f.chars} }

// fits reports whether e is no longer than room in either unit.
func (e extent) fits(room extent) bool { return e.bytes <= room.bytes && e.chars <= room.chars }

// prefixIn returns the index behind the longest beginning of whole characters
// that fits.
func prefixIn(s string, room extent) int {
	if room.bytes <= 0 || room.chars <= 0 {
		return 0
	}
	s = runePrefix(s, room.bytes)
	if len(s) <= room.chars {
		return len(s)
	}
	for i := range s {
		if room.chars == 0 {
			return i
		}
		room.chars--
	}
	return len(s)
}

// cut returns the beginning of a body, without the LF that ends it, that fits:
// up to the last LF if that keeps at least half, otherwise up to a boundary of
// graphemes. It never ends inside an escaped sequence. It may be empty.
func cut(body string, room extent) string {
	at := prefixIn(body, room)
	if at == len(body) {
		return body
	}
	if i := strings.LastIndexByte(body[:at], '\n'); i > 0 && 2*i >= at {
		return body[:i]
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
	start := strings.LastIndexByte(body[:at], '\n') + 1
	line := body[start:lineEnd(body, start)]
	if n := matchLine(line); at > start && at < start+n {
		return max(start-1, 0)
	}
	if i := strings.LastIndexByte(body[start:at], '<'); i >= 0 {
		if n := matchTag(line[i:]); at < start+i+n {
			return start + i
		}
	}
	return at
}
