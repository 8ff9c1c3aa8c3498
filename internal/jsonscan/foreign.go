package jsonscan

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// deepest bounds the JSON of other programs, as encoding/json does.
const deepest = 10_000

// DecodeForeign decodes one JSON value of another program, whose unknown members are ignored. It refuses a name that an
// object has twice, at any level and however it is written, and a known name in another case: encoding/json takes that
// for the name, and most programs do not. The error names the line.
func DecodeForeign(raw []byte, into any) error {
	if err := json.Unmarshal(raw, into); err != nil {
		return err
	}
	return Exact(raw, into)
}

// Exact checks the names in JSON as [DecodeForeign] does, and decodes nothing.
func Exact(raw []byte, into any) error { return unique(raw, reflect.TypeOf(into)) }

// Unique refuses JSON in which an object has a name twice, at any level and however it is written. The error names the line.
func Unique(raw []byte) error { return unique(raw, nil) }

func unique(raw []byte, t reflect.Type) error {
	s := Scanner{Text: raw, MaxDepth: deepest}
	if err := s.typed(t, 0); err != nil {
		return err
	}
	return s.Repeated
}

// typed skips a value that is decoded into a type, which is nil for any.
func (s *Scanner) typed(t reflect.Type, depth int) error {
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == nil || reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()) {
		return s.Value(depth)
	}
	switch c := s.Next(); {
	case c == '[' && t.Kind() == reflect.Slice:
		return s.Elements(depth, func() error { return s.typed(t.Elem(), depth+1) })
	case c == '{' && t.Kind() == reflect.Map:
		return s.object(depth, func(string) (reflect.Type, error) { return t.Elem(), nil })
	case c == '{' && t.Kind() == reflect.Struct:
		known := map[string]reflect.Type{}
		addMembers(known, t)
		return s.object(depth, func(name string) (reflect.Type, error) { return exact(known, name) })
	}
	return s.Value(depth)
}

// object skips an object, and notes a name that it has twice. The type of a member's value is typeOf of its name.
func (s *Scanner) object(depth int, typeOf func(name string) (reflect.Type, error)) error {
	var seen Names
	start := s.Pos
	return s.Members(depth, func(from, to int) error {
		if !seen.Add(s.Text[from:to]) {
			s.repeat(start, from, to)
		}
		t, err := typeOf(Unquote(s.Text[from:to]))
		if err != nil {
			return fmt.Errorf("line %d: %w", s.line(from), err)
		}
		return s.typed(t, depth+1)
	})
}

// repeat notes that a name of the object at start is there twice.
func (s *Scanner) repeat(start, from, to int) {
	s.notef("the name %.80s is there twice", s.Text[from:to])
	if s.Repeated != nil {
		return
	}
	name, first := Unquote(s.Text[from:to]), -1
	before := Scanner{Text: s.Text, Pos: start, MaxDepth: s.MaxDepth}
	_ = before.Members(0, func(from, to int) error { // it was scanned before
		if first < 0 && Unquote(s.Text[from:to]) == name {
			first = from
		}
		return before.Value(0)
	})
	s.Repeated = fmt.Errorf("line %d: the name %.80q is there twice, first in line %d", s.line(from), name, s.line(first))
}

func (s *Scanner) line(at int) int { return 1 + bytes.Count(s.Text[:at], []byte("\n")) }

// addMembers adds the types of a struct's members by their names in JSON.
func addMembers(known map[string]reflect.Type, t reflect.Type) {
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "" && f.Anonymous && f.Type.Kind() == reflect.Struct:
			addMembers(known, f.Type)
		case name == "-" || !f.IsExported():
		case name == "":
			known[f.Name] = f.Type
		default:
			known[name] = f.Type
		}
	}
}

// exact finds the type of a member, and refuses a name that differs from a known one in case alone.
func exact(known map[string]reflect.Type, name string) (reflect.Type, error) {
	if t, ok := known[name]; ok {
		return t, nil
	}
	for other := range known {
		if strings.EqualFold(other, name) {
			return nil, fmt.Errorf("the name %.80q must be written %q", name, other)
		}
	}
	return nil, nil //nolint:nilnil // any type
}

// Member returns the value of an object's member by its exact name; nil if there is none.
func Member(object []byte, name string) json.RawMessage {
	var members map[string]json.RawMessage
	_ = json.Unmarshal(object, &members) // anything but an object has none
	return members[name]
}

// Repair returns JSON in which U+FFFD stands for each NUL and lone surrogate in a string and for each run of bytes that is
// not UTF-8, and how many were replaced. Text that is not JSON stays invalid.
func Repair(raw []byte) (repaired []byte, replaced int) {
	if utf8.Valid(raw) && !bytes.Contains(raw, []byte(`\u`)) {
		return raw, 0
	}
	out := make([]byte, 0, len(raw))
	s := Scanner{Text: raw}
	for s.Pos < len(raw) {
		from := s.Pos
		if s.character() {
			replaced++
			out = append(out, "\ufffd"...)
		} else {
			out = append(out, raw[from:s.Pos]...)
		}
	}
	return out, replaced
}

// character skips a character or an escape, or a run of bytes that is not UTF-8, and reports whether no text may hold it.
func (s *Scanner) character() (bad bool) {
	rest := s.Text[s.Pos:]
	if rest[0] != '\\' || len(rest) < 2 || rest[1] >= utf8.RuneSelf {
		return s.plain()
	}
	s.Pos++
	r, ok := s.hex4(s.Pos + 1)
	switch {
	case rest[1] != 'u' || !ok:
		s.Pos++
		return false
	case utf16.IsSurrogate(r):
		s.Pos += 4
		if bad = !s.lowSurrogate(r); !bad {
			s.Pos += 6
		}
		s.Pos++
		return bad
	}
	s.Pos += 5
	return r == 0
}

// plain skips a character that is not escaped.
func (s *Scanner) plain() (bad bool) {
	for s.Pos < len(s.Text) {
		r, n := utf8.DecodeRune(s.Text[s.Pos:])
		if r != utf8.RuneError || n > 1 {
			if !bad {
				s.Pos += n
			}
			return bad
		}
		bad = true
		s.Pos++
	}
	return bad
}
