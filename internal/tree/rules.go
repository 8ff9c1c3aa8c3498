package tree

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits.
const (
	maxID = 64 // bytes
	// MaxChars is how long a document may be, in Unicode scalar values.
	MaxChars = 65_536
	// MaxName is how long a name or title may be, in Unicode scalar values.
	MaxName = 256
	// MaxDepth is how deep folders may lie; one at the root has the depth 1.
	MaxDepth = 64
)

// Normalize returns a text as it is kept: without a byte order mark, and with LF as line ends.
// Its errors have the code CodeInvalid (not a text) or CodeTooLarge.
func Normalize(content string) (string, error) {
	if !utf8.ValidString(content) {
		return "", Errorf(CodeInvalid, "content: not valid UTF-8")
	}
	if at := strings.IndexByte(content, 0); at >= 0 {
		return "", Errorf(CodeInvalid, "content: a NUL character at byte %d", at)
	}
	content = strings.TrimPrefix(content, "\ufeff")
	content = strings.ReplaceAll(content, "\r\n", "\n")
	content = strings.ReplaceAll(content, "\r", "\n")
	if n := Chars(content); n > MaxChars {
		return "", Errorf(CodeTooLarge, "content: %d characters, at most %d are kept", n, MaxChars)
	}
	return content, nil
}

// Chars is the length of a text in Unicode scalar values.
func Chars(content string) int { return utf8.RuneCountInString(content) }

// StatusOf is the status of a live document with a normalized text.
func StatusOf(content string) Status {
	if strings.TrimSpace(content) == "" {
		return Draft
	}
	return Active
}

// Sum is the hash of a text in documents.
func Sum(content string) string {
	sum := sha256.Sum256([]byte(content))
	return hex.EncodeToString(sum[:])
}

// CheckID refuses ids that are not 1 to 64 of A-Z, a-z, 0-9, '.', '_' and '-', and those that mean
// another place in an address, "." and "..". The message names the parameter as what.
func CheckID(what, id string) error {
	if id == "" || len(id) > maxID {
		return Errorf(CodeInvalid, "%s: an id has 1 to %d characters, this one %d", what, maxID, len(id))
	}
	if id == "." || id == ".." {
		return Errorf(CodeInvalid, "%s: %q stands for another place in an address: take another id", what, id)
	}
	for _, c := range []byte(id) {
		letter := c|0x20 >= 'a' && c|0x20 <= 'z'
		if digit := c >= '0' && c <= '9'; !letter && !digit && c != '.' && c != '_' && c != '-' {
			return Errorf(CodeInvalid, "%s: an id is made of A-Z, a-z, 0-9, '.', '_' and '-', not %q", what, c)
		}
	}
	return nil
}

// CheckName refuses names and titles that are blank, longer than MaxName, or have control
// characters. The message names the parameter as what.
func CheckName(what, name string) error {
	switch {
	case !utf8.ValidString(name):
		return Errorf(CodeInvalid, "%s: not valid UTF-8", what)
	case strings.TrimSpace(name) == "":
		return Errorf(CodeInvalid, "%s: it is blank", what)
	case Chars(name) > MaxName:
		return Errorf(CodeInvalid, "%s: %d characters, at most %d are allowed", what, Chars(name), MaxName)
	}
	for _, r := range name {
		if unicode.IsControl(r) || r == '\u2028' || r == '\u2029' {
			return Errorf(CodeInvalid, "%s: it has the control character %U", what, r)
		}
	}
	return nil
}
