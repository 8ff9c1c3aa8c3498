package rpc

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf16"
)

// maxScan is a depth that no text reaches that was scanned before: a second scan
// need not count again.
const maxScan = 1 << 20

// errDeep is JSON that is nested deeper than the limit.
var errDeep = errors.New("nested too deeply")

// scanner reads JSON once, without decoding it, and is stricter than encoding/json:
// it counts depth, and notes what that package lets pass or repairs in silence,
// which are duplicate names, lone surrogates and NULs in strings.
//
// The text must be valid UTF-8. Work and memory are in proportion to the text: 16
// bytes a name where an object has few of them, a set of strings where it has many.
type scanner struct {
	text []byte
	pos  int
	max  int // how deep values may be nested
	// flaw is the first thing noted since it was last cleared; nil for none.
	flaw error
}

// syntax is the error for what is no JSON at the current place.
func (s *scanner) syntax(want string) error {
	if s.pos >= len(s.text) {
		return fmt.Errorf("the text ends at byte %d where %s should be", s.pos, want)
	}
	return fmt.Errorf("%q at byte %d where %s should be", rune(s.text[s.pos]), s.pos, want)
}

// notef keeps the first flaw.
func (s *scanner) notef(format string, args ...any) {
	if s.flaw == nil {
		s.flaw = fmt.Errorf(format, args...)
	}
}

// space skips blanks and returns the byte behind them, 0 at the end.
func (s *scanner) space() byte {
	for ; s.pos < len(s.text); s.pos++ {
		switch s.text[s.pos] {
		case ' ', '\t', '\n', '\r':
		default:
			return s.text[s.pos]
		}
	}
	return 0
}

// end refuses anything behind the value.
func (s *scanner) end() error {
	if s.space(); s.pos < len(s.text) {
		return s.syntax("the end")
	}
	return nil
}

// value skips one value that lies depth levels deep.
func (s *scanner) value(depth int) error {
	switch c := s.space(); {
	case c == '{':
		return s.members(depth, nil)
	case c == '[':
		return s.elements(depth, nil)
	case c == '"':
		return s.str()
	case c == '-' || c >= '0' && c <= '9':
		return s.number()
	case c == 't':
		return s.word("true")
	case c == 'f':
		return s.word("false")
	case c == 'n':
		return s.word("null")
	default:
		return s.syntax("a value")
	}
}

// open skips an opening bracket, and reports whether the closing one follows.
func (s *scanner) open(depth int, closing byte) (empty bool, err error) {
	if depth >= s.max {
		return false, errDeep
	}
	s.pos++
	if s.space() == closing {
		s.pos++
		return true, nil
	}
	return false, nil
}

// more skips a comma or the closing bracket, and reports whether it was a comma.
func (s *scanner) more(closing byte) (bool, error) {
	switch s.space() {
	case ',':
		s.pos++
		return true, nil
	case closing:
		s.pos++
		return false, nil
	default:
		return false, s.syntax("',' or '" + string(closing) + "'")
	}
}

// elements skips an array. It calls each, if not nil, in front of every element,
// which then skips it.
func (s *scanner) elements(depth int, each func() error) error {
	empty, err := s.open(depth, ']')
	for more := !empty; err == nil && more; {
		if each != nil {
			err = each()
		} else {
			err = s.value(depth + 1)
		}
		if err == nil {
			more, err = s.more(']')
		}
	}
	return err
}

// member is one member of an object that was just scanned.
type member struct {
	name  string
	value json.RawMessage
	// twice says that an earlier member has the same name.
	twice bool
	// flaw is the first flaw in the name or the value.
	flaw error
}

// members skips an object. It notes duplicate names, or, if each is not nil, calls
// it behind every member.
func (s *scanner) members(depth int, each func(member) error) error {
	var seen nameSet
	empty, err := s.open(depth, '}')
	for more := !empty; err == nil && more; {
		if err = s.member(depth, &seen, each); err == nil {
			more, err = s.more('}')
		}
	}
	return err
}

// member skips one member.
func (s *scanner) member(depth int, seen *nameSet, each func(member) error) error {
	if each != nil {
		s.flaw = nil
	}
	if s.space() != '"' {
		return s.syntax("a name")
	}
	start := s.pos
	if err := s.str(); err != nil {
		return err
	}
	name := s.text[start:s.pos]
	twice := !seen.add(name)
	if s.space() != ':' {
		return s.syntax("':'")
	}
	s.pos++
	s.space()
	from := s.pos
	if err := s.value(depth + 1); err != nil {
		return err
	}
	if each != nil {
		return each(member{unquote(name), s.text[from:s.pos], twice, s.flaw})
	}
	if twice {
		s.notef("the name %s is there twice", clip(string(name)))
	}
	return nil
}

// str skips a string.
func (s *scanner) str() error {
	for s.pos++; s.pos < len(s.text); s.pos++ {
		switch c := s.text[s.pos]; {
		case c == '"':
			s.pos++
			return nil
		case c < ' ':
			return s.syntax("a character that strings may hold as it is")
		case c == '\\':
			if err := s.escape(); err != nil {
				return err
			}
		}
	}
	return s.syntax("'\"'")
}

// escape skips an escape, up to its last byte.
func (s *scanner) escape() error {
	s.pos++
	if s.pos >= len(s.text) {
		return s.syntax("an escape")
	}
	switch s.text[s.pos] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return nil
	case 'u':
	default:
		return s.syntax("an escape")
	}
	r, ok := s.hex4(s.pos + 1)
	if !ok {
		s.pos++
		return s.syntax("four hexadecimal digits")
	}
	at := s.pos - 1
	s.pos += 4
	switch {
	case r == 0:
		s.notef("a NUL character at byte %d", at)
	case utf16.IsSurrogate(r):
		if !s.lowSurrogate(r) {
			s.notef("a lone surrogate at byte %d: it is half of a character", at)
			return nil
		}
		s.pos += 6
	}
	return nil
}

// lowSurrogate reports whether an escape follows that makes a character together
// with r.
func (s *scanner) lowSurrogate(r rune) bool {
	if s.pos+2 >= len(s.text) || s.text[s.pos+1] != '\\' || s.text[s.pos+2] != 'u' {
		return false
	}
	low, ok := s.hex4(s.pos + 3)
	return ok && utf16.DecodeRune(r, low) != '\ufffd'
}

// hex4 reads four hexadecimal digits.
func (s *scanner) hex4(at int) (r rune, ok bool) {
	if at+4 > len(s.text) {
		return 0, false
	}
	for _, c := range s.text[at : at+4] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

// number skips a number.
func (s *scanner) number() error {
	if s.text[s.pos] == '-' {
		s.pos++
	}
	if s.pos < len(s.text) && s.text[s.pos] == '0' {
		s.pos++
	} else if !s.digits() {
		return s.syntax("a digit")
	}
	if s.pos < len(s.text) && s.text[s.pos] == '.' {
		s.pos++
		if !s.digits() {
			return s.syntax("a digit")
		}
	}
	if s.pos >= len(s.text) || s.text[s.pos]|0x20 != 'e' {
		return nil
	}
	s.pos++
	if s.pos < len(s.text) && (s.text[s.pos] == '+' || s.text[s.pos] == '-') {
		s.pos++
	}
	if !s.digits() {
		return s.syntax("a digit")
	}
	return nil
}

// digits skips digits, and reports whether there were any.
func (s *scanner) digits() bool {
	start := s.pos
	for s.pos < len(s.text) && s.text[s.pos] >= '0' && s.text[s.pos] <= '9' {
		s.pos++
	}
	return s.pos > start
}

// word skips true, false or null.
func (s *scanner) word(word string) error {
	if end := s.pos + len(word); end <= len(s.text) && string(s.text[s.pos:end]) == word {
		s.pos = end
		return nil
	}
	return s.syntax("a value")
}

// unquote is the text of a scanned string.
func unquote(quoted []byte) string {
	var text string
	if plain(quoted) {
		return string(quoted[1 : len(quoted)-1])
	}
	// The scanner has accepted the string, which is all that could fail here.
	if err := json.Unmarshal(quoted, &text); err != nil {
		return ""
	}
	return text
}

// plain reports whether a string has no escapes.
func plain(quoted []byte) bool { return bytes.IndexByte(quoted, '\\') < 0 }
