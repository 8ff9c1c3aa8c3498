package text

import (
	"strconv"
	"unicode/utf8"
)

// Chars returns the number of Unicode scalar values in s. A byte that is not
// part of valid UTF-8 counts as one, as everywhere in Go.
func Chars(s string) int {
	n := asciiPrefix(s)
	return n + utf8.RuneCountInString(s[n:])
}

// Thousands prints n in decimal with a comma between groups of three digits.
func Thousands(n int) string {
	digits := strconv.Itoa(n)
	first := 0 // where the digits begin
	if n < 0 {
		first = 1
	}
	out := make([]byte, 0, len(digits)+len(digits)/3)
	for i := range len(digits) {
		if left := len(digits) - i; i > first && left%3 == 0 {
			out = append(out, ',')
		}
		out = append(out, digits[i])
	}
	return string(out)
}

// asciiPrefix returns how many bytes at the beginning of s are certainly
// ASCII, looking at eight at a time.
func asciiPrefix(s string) int {
	i := 0
	for ; i+8 <= len(s); i += 8 {
		w := uint64(s[i]) | uint64(s[i+1])<<8 | uint64(s[i+2])<<16 | uint64(s[i+3])<<24 |
			uint64(s[i+4])<<32 | uint64(s[i+5])<<40 | uint64(s[i+6])<<48 | uint64(s[i+7])<<56
		if w&0x8080808080808080 != 0 {
			break
		}
	}
	return i
}

// offset returns the byte at which character n of s begins (counting from 0),
// or len(s) when s has no more than n characters.
func offset(s string, n int) int {
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
