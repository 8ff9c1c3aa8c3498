// Package jsonscan checks JSON text and reads parts of it. It is stricter than encoding/json: it bounds the depth, and
// finds duplicate names, lone surrogates and NULs in strings.
//
// Start at [Check] for text that has to be valid, and at [Members] to look at an object's members without decoding them.
//
// Stability: internal.
package jsonscan

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// ErrTooDeep says that JSON is nested deeper than the limit.
var ErrTooDeep = errors.New("nested too deeply")

// NUL is how JSON has a NUL in a string.
const NUL = `\u0000`

var errNUL = errors.New("holds a NUL")

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
	if HasEscape(raw, NUL) {
		return errNUL
	}
	return nil
}

// HasEscape reports whether a string in JSON has an escape. It is not one behind the escape of a backslash.
func HasEscape(raw []byte, escape string) bool {
	return bytes.Contains(raw, []byte(escape[1:])) && // backslashes are frequent
		bytes.Contains(bytes.ReplaceAll(raw, []byte(`\\`), nil), []byte(escape))
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

// Reader returns a reader of JSON's parts that takes duplicate names, lone surrogates and bytes that are not UTF-8.
// Returned slices alias text.
func Reader(text []byte) *jsontext.Decoder {
	return jsontext.NewDecoder(bytes.NewBuffer(text), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}

// Each reads the object or list that is next, and calls each in front of every member or element, which it reads.
func Each(d *jsontext.Decoder, each func() error) error {
	open, err := d.ReadToken()
	closing := open.Kind() + 2 // in ASCII, of both
	for err == nil && d.PeekKind() != closing {
		err = each()
	}
	if err == nil {
		_, err = d.ReadToken()
	}
	return err
}

// Members reads the next object and calls each after every member, with its quoted name and its value.
func Members(d *jsontext.Decoder, each func(name, value []byte) error) error {
	if d.PeekKind() != '{' {
		return errors.New("it is not a JSON object")
	}
	return Each(d, func() error {
		name, err := d.ReadValue()
		if err != nil {
			return err
		}
		value, err := d.ReadValue()
		if err != nil {
			return err
		}
		return each(name, value)
	})
}

// End refuses anything behind the value that was read.
func End(d *jsontext.Decoder) error {
	if _, err := d.ReadToken(); !errors.Is(err, io.EOF) {
		return cmp.Or(err, errors.New("there is more than one JSON value"))
	}
	return nil
}

// Flaw returns an error for the first duplicate name, lone surrogate, NUL in a string, or byte that is not UTF-8.
func Flaw(raw []byte) error {
	if HasEscape(raw, NUL) {
		return errNUL
	}
	_, err := jsontext.NewDecoder(bytes.NewBuffer(raw)).ReadValue()
	return err
}

// Unquote returns the text of a JSON string.
func Unquote(quoted []byte) string {
	text, _ := jsontext.AppendUnquote(nil, quoted) // U+FFFD stands for what is not UTF-8
	return string(text)
}
