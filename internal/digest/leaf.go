package digest

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"time"

	"github.com/gowebpki/jcs"
)

// The functions below write values that contain no others. They take a depth
// only to be encodeFuncs.

func appendBool(dst []byte, b bool) []byte {
	if b {
		return append(dst, "true"...)
	}
	return append(dst, "false"...)
}

func encodeBool(dst []byte, v reflect.Value, _ int) ([]byte, error) {
	return appendBool(dst, v.Bool()), nil
}

func encodeInt(dst []byte, v reflect.Value, _ int) ([]byte, error) {
	return appendInt(dst, v.Int()), nil
}

func encodeUint(dst []byte, v reflect.Value, _ int) ([]byte, error) {
	return appendUint(dst, v.Uint()), nil
}

func encodeFloat32(dst []byte, v reflect.Value, _ int) ([]byte, error) {
	return appendFloat32(dst, v.Float())
}

func encodeFloat64(dst []byte, v reflect.Value, _ int) ([]byte, error) {
	return appendFloat(dst, v.Float())
}

func encodeString(dst []byte, v reflect.Value, _ int) ([]byte, error) {
	return appendString(dst, v.String())
}

// encodeQuoted serves the tag option string. The inner text is encoding/json's
// own and not canonical: it is data, and keeps all digits of an integer.
func encodeQuoted(dst []byte, v reflect.Value, _ int) ([]byte, error) {
	switch {
	case v.CanInt():
		return append(strconv.AppendInt(append(dst, '"'), v.Int(), 10), '"'), nil
	case v.CanUint():
		return append(strconv.AppendUint(append(dst, '"'), v.Uint(), 10), '"'), nil
	}
	inner, err := json.Marshal(v.Interface())
	if err != nil {
		return dst, err
	}
	return appendString(dst, inner)
}

// encodeTime writes RFC 3339 with nanoseconds, as time.Time.MarshalJSON does,
// and refuses the years that it refuses.
func encodeTime(dst []byte, v reflect.Value, _ int) ([]byte, error) {
	dst = append(dst, '"')
	var err error
	if v.CanAddr() {
		dst, err = v.Addr().Interface().(*time.Time).AppendText(dst) //nolint:forcetypeassert // planned for this type only
	} else {
		dst, err = v.Interface().(time.Time).AppendText(dst) //nolint:forcetypeassert // planned for this type only
	}
	return append(dst, '"'), err
}

// encodeRaw serves json.RawMessage, which encoding/json would first compact.
func encodeRaw(dst []byte, v reflect.Value, _ int) ([]byte, error) {
	return appendRaw(dst, v.Bytes())
}

// appendRaw writes embedded JSON; nil is null, as in encoding/json.
func appendRaw(dst []byte, raw json.RawMessage) ([]byte, error) {
	if raw == nil {
		return append(dst, "null"...), nil
	}
	return JSON(dst, raw)
}

// encodeNumber serves json.Number, whose digits come from outside.
func encodeNumber(dst []byte, v reflect.Value, _ int) ([]byte, error) {
	return appendNumber(dst, json.Number(v.String()))
}

// appendNumber writes the text of a number; an empty one is 0, as in
// encoding/json.
func appendNumber(dst []byte, n json.Number) ([]byte, error) {
	if n == "" {
		return append(dst, '0'), nil
	}
	// A first byte that begins a number leaves jcs nothing else to accept, and
	// the last must not be a blank, which jcs would strip.
	if c := n[0]; c != '-' && (c < '0' || c > '9') || n[len(n)-1] <= ' ' {
		return dst, fmt.Errorf("not a JSON number: %.40q", string(n))
	}
	out, err := jcs.Transform([]byte(n))
	if err != nil {
		return dst, fmt.Errorf("number: %w", err)
	}
	return append(dst, out...), nil
}

// isNil reports whether v is a nil pointer or interface: such a value is
// written as null and its methods are not called.
func isNil(v reflect.Value) bool {
	k := v.Kind()
	return (k == reflect.Pointer || k == reflect.Interface) && v.IsNil()
}

// encodeMarshaler takes what the value says of itself, as JSON text.
func encodeMarshaler(dst []byte, v reflect.Value, _ int) ([]byte, error) {
	if isNil(v) {
		return append(dst, "null"...), nil
	}
	m, ok := reflect.TypeAssert[json.Marshaler](v)
	if !ok {
		return dst, fmt.Errorf("%s is not a json.Marshaler", v.Type())
	}
	raw, err := m.MarshalJSON()
	if err != nil {
		return dst, fmt.Errorf("%s: %w", v.Type(), err)
	}
	return JSON(dst, raw)
}

// encodeText takes what the value says of itself, as a string; by AppendText
// where there is one, which the two interfaces promise to agree on.
func encodeText(dst []byte, v reflect.Value, _ int) ([]byte, error) {
	if isNil(v) {
		return append(dst, "null"...), nil
	}
	var text []byte
	var err error
	switch m := v.Interface().(type) {
	case encoding.TextAppender:
		// The text is written behind dst, where it stays if it is plain.
		begin := len(dst) + 1
		out, err := m.AppendText(append(dst, '"'))
		if err != nil {
			return dst, fmt.Errorf("%s: %w", v.Type(), err)
		}
		if written := out[begin:]; plainLen(written) == len(written) && validUTF8(written) {
			return append(out, '"'), nil
		}
		text = append([]byte(nil), out[begin:]...)
	case encoding.TextMarshaler:
		if text, err = m.MarshalText(); err != nil {
			return dst, fmt.Errorf("%s: %w", v.Type(), err)
		}
	default:
		return dst, fmt.Errorf("%s is not an encoding.TextMarshaler", v.Type())
	}
	return appendString(dst, text)
}
