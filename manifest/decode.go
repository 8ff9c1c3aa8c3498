package manifest

import (
	"bytes"
	"encoding"
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/grapnelhq/grapnel/internal/digest"
)

// This file decodes records that are in canonical form, several times faster
// than encoding/json, and nothing else: a verifier reads whole logs, and every
// record that Grapnel wrote is canonical. It follows the tags of the Go types,
// so that there is no second list of fields. Whatever it does not take, [Parse]
// looks at.

// decodeFunc reads one value into v and reports whether it was canonical.
type decodeFunc func(d *decoder, v reflect.Value) bool

// decodeRecord is the plan of the type: immutable and safe for concurrent use.
//
//nolint:gochecknoglobals // an immutable table
var decodeRecord = decoderOf(reflect.TypeFor[Manifest]())

// decodeCanonical reads a record. It is true only if data is exactly what
// [Canonical] gives for the result. It does not validate.
func decodeCanonical(data []byte) (*Manifest, bool) {
	m := &Manifest{}
	d := &decoder{data: data, source: string(data)}
	if !decodeRecord(d, reflect.ValueOf(m).Elem()) || d.at != len(data) {
		return nil, false
	}
	return m, true
}

// decoder is a place in the data.
type decoder struct {
	data []byte
	at   int
	// source is the data once more: the texts of the result are parts of it, and
	// are not allocated one by one.
	source string
}

func (d *decoder) take(c byte) bool {
	if d.at < len(d.data) && d.data[d.at] == c {
		d.at++
		return true
	}
	return false
}

func (d *decoder) takeAll(s string) bool {
	if len(d.data)-d.at >= len(s) && string(d.data[d.at:d.at+len(s)]) == s {
		d.at += len(s)
		return true
	}
	return false
}

// number returns the characters of a number.
func (d *decoder) number() string {
	start := d.at
	for d.at < len(d.data) && strings.IndexByte("+-.0123456789e", d.data[d.at]) >= 0 {
		d.at++
	}
	return d.source[start:d.at]
}

// raw returns the value that begins here as it stands.
func (d *decoder) raw() []byte {
	start := d.at
	d.at = skipValue(d.data, d.at)
	return d.data[start:d.at]
}

// text reads a string. Only the escapes that canonical JSON has are taken.
func (d *decoder) text() (string, bool) {
	if !d.take('"') {
		return "", false
	}
	rest := d.data[d.at:]
	end := bytes.IndexByte(rest, '"')
	if end >= 0 && bytes.IndexByte(rest[:end], '\\') < 0 {
		s := d.source[d.at : d.at+end]
		d.at += end + 1
		return s, isPlain(s)
	}
	d.at--
	raw := d.raw()
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return "", false
	}
	canonical, err := digest.JSON(nil, raw)
	return s, err == nil && bytes.Equal(canonical, raw) && utf8.Valid(raw)
}

// isPlain reports whether a text without quotes and backslashes stands in
// canonical JSON as it is: UTF-8 without control characters.
func isPlain(s string) bool {
	ascii := true
	for i := range len(s) {
		if s[i] < ' ' {
			return false
		}
		ascii = ascii && s[i] < utf8.RuneSelf
	}
	return ascii || utf8.ValidString(s)
}

// decoderOf plans a type. What it does not know is never canonical, so that a
// new kind of field costs speed and not correctness.
func decoderOf(t reflect.Type) decodeFunc {
	switch {
	case t == reflect.TypeFor[json.RawMessage]():
		return decodeRaw
	case reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()):
		return decodeMarshalled
	}
	switch t.Kind() {
	case reflect.String:
		return func(d *decoder, v reflect.Value) bool {
			s, ok := d.text()
			v.SetString(s)
			return ok
		}
	case reflect.Int:
		return decodeInt
	case reflect.Uint64:
		return decodeUint
	case reflect.Float64:
		return decodeFloat
	case reflect.Pointer:
		return decodePointer(decoderOf(t.Elem()))
	case reflect.Slice:
		return decodeList(decoderOf(t.Elem()))
	case reflect.Struct:
		return decodeStruct(fieldsOf(t))
	default:
		return func(*decoder, reflect.Value) bool { return false }
	}
}

func decodeRaw(d *decoder, v reflect.Value) bool {
	raw := d.raw()
	v.SetBytes(bytes.Clone(raw))
	canonical, err := digest.JSON(nil, raw)
	return err == nil && bytes.Equal(canonical, raw)
}

// decodeMarshalled reads types that are text in JSON, such as times.
func decodeMarshalled(d *decoder, v reflect.Value) bool {
	s, ok := d.text()
	if !ok || v.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(s)) != nil { //nolint:forcetypeassert // planned by this very interface
		return false
	}
	m, ok := reflect.TypeAssert[encoding.TextMarshaler](v)
	if !ok {
		return false
	}
	again, err := m.MarshalText()
	return err == nil && string(again) == s
}

// maxExact is the largest integer below which every integer is a double: beyond
// it, canonical JSON rounds.
const maxExact = 1 << 53

func decodeInt(d *decoder, v reflect.Value) bool {
	s := d.number()
	n, err := strconv.ParseInt(s, 10, 64)
	v.SetInt(n)
	return err == nil && n <= maxExact && n >= -maxExact && strconv.FormatInt(n, 10) == s
}

func decodeUint(d *decoder, v reflect.Value) bool {
	s := d.number()
	n, err := strconv.ParseUint(s, 10, 64)
	v.SetUint(n)
	return err == nil && n <= maxExact && strconv.FormatUint(n, 10) == s
}

// decodeFloat takes the numbers that JavaScript writes without an exponent.
func decodeFloat(d *decoder, v reflect.Value) bool {
	s := d.number()
	f, err := strconv.ParseFloat(s, 64)
	v.SetFloat(f)
	plain := f == 0 || math.Abs(f) >= 1e-6 && math.Abs(f) < 1e21
	var room [32]byte
	return err == nil && plain && string(strconv.AppendFloat(room[:0], f, 'f', -1, 64)) == s && s != "-0"
}

func decodePointer(elem decodeFunc) decodeFunc {
	return func(d *decoder, v reflect.Value) bool {
		if d.takeAll("null") {
			return true
		}
		v.Set(reflect.New(v.Type().Elem()))
		return elem(d, v.Elem())
	}
}

// decodeList makes a list that is not nil; null is not taken, for no record has
// it in place of a list.
func decodeList(elem decodeFunc) decodeFunc {
	return func(d *decoder, v reflect.Value) bool {
		if !d.take('[') {
			return false
		}
		v.Set(reflect.MakeSlice(v.Type(), 0, 0))
		if d.take(']') {
			return true
		}
		for n := 0; ; n++ {
			if n == v.Cap() {
				v.Grow(max(4, n))
			}
			v.SetLen(n + 1)
			if !elem(d, v.Index(n)) {
				return false
			}
			if d.take(']') {
				return true
			}
			if !d.take(',') {
				return false
			}
		}
	}
}

// field is one member of an object.
type field struct {
	name  string // with quotes and colon, as it stands in JSON
	index []int
	// optional fields are absent where they are empty.
	optional bool
	decode   decodeFunc
}

// fieldsOf lists the members that a struct has in JSON, in canonical order.
func fieldsOf(t reflect.Type) []field {
	var fields []field
	for _, f := range reflect.VisibleFields(t) {
		name, options, tagged := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() || name == "" || name == "-" {
			continue // embedded structs are untagged: their fields are promoted
		}
		fields = append(fields, field{
			name: strconv.Quote(name) + ":", index: f.Index, decode: decoderOf(f.Type),
			optional: tagged && (options == "omitempty" || options == "omitzero"),
		})
	}
	slices.SortFunc(fields, func(a, b field) int { return strings.Compare(strings.Trim(a.name, `":`), strings.Trim(b.name, `":`)) })
	return fields
}

func decodeStruct(fields []field) decodeFunc {
	return func(d *decoder, v reflect.Value) bool {
		if !d.take('{') {
			return false
		}
		first := true
		for i := range fields {
			f := &fields[i]
			start := d.at
			if (first || d.take(',')) && d.takeAll(f.name) {
				first = false
				to := v.FieldByIndex(f.index)
				if !f.decode(d, to) || f.optional && (to.IsZero() || to.Kind() == reflect.Slice && to.Len() == 0) {
					return false
				}
				continue
			}
			if d.at = start; !f.optional {
				return false
			}
		}
		return d.take('}')
	}
}
