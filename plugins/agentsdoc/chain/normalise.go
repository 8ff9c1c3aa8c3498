package chain

import (
	"strings"
	"unicode/utf8"
)

// byteOrderMark is U+FEFF in UTF-8.
const byteOrderMark = "\uFEFF"

// replacement stands for what cannot be part of a text.
const replacement = "\uFFFD"

// normalised is the outcome of normalise.
type normalised struct {
	text     string
	replaced int // pieces that became U+FFFD
}

// normalise makes text of bytes: one byte order mark is dropped, CRLF and a
// lone CR become LF, each maximal invalid piece and each NUL becomes U+FFFD.
// A text that is normal already is returned as it is, without a copy.
func normalise(raw string) normalised {
	if isNormal(raw) {
		return normalised{text: raw}
	}
	var out strings.Builder
	out.Grow(len(raw))
	var n normalised
	for rest := strings.TrimPrefix(raw, byteOrderMark); rest != ""; {
		piece, width := nextPiece(rest)
		if piece == replacement && rest[:width] != replacement {
			n.replaced++
		}
		out.WriteString(piece)
		rest = rest[width:]
	}
	n.text = out.String()
	return n
}

// isNormal reports whether normalise changes nothing.
func isNormal(raw string) bool {
	return !strings.HasPrefix(raw, byteOrderMark) && !strings.ContainsAny(raw, "\r\x00") && utf8.ValidString(raw)
}

// sourceBytes counts the bytes of raw that the first n bytes of its normalised
// text stand for.
func sourceBytes(raw string, n int) int {
	if n <= 0 {
		return 0
	}
	at := 0
	if strings.HasPrefix(raw, byteOrderMark) {
		at = len(byteOrderMark)
	}
	for got := 0; at < len(raw); {
		piece, width := nextPiece(raw[at:])
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

// nextPiece takes the next piece off a text that is not empty: what it becomes,
// and how many bytes it takes up.
func nextPiece(s string) (piece string, width int) {
	switch c := s[0]; {
	case c == '\r':
		if strings.HasPrefix(s, "\r\n") {
			return "\n", 2
		}
		return "\n", 1
	case c == 0:
		return replacement, 1
	case c < utf8.RuneSelf:
		end := 1
		for end < len(s) && s[end] != '\r' && s[end] != 0 && s[end] < utf8.RuneSelf {
			end++
		}
		return s[:end], end
	}
	if r, size := utf8.DecodeRuneInString(s); r != utf8.RuneError || size > 1 {
		return s[:size], size
	}
	return replacement, invalidWidth(s)
}

// invalidWidth is the length of the maximal invalid piece at the beginning of a
// text: the bytes that could have begun a character, which count as one, as
// Unicode recommends and other tools do.
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
