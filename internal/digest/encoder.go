package digest

import (
	"fmt"
	"reflect"
)

// Encoder writes values of T as canonical JSON. It is immutable and safe for
// concurrent use. [EncoderOf] makes it; the zero value is of no use.
type Encoder[T any] struct {
	encode encodeFunc
}

// EncoderOf plans the encoding of T. It walks the type by reflection, so call
// it once for each type and keep the result:
//
//	var entryEncoder = digest.EncoderOf[Entry]()
//
// The bytes are those of jcs over encoding/json for a pointer to the value.
// Names, embedding and the tag options omitempty, omitzero and string follow
// encoding/json, as do []byte (base64), nil (null), time.Time,
// json.RawMessage, json.Number, json.Marshaler and encoding.TextMarshaler.
// Recursive types are fine. Values behind an interface are planned each time
// they are met, except the types that encoding/json decodes into: give hot
// fields a concrete type.
//
// EncoderOf panics if T holds a channel, a function, a complex number or a map
// whose keys are not strings: that is a mistake in the program and does not
// depend on data.
func EncoderOf[T any]() *Encoder[T] {
	t := reflect.TypeFor[T]()
	encode, err := newPlanner().encoder(t)
	if err != nil {
		panic(fmt.Sprintf("digest: no encoder for %s: %v", t, err))
	}
	return &Encoder[T]{encode: encode}
}

// Append appends the canonical form of *v to dst and returns the longer slice.
// A nil v is written as null. The error names the path to the value that
// canonical JSON cannot express; dst is then returned as it was. With room in
// dst, types made of structs, slices and scalars allocate nothing.
//
// v is only read, but a Marshaler with a pointer receiver is called on v's own
// parts, not on copies.
func (e *Encoder[T]) Append(dst []byte, v *T) ([]byte, error) {
	if v == nil {
		return append(dst, "null"...), nil
	}
	out, err := e.encode(dst, reflect.ValueOf(v).Elem(), 0)
	if err != nil {
		return dst, fmt.Errorf("canonical encoding: %w", err)
	}
	return out, nil
}
