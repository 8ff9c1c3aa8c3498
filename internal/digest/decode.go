package digest

import (
	"bytes"
	"encoding"
	"encoding/json"
	"math"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/grapnelhq/grapnel/internal/jsonscan"
)

// Decoder reads what the [Encoder] of T writes, and nothing else. It is immutable and safe for concurrent use.
// [DecoderOf] makes it.
type Decoder[T any] struct {
	decode decodeFunc
}

// DecoderOf plans the decoding of T by reflection. Call it once for each type and keep the result. It panics for the
// types for which [EncoderOf] does.
//
// What the encoder writes directly is read directly, but for embedded pointers; the rest goes through encoding/json.
func DecoderOf[T any]() *Decoder[T] {
	t := reflect.TypeFor[T]()
	plan(t, nil)
	return &Decoder[T]{decode: planDecode(t)}
}

// Decode reads data into *v, which must be zero. It reports whether data is the canonical form of a value of T: that
// encoding/json reads it, and that the encoder would write just these bytes. *v is then what encoding/json makes of
// data, and refers to nothing of it.
//
// Otherwise *v means nothing. The data may still be JSON for a T; encoding/json says so, or what is wrong.
func (d *Decoder[T]) Decode(data []byte, v *T) bool {
	if !utf8.Valid(data) {
		return false
	}
	r := readers.Get().(*reader) //nolint:forcetypeassert // the pool has nothing else
	defer readers.Put(r)
	r.data, r.text, r.pos = data, string(data), 0
	ok := d.decode(r, reflect.ValueOf(v).Elem()) && r.pos == len(data)
	r.data, r.text = nil, ""
	return ok
}

//nolint:gochecknoglobals // a pool
var readers = sync.Pool{New: func() any { return &reader{} }}

// reader is a place in valid UTF-8.
type reader struct {
	data  []byte
	text  string // the same: strings are read eight bytes at a time
	pos   int
	spare []byte // what was read, encoded again, or a string without its escapes
}

// decodeFunc reads a value into v, which must be zero. It returns false for anything that is not canonical.
type decodeFunc func(r *reader, v reflect.Value) bool

// planDecode returns the function for t, which can be encoded.
func planDecode(t reflect.Type) decodeFunc {
	switch {
	case t == reflect.TypeFor[time.Time]():
		return decodeTime
	case t == reflect.TypeFor[json.RawMessage]():
		return decodeRaw
	case t == reflect.TypeFor[json.Number](), t.Kind() != reflect.Pointer && hasOwnForm(t):
		return decodeOther
	}
	switch t.Kind() { //nolint:exhaustive // encoding/json knows the others
	case reflect.Bool:
		return decodeBool
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return decodeInt
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return decodeUint
	case reflect.Float64:
		return decodeFloat
	case reflect.String:
		return decodeString
	case reflect.Struct:
		return planDecodeStruct(t)
	case reflect.Pointer:
		elem := planDecode(t.Elem())
		return func(r *reader, v reflect.Value) bool { return r.pointer(v, elem) }
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return decodeOther // base64
		}
		elem := planDecode(t.Elem())
		return func(r *reader, v reflect.Value) bool { return r.slice(v, elem) }
	}
	return decodeOther
}

func hasOwnForm(t reflect.Type) bool {
	return implements[json.Marshaler](t) || implements[encoding.TextMarshaler](t) ||
		implements[json.Unmarshaler](t) || implements[encoding.TextUnmarshaler](t)
}

// decodedField is a field that is read. absent says that the encoder omits the zero value.
type decodedField struct {
	field

	decode decodeFunc
	absent bool
}

func planDecodeStruct(t reflect.Type) decodeFunc {
	planned := planFields(t, []reflect.Type{t})
	sortFields(t, planned)
	fields := make([]decodedField, len(planned))
	for i := range planned {
		f := &planned[i]
		if throughPointer(t, f.index) {
			return decodeOther
		}
		ft := t.FieldByIndex(f.index).Type
		fields[i] = decodedField{*f, planDecode(ft), f.omitted(reflect.Zero(ft))}
	}
	return func(r *reader, v reflect.Value) bool { return r.object(v, fields) }
}

// throughPointer reports whether a field is one of an embedded pointer.
func throughPointer(t reflect.Type, index []int) bool {
	for _, i := range index {
		if t.Kind() == reflect.Pointer {
			return true
		}
		t = t.Field(i).Type
	}
	return false
}

// skip skips a text, if it is next.
func (r *reader) skip(text string) bool {
	end := r.pos + len(text)
	if end > len(r.text) || r.text[r.pos:end] != text {
		return false
	}
	r.pos = end
	return true
}

func (r *reader) object(v reflect.Value, fields []decodedField) bool {
	if !r.skip("{") {
		return false
	}
	begin := r.pos
	for i := range fields {
		f := &fields[i]
		if !r.key(f.key, r.pos > begin) {
			if !f.absent {
				return false
			}
			continue
		}
		if value := v.FieldByIndex(f.index); !f.decode(r, value) || f.omitted(value) {
			return false
		}
	}
	return r.skip("}")
}

// key skips a member's name with its colon, and the comma in front of it.
func (r *reader) key(key []byte, comma bool) bool {
	at := r.pos
	if comma {
		at++
	}
	end := at + len(key)
	if end > len(r.text) || comma && r.text[r.pos] != ',' || r.text[at:end] != string(key) {
		return false
	}
	r.pos = end
	return true
}

func (r *reader) pointer(v reflect.Value, elem decodeFunc) bool {
	if r.skip("null") {
		return true
	}
	v.Set(reflect.New(v.Type().Elem()))
	return elem(r, v.Elem())
}

func (r *reader) slice(v reflect.Value, elem decodeFunc) bool {
	if r.skip("null") {
		return true
	}
	if !r.skip("[") {
		return false
	}
	if r.skip("]") {
		v.Set(reflect.MakeSlice(v.Type(), 0, 0))
		return true
	}
	for n := 0; ; n++ {
		if n == v.Cap() {
			v.Grow(max(n, 4)) // the memory is zero
		}
		v.SetLen(n + 1)
		if !elem(r, v.Index(n)) {
			return false
		}
		if !r.skip(",") {
			return r.skip("]")
		}
	}
}

func decodeBool(r *reader, v reflect.Value) bool {
	if r.skip("true") {
		v.SetBool(true)
		return true
	}
	return r.skip("false")
}

// number skips what could be a number. exact says that it is a canonical integer whose value is n.
func (r *reader) number() (token string, n int64, exact bool) {
	from := r.pos
	for r.pos < len(r.text) && isNumeric(r.text[r.pos]) {
		r.pos++
	}
	token = r.text[from:r.pos]
	digits := token
	if len(token) > 0 && token[0] == '-' {
		digits = token[1:]
	}
	if len(digits) == 0 || len(digits) > exactDigits || digits[0] == '0' && len(token) > 1 {
		return token, 0, false
	}
	for _, c := range []byte(digits) {
		if c < '0' || c > '9' {
			return token, 0, false
		}
		n = 10*n + int64(c-'0')
	}
	if len(digits) < len(token) {
		n = -n
	}
	return token, n, true
}

func isNumeric(c byte) bool {
	return c >= '0' && c <= '9' || c == '-' || c == '+' || c == '.' || c == 'e'
}

func decodeInt(r *reader, v reflect.Value) bool {
	token, n, exact := r.number()
	if !exact {
		var err error
		if n, err = strconv.ParseInt(token, 10, 64); err != nil {
			return false
		}
	}
	if v.OverflowInt(n) {
		return false
	}
	v.SetInt(n)
	return exact || r.writes(encodeInt, v, token)
}

func decodeUint(r *reader, v reflect.Value) bool {
	token, n, exact := r.number()
	u := uint64(max(n, 0))
	if !exact {
		var err error
		if u, err = strconv.ParseUint(token, 10, 64); err != nil {
			return false
		}
	}
	if n < 0 || v.OverflowUint(u) {
		return false
	}
	v.SetUint(u)
	return exact || r.writes(encodeUint, v, token)
}

func decodeFloat(r *reader, v reflect.Value) bool {
	token, n, exact := r.number()
	if exact {
		v.SetFloat(float64(n))
		return true
	}
	f, err := strconv.ParseFloat(token, 64)
	if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
		return false
	}
	v.SetFloat(f)
	return r.writes(encodeFloat, v, token)
}

// writes reports whether v is written as text.
func (r *reader) writes(encode encodeFunc, v reflect.Value, text string) bool {
	out, err := encode(r.spare[:0], v)
	r.spare = out
	return err == nil && string(out) == text
}

func decodeString(r *reader, v reflect.Value) bool {
	if !r.skip(`"`) {
		return false
	}
	from := r.pos
	for r.pos = plain(r.text, from); r.pos < len(r.text); r.pos = plain(r.text, r.pos+1) {
		switch c := r.text[r.pos]; {
		case c == '"':
			v.SetString(strings.Clone(r.text[from:r.pos]))
			r.pos++
			return true
		case c == '\\':
			return r.escaped(v, from)
		case c < ' ':
			return false
		}
	}
	return false
}

// escaped reads the rest of a string that began at from and has an escape at pos.
func (r *reader) escaped(v reflect.Value, from int) bool {
	r.spare = append(r.spare[:0], r.text[from:r.pos]...)
	for r.pos < len(r.text) {
		c := r.text[r.pos]
		r.pos++
		switch {
		case c == '"':
			v.SetString(string(r.spare))
			return true
		case c == '\\':
			var ok bool
			if c, ok = r.escape(); !ok {
				return false
			}
		case c < ' ':
			return false
		}
		r.spare = append(r.spare, c)
	}
	return false
}

// escape reads a canonical escape behind its backslash.
func (r *reader) escape() (c byte, ok bool) {
	rest := r.text[r.pos:]
	if rest == "" {
		return 0, false
	}
	length := 1
	switch rest[0] {
	case '"', '\\':
		c = rest[0]
	case 'b', 't', 'n', 'f', 'r':
		c = '\b' + byte(strings.IndexByte(controls, rest[0])) //nolint:gosec // below six
	case 'u':
		length = min(len("u0000"), len(rest))
		code, err := strconv.ParseUint(rest[1:length], 16, 8)
		if c = byte(code); err != nil || c >= ' ' {
			return 0, false
		}
	}
	// The digits may be capitals, and the character may have a shorter escape.
	var want [6]byte
	if string(appendEscaped(want[:0], string(rune(c)))) != r.text[r.pos-1:r.pos+length] {
		return 0, false
	}
	r.pos += length
	return c, true
}

func decodeTime(r *reader, v reflect.Value) bool {
	from := r.pos
	if !r.skip(`"`) {
		return false
	}
	length := strings.IndexByte(r.text[r.pos:], '"')
	if length < 0 {
		return false
	}
	r.pos += length + 1
	t, _ := reflect.TypeAssert[*time.Time](v.Addr())
	return t.UnmarshalJSON(r.data[from:r.pos]) == nil && r.writes(encodeTime, v, r.text[from:r.pos])
}

// value skips any JSON value.
func (r *reader) value() []byte {
	s := jsonscan.Scanner{Text: r.data, Pos: r.pos, MaxDepth: MaxDepth}
	if s.Pos == len(s.Text) || s.Value(0) != nil {
		return nil
	}
	from := r.pos
	r.pos = s.Pos
	return r.data[from:r.pos]
}

func decodeRaw(r *reader, v reflect.Value) bool {
	raw := r.value()
	v.SetBytes(bytes.Clone(raw))
	return raw != nil && r.writes(encodeRaw, v, string(raw))
}

func decodeOther(r *reader, v reflect.Value) bool {
	raw := r.value()
	return raw != nil && json.Unmarshal(raw, v.Addr().Interface()) == nil && r.writes(encodeOther, v, string(raw))
}
