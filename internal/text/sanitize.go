package text

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/grapnelhq/grapnel/internal/text/lazyregexp"
)

// maxSequence bounds a terminal's escape sequence, in bytes. Longer ones are shown.
const maxSequence = 256

// Sanitize makes foreign text fit for one line of a log, a diagnostic or a terminal. It drops escape sequences of
// terminals, and shows other characters that are not printable as \u{…} with their hex number. Bytes that are not
// UTF-8 become U+FFFD. The result has at most limit characters; if it was cut it ends with an ellipsis. Clean text
// comes back as it is.
func Sanitize(s string, limit int) string {
	if limit <= 0 {
		return ""
	}
	if isClean(s) && (len(s) <= limit || Chars(s) <= limit) {
		return s
	}
	var out strings.Builder
	used := 0 // characters in out
	keep := 0 // bytes of out that leave space for an ellipsis
	for s != "" {
		if s[0] == 0x1b {
			if n := len(escapeSequence().FindString(s[:min(len(s), maxSequence)])); n > 0 {
				s = s[n:]
				continue
			}
		}
		r, size := utf8.DecodeRuneInString(s)
		s = s[size:]
		shown := string(r)
		if !strconv.IsPrint(r) {
			shown = fmt.Sprintf(`\u{%x}`, r)
		}
		if used += Chars(shown); used > limit {
			return out.String()[:keep] + "…"
		}
		out.WriteString(shown)
		if used < limit {
			keep = out.Len()
		}
	}
	return out.String()
}

func isClean(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return !strconv.IsPrint(r) })
}

// escapeSequence (ECMA-48) is a control sequence, a string up to BEL or ESC \, or another escape.
var escapeSequence = lazyregexp.New(
	`^\x1b(?:\[[ -?]*[@-~]|[\]PX^_][^\x07\x1b\n]*(?:\x07|\x1b\\)|[ -/]+[0-~]|[0-OQ-WYZ\\\x60-~])`)
