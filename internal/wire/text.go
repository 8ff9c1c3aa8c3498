package wire

import (
	"bytes"
	"encoding/binary"
	"strconv"
	"strings"
	"unicode/utf8"
)

// textRule is what text on the wire must be. Both rules want UTF-8 without NUL.
type textRule uint8

const (
	ruleValid textRule = iota // for hosts, which pass on what people wrote
	// ruleClean is for plugins: also no character that reorders text (embeddings, overrides, isolates; not the marks
	// U+200E and U+200F, which ordinary text needs).
	ruleClean
)

const replacement = "\uFFFD"

func (r textRule) holds(s string) bool {
	return plain(s) || strings.IndexByte(s, 0) < 0 && utf8.ValidString(s) && (r != ruleClean || !reorders(s))
}

// plain reports whether s is ASCII without NUL, as most texts are.
func plain(s string) bool {
	const high = 0x8080808080808080
	rest, le := []byte(s), binary.LittleEndian // the bytes are not copied
	for len(rest) > 32 && (odd(le.Uint64(rest))|odd(le.Uint64(rest[8:]))|odd(le.Uint64(rest[16:]))|odd(le.Uint64(rest[24:])))&high == 0 {
		rest = rest[32:]
	}
	for len(rest) > 8 && odd(le.Uint64(rest))&high == 0 {
		rest = rest[8:]
	}
	for _, c := range rest {
		if c == 0 || c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// odd sets the high bit of a byte if one of the eight in w is NUL or beyond ASCII.
func odd(w uint64) uint64 { return w | (w - 0x0101010101010101) }

func (r textRule) broken(s string) string {
	switch {
	case !utf8.ValidString(s):
		return "not valid UTF-8"
	case strings.IndexByte(s, 0) >= 0:
		return "with a NUL"
	default:
		return "with a character that reorders text"
	}
}

// repaired replaces what breaks the rule by U+FFFD.
func (r textRule) repaired(s string) string {
	return strings.Map(func(c rune) rune {
		if c == 0 || r == ruleClean && reordering(c) {
			return utf8.RuneError
		}
		return c
	}, strings.ToValidUTF8(s, replacement))
}

// reorders reports whether s holds a reordering character. All of them begin with the byte 0xE2.
func reorders(s string) bool {
	for {
		i := strings.IndexByte(s, 0xE2)
		if i < 0 {
			return false
		}
		s = s[i:]
		if c, _ := utf8.DecodeRuneInString(s); reordering(c) {
			return true
		}
		s = s[1:]
	}
}

func reordering(c rune) bool { return c >= 0x202A && c <= 0x202E || c >= 0x2066 && c <= 0x2069 }

// holdsJSON checks embedded JSON, in its bytes and in its \uXXXX escapes. Lone surrogates break both rules.
func (r textRule) holdsJSON(raw []byte) bool {
	if bytes.IndexByte(raw, 0) >= 0 || !utf8.Valid(raw) {
		return false
	}
	if r == ruleClean && bytes.IndexByte(raw, 0xE2) >= 0 && reorders(string(raw)) {
		return false
	}
	return r.badEscape(raw, 0) < 0
}

func (r textRule) repairedJSON(raw []byte) []byte {
	out := []byte(r.repaired(string(raw)))
	for i := r.badEscape(out, 0); i >= 0; i = r.badEscape(out, i+escapeLen) {
		copy(out[i:], `\ufffd`)
	}
	return out
}

const escapeLen = 6

// badEscape returns the index of the first escape from there on that the rule does not allow, or -1.
func (r textRule) badEscape(raw []byte, from int) int {
	if !bytes.Contains(raw[from:], []byte(`\u`)) {
		return -1
	}
	for i := from; i < len(raw)-1; i++ {
		if raw[i] != '\\' {
			continue
		}
		c, ok := escape(raw[i:])
		if !ok {
			i++ // another escape; its second byte is no beginning
			continue
		}
		if c >= 0xD800 && c < 0xDC00 {
			if low, ok := escape(raw[i+escapeLen:]); ok && low >= 0xDC00 && low < 0xE000 {
				i += 2*escapeLen - 1
				continue
			}
		}
		if c == 0 || c >= 0xD800 && c < 0xE000 || r == ruleClean && reordering(c) {
			return i
		}
		i += escapeLen - 1
	}
	return -1
}

// escape decodes \uXXXX at the beginning of raw.
func escape(raw []byte) (rune, bool) {
	if len(raw) < escapeLen || raw[0] != '\\' || raw[1] != 'u' {
		return 0, false
	}
	c, err := strconv.ParseUint(string(raw[2:escapeLen]), 16, 16)
	return rune(c), err == nil
}
