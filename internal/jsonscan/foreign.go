package jsonscan

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/grapnelhq/grapnel/internal/text/lazyregexp"
)

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
func Exact(raw []byte, into any) error {
	if err := Unique(raw); err != nil {
		return err
	}
	return exact(raw, Reader(raw), reflect.TypeOf(into))
}

// Unique refuses JSON in which an object has a name twice, at any level and however it is written. The error names the line.
func Unique(raw []byte) error {
	_, err := jsontext.NewDecoder(bytes.NewBuffer(raw), jsontext.AllowInvalidUTF8(true)).ReadValue()
	if errors.Is(err, jsontext.ErrDuplicateName) { // once more, for where both are
		return duplicate(raw)
	}
	return err
}

// duplicate returns the error of the first name that an object has twice. Its work grows with the text alone: pointers
// of a decoder would repeat the names above for each token.
func duplicate(raw []byte) error {
	var open []map[string]int64 // where names of the open objects end; nil for lists
	for d := Reader(raw); ; {
		token, err := d.ReadToken()
		if err != nil {
			return err
		}
		switch token.Kind() {
		case '{':
			open = append(open, map[string]int64{})
		case '[':
			open = append(open, nil)
		case '}', ']':
			open = open[:len(open)-1]
		default: // nothing is opened or closed
		}
		if kind, n := d.StackIndex(d.StackDepth()); kind != '{' || n%2 == 0 { // no name
			continue
		}
		names, name := open[len(open)-1], token.String()
		if first, ok := names[name]; ok {
			return fmt.Errorf("line %d: the name %.80q is there twice, first in line %d", line(raw, d.InputOffset()), name, line(raw, first))
		}
		names[name] = d.InputOffset()
	}
}

func line(raw []byte, at int64) int { return 1 + bytes.Count(raw[:at], []byte("\n")) }

// exact skips a value that is decoded into a type, which is nil for any, and refuses known names in another case.
func exact(raw []byte, d *jsontext.Decoder, t reflect.Type) error {
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	kind := d.PeekKind()
	var known map[string]reflect.Type // of a struct
	switch {
	case t == nil || reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()):
		return d.SkipValue()
	case kind == '[' && t.Kind() == reflect.Slice || kind == '{' && t.Kind() == reflect.Map:
	case kind == '{' && t.Kind() == reflect.Struct:
		known = map[string]reflect.Type{}
		addMembers(known, t)
	default:
		return d.SkipValue()
	}
	return Each(d, func() error {
		name := ""
		if kind == '{' {
			token, err := d.ReadToken()
			if err != nil {
				return err
			}
			name = token.String()
		}
		elem, err := typeOf(t, known, name)
		if err != nil {
			return fmt.Errorf("line %d: %w", line(raw, d.InputOffset()), err)
		}
		return exact(raw, d, elem)
	})
}

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

// typeOf returns the type of an element, or of a member of a struct, whose name must not differ from a known one in case alone.
func typeOf(t reflect.Type, known map[string]reflect.Type, name string) (reflect.Type, error) {
	if known == nil {
		return t.Elem(), nil
	}
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

// escapes finds whole escapes, so that a backslash before them is none of theirs: pairs of surrogates, those that no text may hold, and others.
var escapes = lazyregexp.New(`(?s)\\u[dD][89abAB][[:xdigit:]]{2}\\u[dD][c-fC-F][[:xdigit:]]{2}|\\u(?:0000|[dD][89a-fA-F][[:xdigit:]]{2})|\\.`)

// Repair returns JSON in which U+FFFD stands for each NUL and lone surrogate in a string and for each run of bytes that is
// not UTF-8, and how many were replaced. Text that is not JSON stays invalid.
func Repair(raw []byte) (repaired []byte, replaced int) {
	if utf8.Valid(raw) && !bytes.Contains(raw, []byte(`\u`)) {
		return raw, 0
	}
	const instead = "\ufffd"
	out := bytes.ToValidUTF8(raw, []byte(instead))
	replaced = bytes.Count(out, []byte(instead)) - bytes.Count(raw, []byte(instead))
	out = escapes().ReplaceAllFunc(out, func(escape []byte) []byte {
		if len(escape) != len(`\u0000`) || escape[1] != 'u' {
			return escape
		}
		replaced++
		return []byte(instead)
	})
	return out, replaced
}
