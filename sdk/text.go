package sdk

import (
	"cmp"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/grapnelhq/grapnel/internal/text"
	"github.com/grapnelhq/grapnel/phases"
)

// CountChars returns the number of characters in s. A byte that is not part of valid UTF-8 counts as one.
func CountChars(s string) int { return text.Chars(s) }

// SectionSize returns the number of characters that a section's fragment takes in the prompt
// if the host does not cut it, with its frame and the backslashes that the host adds.
func SectionSize(frame phases.Frame, body string) int {
	f := text.Frame(frame)
	escaped, _ := text.Escape(text.Normalize(body), f)
	return text.Size(f, text.Chars(escaped))
}

// CleanText returns s as a prompt may hold it: valid UTF-8 without NUL (U+FFFD replaces
// both), LF newlines, no byte order mark at the beginning.
func CleanText(s string) string { return text.Normalize(text.Repair(s)) }

// LongestPrefix returns the longest beginning of s that has at most the given bytes and characters; math.MaxInt does not
// limit. It may divide a grapheme, such as a letter and its accent: to show the result to people or models, use
// [CutText], [CutLine] or [Escaper.Cut].
func LongestPrefix(s string, bytes, chars int) string {
	if bytes <= 0 || chars <= 0 {
		return ""
	}
	if bytes < len(s) {
		for bytes > 0 && !utf8.RuneStart(s[bytes]) {
			bytes--
		}
		s = s[:bytes]
	}
	return s[:text.Offset(s, chars)]
}

// CutText returns the beginning of s with at most limit characters, as the host cuts a section: up to the last newline
// if that keeps at least half of the limit, otherwise up to the last grapheme boundary. If the first grapheme does
// not fit, the result is empty.
func CutText(s string, limit int) string { return text.Head(s, limit) }

// CutLine returns s as one line of at most limit characters and reports whether it shortened it. Runs of white space
// become one space and invalid UTF-8 becomes U+FFFD. A shortened line ends in "…": after the last word that fits if
// that keeps three quarters of the limit, otherwise at a grapheme boundary.
func CutLine(s string, limit int) (line string, cut bool) {
	s = strings.Join(strings.Fields(strings.ToValidUTF8(s, "\ufffd")), " ")
	if limit <= 0 {
		return "", s != ""
	}
	if text.Chars(s) <= limit {
		return s, false
	}
	end := text.Offset(s, limit-1)
	end = cmp.Or(text.ClusterEnd(s, end), end)
	line = s[:end]
	if !strings.HasPrefix(s[end:], " ") {
		if i := strings.LastIndexByte(line, ' '); 4*i >= 3*len(line) {
			line = line[:i]
		}
	}
	line = strings.TrimRightFunc(line, func(r rune) bool {
		return unicode.IsSpace(r) || strings.ContainsRune(",;:.(-–—…", r)
	})
	return line + "…", true
}

// OneLine returns s as one line of visible text: runs of white space become one space, invalid UTF-8 becomes U+FFFD,
// and characters without a shape are dropped, except the joiners and variation selectors that scripts and emoji need.
func OneLine(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r), unicode.IsControl(r):
			return ' '
		case !isJoiner(r) && isInvisible(r):
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "\ufffd"))
	return strings.Join(strings.Fields(s), " ")
}

const maxName = 512

// PlainName returns a path, an ID or another name for a line of a prompt, which it cannot break. Control characters,
// newlines, characters without a shape, invalid UTF-8 and any of < > [ ] " ` become \u{HEX}. In a name of more than
// 512 characters "…" replaces the middle, but never a part of an escape.
func PlainName(s string) string {
	units := make([]string, 0, len(s))
	total := 0
	for _, r := range s {
		unit := string(r)
		if r == utf8.RuneError || unicode.IsControl(r) || isInvisible(r) || strings.ContainsRune("<>[]\"`", r) {
			unit = fmt.Sprintf(`\u{%x}`, r)
		}
		units = append(units, unit)
		total += text.Chars(unit)
	}
	if total <= maxName {
		return strings.Join(units, "")
	}
	const half = (maxName - 1) / 2
	head, tail := 0, len(units)
	for n := half; n >= text.Chars(units[head]); head++ {
		n -= text.Chars(units[head])
	}
	for n := half; n >= text.Chars(units[tail-1]); tail-- {
		n -= text.Chars(units[tail-1])
	}
	return strings.Join(units[:head], "") + "…" + strings.Join(units[tail:], "")
}

// isJoiner reports whether some scripts and emoji need r, which has no shape.
func isJoiner(r rune) bool { return r == '\u200c' || r == '\u200d' || '\ufe00' <= r && r <= '\ufe0f' }

// isInvisible reports whether r is a format character, line separator, variation
// selector, filler or tag, or for private use.
func isInvisible(r rune) bool {
	return strings.ContainsRune("\u2028\u2029\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0", r) ||
		unicode.In(r, unicode.Cf, unicode.Co, unicode.Variation_Selector) || 0xe0000 <= r && r <= 0xe0fff
}
