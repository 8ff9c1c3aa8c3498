package text

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Chars returns the number of characters in s. A byte that is not part of valid UTF-8 counts as one.
func Chars(s string) int {
	n := asciiPrefix(s)
	return n + utf8.RuneCountInString(s[n:])
}

// Thousands prints n in decimal with a comma between groups of three digits.
func Thousands(n int) string {
	digits := strconv.Itoa(n)
	for i := len(digits) - 3; i > 0 && digits[i-1] != '-'; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// each and high are 1, and the highest bit, in each byte of a word.
const each, high = 0x0101010101010101, 0x8080808080808080

// asciiPrefix returns how many bytes at the beginning of s are certainly ASCII, in steps of eight.
func asciiPrefix(s string) int {
	rest, le := []byte(s), binary.LittleEndian // the bytes are not copied
	for len(rest) >= 32 && (le.Uint64(rest)|le.Uint64(rest[8:])|le.Uint64(rest[16:])|le.Uint64(rest[24:]))&high == 0 {
		rest = rest[32:]
	}
	for len(rest) >= 8 && le.Uint64(rest)&high == 0 {
		rest = rest[8:]
	}
	return len(s) - len(rest)
}

// Offset returns the byte at which character n of s begins, counting from 0, or len(s).
func Offset(s string, n int) int {
	if n <= 0 {
		return 0
	}
	if len(s) <= n {
		return len(s)
	}
	i := asciiPrefix(s[:n])
	for n -= i; n > 0 && i < len(s); n-- {
		_, size := utf8.DecodeRuneInString(s[i:])
		i += size
	}
	return i
}

// Normalize returns s with LF newlines (CRLF and lone CR become LF) and without one leading byte order mark.
func Normalize(s string) string {
	s = strings.TrimPrefix(s, "\ufeff")
	if strings.IndexByte(s, '\r') < 0 {
		return s
	}
	return strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\r", "\n")
}

// Valid returns an error unless s is UTF-8 without NUL. It names the first byte that is wrong.
func Valid(s string) error {
	if utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 {
		return nil
	}
	for i, r := range s {
		if r == 0 {
			return fmt.Errorf("text has a NUL character at byte %d", i)
		}
		if r == utf8.RuneError && !strings.HasPrefix(s[i:], "\ufffd") {
			return fmt.Errorf("text is not valid UTF-8 at byte %d", i)
		}
	}
	return nil
}

// Repair returns s as UTF-8 without NUL: U+FFFD stands for each NUL and for each run of bytes that is not UTF-8.
func Repair(s string) string {
	if Valid(s) == nil {
		return s
	}
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\ufffd"), "\x00", "\ufffd")
}
