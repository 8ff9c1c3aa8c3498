package digest

import (
	"encoding"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/grapnelhq/grapnel/internal/jsonscan"
)

// Encoder writes values of T as canonical JSON. It is immutable and safe for concurrent use. [EncoderOf] makes it.
type Encoder[T any] struct {
	encode encodeFunc
}

// EncoderOf plans the encoding of T by reflection. Call it once for each type and keep the result:
//
//	var entryEncoder = digest.EncoderOf[Entry]()
//
// The bytes are those of RFC 8785 over encoding/json for a pointer to the value. Structs, slices, pointers, strings,
// numbers, booleans, times and json.RawMessage are written directly; everything else goes through encoding/json and
// [JSON], which is slower.
//
// EncoderOf panics for types that it cannot plan: those without a JSON form, those that contain themselves, and
// structs with the tag option string, with a tagged embedded struct, with two fields of one name, or with omitzero on
// a type that has its own IsZero (other than time.Time).
func EncoderOf[T any]() *Encoder[T] {
	return &Encoder[T]{encode: plan(reflect.TypeFor[T](), nil)}
}

// TaggedEncoder returns a function that appends the canonical form of structs of type t with one more member, a constant text.
func TaggedEncoder(t reflect.Type, name, value string) func(dst []byte, v reflect.Value) ([]byte, error) {
	tag := []byte(strconv.Quote(value))
	constant := field{name: name, key: []byte(strconv.Quote(name) + ":"), encode: func(dst []byte, _ reflect.Value) ([]byte, error) {
		return append(dst, tag...), nil
	}}
	return encodeFields(t, append(planFields(t, []reflect.Type{t}), constant))
}

// Append appends the canonical form of *v to dst. If the value has none, it
// returns dst as it was and an error that names the path to the offending value.
func (e *Encoder[T]) Append(dst []byte, v *T) ([]byte, error) {
	out, err := e.encode(dst, reflect.ValueOf(v).Elem())
	if err != nil {
		return dst, fmt.Errorf("canonical encoding: %w", err)
	}
	return out, nil
}

type encodeFunc func(dst []byte, v reflect.Value) ([]byte, error)

func implements[Interface any](t reflect.Type) bool {
	method := reflect.TypeFor[Interface]()
	return t.Implements(method) || reflect.PointerTo(t).Implements(method)
}

// plan returns the function for t. within are the types around it.
func plan(t reflect.Type, within []reflect.Type) encodeFunc {
	switch {
	case slices.Contains(within, t):
		panic(fmt.Sprintf("digest: %s contains itself", t))
	case t == reflect.TypeFor[time.Time]():
		return encodeTime
	case t == reflect.TypeFor[json.RawMessage]():
		return encodeRaw
	case t == reflect.TypeFor[json.Number](),
		t.Kind() != reflect.Pointer && (implements[json.Marshaler](t) || implements[encoding.TextMarshaler](t)):
		return encodeOther
	}
	within = append(slices.Clone(within), t)
	switch t.Kind() { //nolint:exhaustive // encoding/json knows the others
	case reflect.Bool:
		return func(dst []byte, v reflect.Value) ([]byte, error) { return strconv.AppendBool(dst, v.Bool()), nil }
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return encodeInt
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return encodeUint
	case reflect.Float64:
		return encodeFloat
	case reflect.String:
		return func(dst []byte, v reflect.Value) ([]byte, error) { return AppendString(dst, v.String()) }
	case reflect.Struct:
		return encodeFields(t, planFields(t, within))
	case reflect.Pointer:
		return planPointer(t, within)
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return encodeOther // base64
		}
		return planSlice(t, within)
	case reflect.Chan, reflect.Func, reflect.Complex64, reflect.Complex128, reflect.UnsafePointer:
		panic(fmt.Sprintf("digest: %s has no JSON form", t))
	}
	return encodeOther
}

func planPointer(t reflect.Type, within []reflect.Type) encodeFunc {
	elem := plan(t.Elem(), within)
	return func(dst []byte, v reflect.Value) ([]byte, error) {
		if v.IsNil() {
			return append(dst, "null"...), nil
		}
		return elem(dst, v.Elem())
	}
}

func planSlice(t reflect.Type, within []reflect.Type) encodeFunc {
	elem := plan(t.Elem(), within)
	return func(dst []byte, v reflect.Value) ([]byte, error) {
		if v.IsNil() {
			return append(dst, "null"...), nil
		}
		dst = append(dst, '[')
		for i := range v.Len() {
			if i > 0 {
				dst = append(dst, ',')
			}
			var err error
			if dst, err = elem(dst, v.Index(i)); err != nil {
				return dst, fmt.Errorf("[%d]: %w", i, err)
			}
		}
		return append(dst, ']'), nil
	}
}

type field struct {
	name                string
	key                 []byte // the name as it is written: quoted, with its colon
	index               []int  // through embedded structs
	omitEmpty, omitZero bool
	encode              encodeFunc
}

func planFields(t reflect.Type, within []reflect.Type) (fields []field) {
	for _, sf := range reflect.VisibleFields(t) {
		tag := sf.Tag.Get("json")
		name, options, _ := strings.Cut(tag, ",")
		embedded := sf.Anonymous && tag == "" && (sf.Type.Kind() == reflect.Struct || sf.Type.Kind() == reflect.Pointer)
		if tag == "-" || embedded || !sf.Anonymous && !sf.IsExported() {
			continue // the fields of embedded structs follow
		}
		if name == "" {
			name = sf.Name
		}
		omitEmpty, omitZero := strings.Contains(options, "omitempty"), strings.Contains(options, "omitzero")
		ownZero := omitZero && implements[interface{ IsZero() bool }](sf.Type) && sf.Type != reflect.TypeFor[time.Time]()
		key, err := AppendString(nil, name)
		if err != nil || ownZero || sf.Anonymous || strings.Contains(options, "string") {
			panic(fmt.Sprintf("digest: field %s of %s cannot be planned", sf.Name, t))
		}
		fields = append(fields, field{name, append(key, ':'), sf.Index, omitEmpty, omitZero, plan(sf.Type, within)})
	}
	return fields
}

func encodeFields(t reflect.Type, fields []field) encodeFunc {
	sortFields(t, fields)
	return func(dst []byte, v reflect.Value) ([]byte, error) { return appendStruct(dst, v, fields) }
}

func sortFields(t reflect.Type, fields []field) {
	slices.SortFunc(fields, func(a, b field) int {
		return slices.Compare(utf16.Encode([]rune(a.name)), utf16.Encode([]rune(b.name)))
	})
	for i := 1; i < len(fields); i++ {
		if fields[i].name == fields[i-1].name {
			panic(fmt.Sprintf("digest: %s has two fields %q", t, fields[i].name))
		}
	}
}

func appendStruct(dst []byte, v reflect.Value, fields []field) ([]byte, error) {
	dst = append(dst, '{')
	begin := len(dst)
	for i := range fields {
		f := &fields[i]
		value, err := v.FieldByIndexErr(f.index)
		if err != nil || f.omitted(value) {
			continue // an embedded pointer is nil, or the member is omitted
		}
		if len(dst) > begin {
			dst = append(dst, ',')
		}
		dst = append(dst, f.key...)
		if dst, err = f.encode(dst, value); err != nil {
			return dst, fmt.Errorf("%s: %w", f.name, err)
		}
	}
	return append(dst, '}'), nil
}

func (f *field) omitted(v reflect.Value) bool {
	if !f.omitEmpty && !f.omitZero {
		return false
	}
	switch v.Kind() { //nolint:exhaustive // the others are empty when they are zero
	case reflect.Map, reflect.Slice, reflect.String:
		return f.omitEmpty && v.Len() == 0 || f.omitZero && v.IsZero()
	case reflect.Struct:
		t, ok := reflect.TypeAssert[time.Time](v)
		return f.omitZero && (v.IsZero() || ok && t.IsZero())
	}
	return v.IsZero()
}

func encodeOther(dst []byte, v reflect.Value) ([]byte, error) {
	if v.CanAddr() {
		v = v.Addr()
	}
	text, err := json.Marshal(v.Interface())
	if err != nil {
		return dst, err
	}
	// encoding/json escapes U+FFFD only where it stands for invalid UTF-8; a MarshalJSON may do so anywhere.
	if _, own := reflect.TypeAssert[json.Marshaler](v); !own && jsonscan.HasEscape(text, `\ufffd`) {
		return dst, errInvalidUTF8
	}
	return JSON(dst, text)
}

// encodeTime writes what time.Time.MarshalJSON does, and refuses the same years.
func encodeTime(dst []byte, v reflect.Value) ([]byte, error) {
	t, _ := reflect.TypeAssert[time.Time](v)
	dst, err := t.AppendText(append(dst, '"'))
	return append(dst, '"'), err
}

// encodeRaw writes embedded JSON; nil is null, as in encoding/json.
func encodeRaw(dst []byte, v reflect.Value) ([]byte, error) {
	if v.IsNil() {
		return append(dst, "null"...), nil
	}
	return JSON(dst, v.Bytes())
}

// maxExact is the largest integer below which every integer is a double. Larger ones are rounded to one.
const maxExact = 1 << 53

func encodeInt(dst []byte, v reflect.Value) ([]byte, error) {
	if n := v.Int(); -maxExact <= n && n <= maxExact {
		return strconv.AppendInt(dst, n, 10), nil
	}
	return jsontext.AppendFloat(dst, float64(v.Int()), 64), nil
}

func encodeUint(dst []byte, v reflect.Value) ([]byte, error) {
	if n := v.Uint(); n <= maxExact {
		return strconv.AppendUint(dst, n, 10), nil
	}
	return jsontext.AppendFloat(dst, float64(v.Uint()), 64), nil
}

func encodeFloat(dst []byte, v reflect.Value) ([]byte, error) {
	f := v.Float() + 0 // not -0
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return dst, errNotFinite
	}
	return jsontext.AppendFloat(dst, f, 64), nil
}
