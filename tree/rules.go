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
	// MaxChars is how long a document may be, in Unicode scalar values.
	MaxChars = 65_536
	// MaxName is how long a name or title may be, in Unicode scalar values.
	MaxName = 256
	// MaxID is how long an id may be, in bytes.
	MaxID = 64
	// MaxDepth is how deep folders may lie: one at the root has the depth 1.
	MaxDepth = 64
	// MaxMove is how many folders may lie below one that is moved: how deep they go has
	// to be known while nobody else changes the tree.
	MaxMove = 10_000
	// DamagedDepth is where walks up a tree stop: only a damaged one is so deep.
	DamagedDepth = 256
)

// Normalize returns a text as it is kept: without one byte order mark, with LF at
// the ends of its lines. The codes of its errors are CodeInvalid for what is no
// text, and CodeTooLarge.
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

// StatusOf is the state of a live document with a normalised text.
func StatusOf(content string) Status {
	if strings.TrimSpace(content) == "" {
		return Draft
	}
	return Active
}

// Sum is the hash of a text as documents carry it.
func Sum(content string) string {
	sum := sha256.Sum256([]byte(content))
	return hex.EncodeToString(sum[:])
}

// CheckID refuses what is no id: 1 to MaxID of A-Z, a-z, 0-9, '.', '_' and '-'.
// What names the parameter in the message.
func CheckID(what, id string) error {
	if id == "" || len(id) > MaxID {
		return Errorf(CodeInvalid, "%s: an id has 1 to %d characters, this one %d", what, MaxID, len(id))
	}
	for _, c := range []byte(id) {
		letter := c|0x20 >= 'a' && c|0x20 <= 'z'
		if digit := c >= '0' && c <= '9'; !letter && !digit && c != '.' && c != '_' && c != '-' {
			return Errorf(CodeInvalid, "%s: an id is made of A-Z, a-z, 0-9, '.', '_' and '-', not %q", what, c)
		}
	}
	return nil
}

// CheckName refuses what is no name of a workspace or folder and no title of a
// thread: blank, longer than MaxName, or with characters that are not shown.
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
