package chain

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/grapnelhq/grapnel/sdk"
)

// The beginnings of the lines around bodies, which no body can have.
const (
	SourceWord    = "[source:"
	TruncatedWord = "[truncated:"
	omittedWord   = "[omitted:"
)

// Escaper escapes a body so that it cannot forge the lines around it, the tags of the section's frame, or the
// boundary of the compiled prompt.
func Escaper() sdk.Escaper {
	return sdk.Escaper{
		Tags:  []string{"AGENTS_MD", sdk.BoundaryTag},
		Lines: []string{"[ source :", "[ truncated :", "[ omitted :"},
	}
}

const (
	byteOrderMark = "\uFEFF"
	replacement   = "\uFFFD"
)

// form says how bytes become text. In every form each maximal invalid piece becomes one U+FFFD, as Unicode
// recommends.
type form struct {
	normal bool // drop one byte order mark, and replace CRLF and a lone CR by LF and each NUL by U+FFFD
	strip  bool // drop bidirectional controls and tags
}

// text makes text of bytes and counts the pieces that became U+FFFD. It copies only if it changes something.
func (f form) text(raw string) (text string, replaced int) {
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

// sourceBytes counts the bytes of raw that the first n bytes of its text stand for. Dropped bytes count with what
// precedes them.
func (f form) sourceBytes(raw string, n int) int {
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

// has reports whether text would change nothing.
func (f form) has(raw string) bool {
	if !utf8.ValidString(raw) || f.strip && strings.ContainsFunc(raw, stripped) {
		return false
	}
	return !f.normal || !strings.HasPrefix(raw, byteOrderMark) &&
		strings.IndexByte(raw, '\r') < 0 && strings.IndexByte(raw, 0) < 0
}

func (f form) start(raw string) int {
	if f.normal && strings.HasPrefix(raw, byteOrderMark) {
		return len(byteOrderMark)
	}
	return 0
}

// next returns what the first piece of a non-empty text becomes, and its length in bytes.
func (f form) next(s string) (piece string, width int) {
	switch c := s[0]; {
	case f.normal && c == '\r':
		if strings.HasPrefix(s, "\r\n") {
			return "\n", 2
		}
		return "\n", 1
	case f.normal && c == 0:
		return replacement, 1
	case c < utf8.RuneSelf:
		end := 1
		for end < len(s) && s[end] < utf8.RuneSelf && (!f.normal || s[end] != '\r' && s[end] != 0) {
			end++
		}
		return s[:end], end
	}
	r, size := utf8.DecodeRuneInString(s)
	switch {
	case r == utf8.RuneError && size == 1:
		return replacement, invalidWidth(s)
	case f.strip && stripped(r):
		return "", size
	default:
		return s[:size], size
	}
}

func stripped(c rune) bool { return c >= 0x61C && (unicode.Is(unicode.Bidi_Control, c) || isTag(c)) }

// isTag recognizes the tag characters, which spell out ASCII invisibly.
func isTag(c rune) bool { return c >= 0xE0000 && c <= 0xE007F }

// invalidWidth is the length of the maximal invalid piece at the beginning of s: the bytes that could have begun a
// character count as one.
func invalidWidth(s string) int {
	if s[0] < 0xE0 || s[0] > 0xF4 || len(s) < 2 {
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
	switch {
	case s[1] < low || s[1] > high:
		return 1
	case len(s) > 2 && s[0] >= 0xF0 && s[2]&0xC0 == 0x80:
		return 3
	default:
		return 2
	}
}

// Hidden are the invisible characters of a text.
type Hidden struct {
	Count int
	Lines []int // the numbers of the lines that hold them, from 1
}

// FindHidden looks for bidirectional controls, zero-width characters and tags. It ignores variation selectors, which
// many emoji need.
func FindHidden(text string) Hidden {
	var h Hidden
	line, counted := 1, 0
	for _, c := range text {
		switch {
		case c == '\n':
			line++
		case c >= 0x61C && isHidden(c):
			h.Count++
			if counted != line {
				h.Lines, counted = append(h.Lines, line), line
			}
		}
	}
	return h
}

func isHidden(c rune) bool {
	switch {
	case c >= 0x200B && c <= 0x200D, c == 0x180E, c >= 0x2060 && c <= 0x2064, c >= 0x206A && c <= 0x206F, c == 0xFEFF:
		return true
	}
	return isTag(c) || unicode.Is(unicode.Bidi_Control, c)
}

func isBlank(text string) bool { return strings.TrimSpace(text) == "" }

const maxPrinted = 512

// PrintPlainPath prints a path as the users of other tools know it: only control characters, newlines, < and > become
// \u{HEX}, so that it cannot forge a line or a tag. Invalid UTF-8 becomes U+FFFD, and of more than 512 characters the
// middle becomes one "…". For Grapnel's own texts use [sdk.PlainName].
func PrintPlainPath(path string) string {
	path, _ = form{}.text(path)
	units, total := []string{}, 0
	for _, c := range path {
		unit := string(c)
		if unicode.IsControl(c) || strings.ContainsRune("<>\u2028\u2029", c) {
			unit = fmt.Sprintf(`\u{%x}`, c)
		}
		units = append(units, unit)
		total += utf8.RuneCountInString(unit)
	}
	if total <= maxPrinted {
		return strings.Join(units, "")
	}
	head, tail := 0, len(units)
	for left := (maxPrinted - 1) / 2; left >= utf8.RuneCountInString(units[head]); head++ {
		left -= utf8.RuneCountInString(units[head])
	}
	for left := (maxPrinted - 1) / 2; left >= utf8.RuneCountInString(units[tail-1]); tail-- {
		left -= utf8.RuneCountInString(units[tail-1])
	}
	return strings.Join(units[:head], "") + "…" + strings.Join(units[tail:], "")
}
