package text

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

const byteOrderMark = "\ufeff"

// Normalize returns s with LF newlines (CRLF and lone CR become LF) and
// without one leading byte order mark. It changes nothing else and costs no
// allocation when there is no CR.
func Normalize(s string) string {
	s = strings.TrimPrefix(s, byteOrderMark)
	i := strings.IndexByte(s, '\r')
	if i < 0 {
		return s
	}
	var out strings.Builder
	out.Grow(len(s))
	for ; i >= 0; i = strings.IndexByte(s, '\r') {
		out.WriteString(s[:i])
		out.WriteByte('\n')
		s = s[i+1:]
		s = strings.TrimPrefix(s, "\n")
	}
	out.WriteString(s)
	return out.String()
}

// InvalidError says why a text cannot go into a prompt, and where.
type InvalidError struct {
	// Offset is the byte at which the trouble begins, counting from 0.
	Offset int
	// NUL tells a NUL character from bytes that are not UTF-8.
	NUL bool
}

// Error names the cause and the byte.
func (e *InvalidError) Error() string {
	if e.NUL {
		return fmt.Sprintf("text has a NUL character at byte %d", e.Offset)
	}
	return fmt.Sprintf("text is not valid UTF-8 at byte %d", e.Offset)
}

// Valid returns nil for UTF-8 without NUL, else an [*InvalidError] for the
// first byte that is wrong.
func Valid(s string) error {
	nul := strings.IndexByte(s, 0)
	if utf8.ValidString(s) {
		if nul < 0 {
			return nil
		}
		return &InvalidError{Offset: nul, NUL: true}
	}
	bad := firstInvalid(s)
	if nul >= 0 && nul < bad {
		return &InvalidError{Offset: nul, NUL: true}
	}
	return &InvalidError{Offset: bad}
}

// Repair returns s as UTF-8 without NUL: U+FFFD stands for each NUL and for
// each run of bytes that is not UTF-8. Valid text comes back as it is.
func Repair(s string) string {
	if Valid(s) == nil {
		return s
	}
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\ufffd"), "\x00", "\ufffd")
}

// firstInvalid returns the offset of the first byte that is not UTF-8; s is
// known to have one.
func firstInvalid(s string) int {
	for i := asciiPrefix(s); i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && size == 1 {
			return i
		}
		i += size
	}
	return len(s)
}
