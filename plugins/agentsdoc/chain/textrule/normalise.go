package textrule

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// ByteOrderMark is U+FEFF in UTF-8.
const ByteOrderMark = "\uFEFF"

// replacement stands for what cannot be part of a text.
const replacement = "\uFFFD"

// Form says how bytes become text. In every form each maximal invalid piece
// becomes one U+FFFD, as Unicode recommends and other tools do.
type Form struct {
	// Normal drops one byte order mark, makes LF of CRLF and a lone CR, and
	// U+FFFD of each NUL.
	Normal bool
	// Strip drops the characters that reorder text or hide it whole:
	// bidirectional controls and tags.
	Strip bool
}

// Text makes text of bytes, and counts the pieces that became U+FFFD. Bytes
// that have the form already are returned as they are, without a copy.
func (f Form) Text(raw string) (text string, replaced int) {
	if f.has(raw) {
		return raw, 0
	}
	var out strings.Builder
	out.Grow(len(raw))
	for at := f.start(raw); at < len(raw); {
		piece, width := f.next(raw[at:])
		if piece == replacement && raw[at:at+width] != replacement {
			replaced++
		}
		out.WriteString(piece)
		at += width
	}
	return out.String(), replaced
}

// SourceBytes counts the bytes of raw that the first n bytes of its text stand
// for. What was dropped counts with what stands before it.
func (f Form) SourceBytes(raw string, n int) int {
	if n <= 0 {
		return 0
	}
	at := f.start(raw)
	for got := 0; at < len(raw); {
		piece, width := f.next(raw[at:])
		if got+len(piece) > n {
			if raw[at] < utf8.RuneSelf && width == len(piece) {
				at += n - got // within a run of plain characters
			}
			break
		}
		got += len(piece)
		at += width
	}
	return at
}

// has reports whether Text changes nothing.
func (f Form) has(raw string) bool {
	if !utf8.ValidString(raw) || f.Strip && strings.ContainsFunc(raw, stripped) {
		return false
	}
	// By byte: a search for a set of characters is slower.
	return !f.Normal || !strings.HasPrefix(raw, ByteOrderMark) &&
		strings.IndexByte(raw, '\r') < 0 && strings.IndexByte(raw, 0) < 0
}

// start is the index of the first byte that counts.
func (f Form) start(raw string) int {
	if f.Normal && strings.HasPrefix(raw, ByteOrderMark) {
		return len(ByteOrderMark)
	}
	return 0
}

// next takes the next piece off a text that is not empty: what it becomes, and
// how many bytes it takes up.
func (f Form) next(s string) (piece string, width int) {
	switch c := s[0]; {
	case f.Normal && c == '\r':
		if strings.HasPrefix(s, "\r\n") {
			return "\n", 2
		}
		return "\n", 1
	case f.Normal && c == 0:
		return replacement, 1
	case c < utf8.RuneSelf:
		end := 1
		for end < len(s) && s[end] < utf8.RuneSelf && (!f.Normal || s[end] != '\r' && s[end] != 0) {
			end++
		}
		return s[:end], end
	}
	r, size := utf8.DecodeRuneInString(s)
	switch {
	case r == utf8.RuneError && size == 1:
		return replacement, invalidWidth(s)
	case f.Strip && stripped(r):
		return "", size
	default:
		return s[:size], size
	}
}

// stripped reports whether a character is dropped from text of unknown hands.
func stripped(c rune) bool { return c >= 0x61C && (unicode.Is(unicode.Bidi_Control, c) || isTag(c)) }

// invalidWidth is the length of the maximal invalid piece at the beginning of a
// text: the bytes that could have begun a character, which count as one.
func invalidWidth(s string) int {
	if s[0] < 0xC2 || s[0] > 0xF4 || len(s) < 2 {
		return 1
	}
	low, high := byte(0x80), byte(0xBF)
	switch s[0] {
	case 0xE0:
		low = 0xA0
	case 0xED:
		high = 0x9F
	case 0xF0:
		low = 0x90
	case 0xF4:
		high = 0x8F
	}
	if s[1] < low || s[1] > high || s[0] < 0xE0 {
		return 1
	}
	if len(s) > 2 && s[0] >= 0xF0 && s[2]&0xC0 == 0x80 {
		return 3
	}
	return 2
}
