// Package jsonscan reads JSON text without decoding it. It is stricter than encoding/json: it bounds the depth, and
// notes duplicate names, lone surrogates and NULs in strings.
//
// Start at [Check] for text that has to be valid, and at [Scanner] to walk through
// it. Neither recurses deeper than the given depth.
//
// Stability: internal.
package jsonscan

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"unicode/utf16"
	"unicode/utf8"
)

// ErrTooDeep says that JSON is nested deeper than the limit.
var ErrTooDeep = errors.New("nested too deeply")

// Check returns an error unless raw is one JSON value in UTF-8, without NUL,
// nested at most depth deep. It accepts duplicate names and lone surrogates.
func Check(raw []byte, depth int) error {
	if Depth(raw) > depth {
		return fmt.Errorf("is JSON nested deeper than %d", depth)
	}
	if !json.Valid(raw) {
		return errors.New("is not valid JSON")
	}
	if !utf8.Valid(raw) {
		return errors.New("is not valid UTF-8")
	}
	for i := bytes.IndexByte(raw, '\\'); i >= 0 && i < len(raw); i++ {
		if raw[i] != '\\' {
			continue
		}
		if bytes.HasPrefix(raw[i:], []byte(`\u0000`)) {
			return errors.New("holds a NUL")
		}
		i++ // the escaped byte
	}
	return nil
}

// Decode decodes one JSON value and refuses unknown fields, with the nearest known name in the error, and anything
// behind the value.
func Decode(data []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return unknownField(err, into)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is more than one JSON value")
	}
	return nil
}

// Depth returns the deepest nesting of arrays and objects: 0 for a scalar. For text
// that is not JSON it is an upper bound of how deep a parser could get.
func Depth(raw []byte) int {
	depth, deepest := 0, 0
	for i := 0; i < len(raw); i++ {
		switch raw[i] {
		case '"':
			for i++; i < len(raw) && raw[i] != '"'; i++ {
				if raw[i] == '\\' {
					i++
				}
			}
		case '{', '[':
			depth++
			deepest = max(deepest, depth)
		case '}', ']':
			depth = max(depth-1, 0)
		}
	}
	return deepest
}

// Scanner is a place in a JSON text, which must be valid UTF-8. Its methods move
// Pos past what they accept. Work and memory are in proportion to the text.
type Scanner struct {
	Text []byte
	Pos  int
	// MaxDepth bounds how deep values may be nested.
	MaxDepth int
	// Flaw is the first duplicate name, lone surrogate or NUL since it was cleared.
	Flaw error
	// Repeated is the first duplicate name, with its line.
	Repeated error
}

func (s *Scanner) syntax(want string) error {
	if s.Pos >= len(s.Text) {
		return fmt.Errorf("the text ends at byte %d where %s should be", s.Pos, want)
	}
	return fmt.Errorf("%q at byte %d where %s should be", rune(s.Text[s.Pos]), s.Pos, want)
}

func (s *Scanner) notef(format string, args ...any) {
	if s.Flaw == nil {
		s.Flaw = fmt.Errorf(format, args...)
	}
}

// Next skips blanks and returns the byte behind them, 0 at the end.
func (s *Scanner) Next() byte {
	for ; s.Pos < len(s.Text); s.Pos++ {
		switch s.Text[s.Pos] {
		case ' ', '\t', '\n', '\r':
		default:
			return s.Text[s.Pos]
		}
	}
	return 0
}

// End refuses anything behind the value.
func (s *Scanner) End() error {
	if s.Next(); s.Pos < len(s.Text) {
		return s.syntax("the end")
	}
	return nil
}

// Value skips one value that lies depth levels deep.
func (s *Scanner) Value(depth int) error {
	switch c := s.Next(); {
	case c == '{':
		return s.object(depth, func(string) (reflect.Type, error) { return nil, nil }) //nolint:nilnil // any type
	case c == '[':
		return s.Elements(depth, func() error { return s.Value(depth + 1) })
	case c == '"':
		return s.String()
	case c == '-' || c >= '0' && c <= '9':
		return s.Number()
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
func (s *Scanner) open(depth int, closing byte) (empty bool, err error) {
	if depth >= s.MaxDepth {
		return false, ErrTooDeep
	}
	s.Pos++
	if s.Next() == closing {
		s.Pos++
		return true, nil
	}
	return false, nil
}

// more skips a comma or the closing bracket, and reports whether it was a comma.
func (s *Scanner) more(closing byte) (bool, error) {
	switch s.Next() {
	case ',':
		s.Pos++
		return true, nil
	case closing:
		s.Pos++
		return false, nil
	default:
		return false, s.syntax("',' or '" + string(closing) + "'")
	}
}

// Elements skips an array. It calls each in front of every element; each skips it.
func (s *Scanner) Elements(depth int, each func() error) error {
	empty, err := s.open(depth, ']')
	for more := !empty; err == nil && more; {
		if err = each(); err == nil {
			more, err = s.more(']')
		}
	}
	return err
}

// Members skips an object. It calls each in front of every value; each skips it. The quoted name is Text[from:to].
func (s *Scanner) Members(depth int, each func(from, to int) error) error {
	empty, err := s.open(depth, '}')
	for more := !empty; err == nil && more; {
		if s.Next() != '"' {
			return s.syntax("a name")
		}
		start := s.Pos
		if err := s.String(); err != nil {
			return err
		}
		end := s.Pos
		if s.Next() != ':' {
			return s.syntax("':'")
		}
		s.Pos++
		s.Next()
		if err = each(start, end); err == nil {
			more, err = s.more('}')
		}
	}
	return err
}

// String skips a string.
func (s *Scanner) String() error {
	for s.Pos++; s.Pos < len(s.Text); s.Pos++ {
		switch c := s.Text[s.Pos]; {
		case c == '"':
			s.Pos++
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
func (s *Scanner) escape() error {
	s.Pos++
	if s.Pos >= len(s.Text) {
		return s.syntax("an escape")
	}
	switch s.Text[s.Pos] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return nil
	case 'u':
	default:
		return s.syntax("an escape")
	}
	r, ok := s.hex4(s.Pos + 1)
	if !ok {
		s.Pos++
		return s.syntax("four hexadecimal digits")
	}
	at := s.Pos - 1
	s.Pos += 4
	switch {
	case r == 0:
		s.notef("a NUL character at byte %d", at)
	case utf16.IsSurrogate(r):
		if !s.lowSurrogate(r) {
			s.notef("a lone surrogate at byte %d: it is half of a character", at)
			return nil
		}
		s.Pos += 6
	}
	return nil
}

// lowSurrogate reports whether an escape follows that completes the surrogate r.
func (s *Scanner) lowSurrogate(r rune) bool {
	if s.Pos+2 >= len(s.Text) || s.Text[s.Pos+1] != '\\' || s.Text[s.Pos+2] != 'u' {
		return false
	}
	low, ok := s.hex4(s.Pos + 3)
	return ok && utf16.DecodeRune(r, low) != '\ufffd'
}

func (s *Scanner) hex4(at int) (r rune, ok bool) {
	var b [2]byte
	if at+4 > len(s.Text) {
		return 0, false
	}
	_, err := hex.Decode(b[:], s.Text[at:at+4])
	return rune(b[0])<<8 | rune(b[1]), err == nil
}

// Number skips a number.
func (s *Scanner) Number() error {
	if s.Text[s.Pos] == '-' {
		s.Pos++
	}
	if s.Pos < len(s.Text) && s.Text[s.Pos] == '0' {
		s.Pos++
	} else if !s.digits() {
		return s.syntax("a digit")
	}
	if s.Pos < len(s.Text) && s.Text[s.Pos] == '.' {
		s.Pos++
		if !s.digits() {
			return s.syntax("a digit")
		}
	}
	if s.Pos >= len(s.Text) || s.Text[s.Pos]|0x20 != 'e' {
		return nil
	}
	s.Pos++
	if s.Pos < len(s.Text) && (s.Text[s.Pos] == '+' || s.Text[s.Pos] == '-') {
		s.Pos++
	}
	if !s.digits() {
		return s.syntax("a digit")
	}
	return nil
}

func (s *Scanner) digits() bool {
	start := s.Pos
	for s.Pos < len(s.Text) && s.Text[s.Pos] >= '0' && s.Text[s.Pos] <= '9' {
		s.Pos++
	}
	return s.Pos > start
}

func (s *Scanner) word(word string) error {
	if end := s.Pos + len(word); end <= len(s.Text) && string(s.Text[s.Pos:end]) == word {
		s.Pos = end
		return nil
	}
	return s.syntax("a value")
}

// Unquote returns the text of a string that was scanned.
func Unquote(quoted []byte) string {
	if isPlain(quoted) {
		return string(quoted[1 : len(quoted)-1])
	}
	var text string
	_ = json.Unmarshal(quoted, &text) // the scanner has accepted it
	return text
}

func isPlain(quoted []byte) bool { return bytes.IndexByte(quoted, '\\') < 0 }

const fewNames = 32 // how many names are compared one by one before a map is made

// Names is the set of names of one object. The zero value is empty.
type Names struct {
	few  [fewNames][]byte // quoted, as they stand in the text, without escapes
	n    int
	many map[string]struct{} // unquoted; nil while there are few
}

// Add adds a quoted name and reports whether it is new.
func (s *Names) Add(quoted []byte) bool {
	if s.many == nil && isPlain(quoted) && s.n < fewNames {
		for _, name := range s.few[:s.n] {
			if bytes.Equal(name, quoted) {
				return false
			}
		}
		s.few[s.n] = quoted
		s.n++
		return true
	}
	if s.many == nil { // many names, or two may be written differently
		s.many = make(map[string]struct{}, 2*fewNames)
		for _, name := range s.few[:s.n] {
			s.many[Unquote(name)] = struct{}{}
		}
	}
	before := len(s.many)
	s.many[Unquote(quoted)] = struct{}{}
	return len(s.many) > before
}
