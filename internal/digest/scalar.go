package digest

import (
	"cmp"
	"errors"
	"math"
	"math/bits"
	"strconv"
	"unicode/utf8"
)

// Errors of values that canonical JSON has no form for. They arrive wrapped,
// with the path of the value in front.
var (
	// ErrInvalidUTF8 says that a string is not UTF-8.
	ErrInvalidUTF8 = errors.New("string is not valid UTF-8")
	// ErrNotFinite says that a number is NaN or infinite.
	ErrNotFinite = errors.New("number is not finite")
	// ErrTooDeep says that a value nests deeper than the limit, which is also
	// how a value that contains itself is noticed.
	ErrTooDeep = errors.New("value is nested too deeply")
)

// Masks for looking at eight bytes of a string at once: every byte 0x01, and
// the high bit of every byte.
const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// plainLen returns the length of the longest prefix of s that JSON text takes
// as it is: up to the first control character, quote or backslash. Bytes above
// 0x7f are plain; whether they are UTF-8 is a separate question.
func plainLen[T string | []byte](s T) int {
	i := 0
	for ; i+8 <= len(s); i += 8 {
		w := uint64(s[i]) | uint64(s[i+1])<<8 | uint64(s[i+2])<<16 | uint64(s[i+3])<<24 |
			uint64(s[i+4])<<32 | uint64(s[i+5])<<40 | uint64(s[i+6])<<48 | uint64(s[i+7])<<56
		// The classic zero-byte test. A borrow can flag bytes above a true
		// hit, never below one, so the lowest flag is right.
		quote, slash := w^(ones*'"'), w^(ones*'\\')
		hit := (w-ones*' ')&^w | (quote-ones)&^quote | (slash-ones)&^slash
		if hit &= highs; hit != 0 {
			return i + bits.TrailingZeros64(hit)/8
		}
	}
	for i < len(s) && s[i] >= ' ' && s[i] != '"' && s[i] != '\\' {
		i++
	}
	return i
}

// appendString appends s as a canonical JSON string.
func appendString[T string | []byte](dst []byte, s T) ([]byte, error) {
	if !validUTF8(s) {
		return dst, ErrInvalidUTF8
	}
	dst = append(dst, '"')
	// Runs of plain bytes are copied whole; most strings are one run.
	for {
		n := plainLen(s)
		dst = append(dst, s[:n]...)
		if n == len(s) {
			return append(dst, '"'), nil
		}
		dst = appendEscape(dst, s[n])
		s = s[n+1:]
	}
}

// validUTF8 exists because the two library functions cannot be called through
// a type parameter.
func validUTF8[T string | []byte](s T) bool {
	switch s := any(s).(type) {
	case string:
		return utf8.ValidString(s)
	case []byte:
		return utf8.Valid(s)
	default:
		return false
	}
}

// appendEscape appends the only escape that RFC 8785 section 3.2.2.2 allows
// for c, which is a quote, a backslash or a control character.
func appendEscape(dst []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\b':
		return append(dst, `\b`...)
	case '\f':
		return append(dst, `\f`...)
	case '\n':
		return append(dst, `\n`...)
	case '\r':
		return append(dst, `\r`...)
	case '\t':
		return append(dst, `\t`...)
	default:
		const digits = "0123456789abcdef"
		return append(dst, '\\', 'u', '0', '0', digits[c>>4], digits[c&0xf])
	}
}

// maxExact is the largest integer below which every integer is a double.
const maxExact = 1 << 53

// appendInt appends n, rounded to a double beyond 2^53.
func appendInt(dst []byte, n int64) []byte {
	if n > maxExact || n < -maxExact {
		return appendFinite(dst, float64(n))
	}
	return strconv.AppendInt(dst, n, 10)
}

// appendUint appends n, rounded to a double beyond 2^53.
func appendUint(dst []byte, n uint64) []byte {
	if n > maxExact {
		return appendFinite(dst, float64(n))
	}
	return strconv.AppendUint(dst, n, 10)
}

// appendFloat appends f as ECMAScript prints it.
func appendFloat(dst []byte, f float64) ([]byte, error) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return dst, ErrNotFinite
	}
	return appendFinite(dst, f), nil
}

// appendFloat32 appends f with the digits that suffice for 32 bits, which is
// how encoding/json reads a float32: 0.1 and not 0.10000000149011612.
func appendFloat32(dst []byte, f float64) ([]byte, error) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return dst, ErrNotFinite
	}
	var buf [32]byte
	short := strconv.AppendFloat(buf[:0], f, 'g', -1, 32)
	wide, err := strconv.ParseFloat(string(short), 64)
	if err != nil {
		return dst, err
	}
	return appendFinite(dst, wide), nil
}

// appendFinite is Number.prototype.toString of ECMAScript for a finite f:
// shortest digits, exponents only outside [1e-6, 1e21) and without a leading
// zero, no negative zero.
func appendFinite(dst []byte, f float64) []byte {
	if f == 0 {
		return append(dst, '0')
	}
	if abs := math.Abs(f); abs >= 1e-6 && abs < 1e21 {
		return strconv.AppendFloat(dst, f, 'f', -1, 64)
	}
	dst = strconv.AppendFloat(dst, f, 'e', -1, 64)
	// Go pads the exponent to two digits: 1e-07 becomes 1e-7.
	if n := len(dst); dst[n-2] == '0' && (dst[n-3] == '-' || dst[n-3] == '+') {
		dst[n-2] = dst[n-1]
		dst = dst[:n-1]
	}
	return dst
}

// compareUTF16 orders valid UTF-8 by UTF-16 code units, as RFC 8785 section
// 3.2.3 sorts members. That is byte order but for one case: characters beyond
// the basic plane (lead byte 0xf0 and up) are surrogates in UTF-16 and so come
// before U+E000 to U+FFFF (lead bytes 0xee and 0xef).
func compareUTF16[T string | []byte](a, b T) int {
	n := min(len(a), len(b))
	for i := range n {
		x, y := a[i], b[i]
		if x == y {
			continue
		}
		if x >= 0xee && y >= 0xee && (x >= 0xf0) != (y >= 0xf0) {
			return cmp.Compare(y, x)
		}
		return cmp.Compare(x, y)
	}
	return cmp.Compare(len(a), len(b))
}
