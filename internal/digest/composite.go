package digest

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
)

// pointer follows a pointer; nil is null. Between containers a pointer takes
// no level of its own, since the container below it counts. One that leads to
// a pointer or an interface does, or a value that is its own target would
// never end.
func (p *planner) pointer(t reflect.Type) (encodeFunc, error) {
	elem, err := p.encoder(t.Elem())
	if err != nil {
		return nil, err
	}
	kind := t.Elem().Kind()
	chained := kind == reflect.Pointer || kind == reflect.Interface
	return func(dst []byte, v reflect.Value, depth int) ([]byte, error) {
		if v.IsNil() {
			return append(dst, "null"...), nil
		}
		if chained {
			if depth >= MaxDepth {
				return dst, ErrTooDeep
			}
			depth++
		}
		return elem(dst, v.Elem(), depth)
	}, nil
}

// slice plans a slice; bytes are base64 unless they encode themselves.
func (p *planner) slice(t reflect.Type) (encodeFunc, error) {
	if e := t.Elem(); e.Kind() == reflect.Uint8 {
		ptr := reflect.PointerTo(e)
		if !ptr.Implements(marshalerType) && !ptr.Implements(textType) {
			return encodeBytes, nil
		}
	}
	elements, err := p.array(t)
	if err != nil {
		return nil, err
	}
	return func(dst []byte, v reflect.Value, depth int) ([]byte, error) {
		if v.IsNil() {
			return append(dst, "null"...), nil
		}
		return elements(dst, v, depth)
	}, nil
}

// array plans the elements of an array or a slice that is not nil.
func (p *planner) array(t reflect.Type) (encodeFunc, error) {
	elem, err := p.encoder(t.Elem())
	if err != nil {
		return nil, err
	}
	return func(dst []byte, v reflect.Value, depth int) ([]byte, error) {
		if depth >= MaxDepth {
			return dst, ErrTooDeep
		}
		dst = append(dst, '[')
		for i := range v.Len() {
			if i > 0 {
				dst = append(dst, ',')
			}
			var err error
			if dst, err = elem(dst, v.Index(i), depth+1); err != nil {
				return dst, fmt.Errorf("[%d]: %w", i, err)
			}
		}
		return append(dst, ']'), nil
	}, nil
}

// encodeBytes writes padded standard base64, as encoding/json does.
func encodeBytes(dst []byte, v reflect.Value, _ int) ([]byte, error) {
	if v.IsNil() {
		return append(dst, "null"...), nil
	}
	dst = append(dst, '"')
	dst = base64.StdEncoding.AppendEncode(dst, v.Bytes())
	return append(dst, '"'), nil
}

// stringMap plans a map. The map types that vocabularies are made of take a
// path without reflection.
func (p *planner) stringMap(t reflect.Type) (encodeFunc, error) {
	if t.Key().Kind() != reflect.String {
		return nil, fmt.Errorf("type %s: map keys must be strings", t)
	}
	switch t {
	case stringMapType:
		return planMap(func(dst []byte, s string, _ int) ([]byte, error) { return appendString(dst, s) }), nil
	case boolMapType:
		return planMap(func(dst []byte, b bool, _ int) ([]byte, error) { return appendBool(dst, b), nil }), nil
	case rawMapType:
		return planMap(func(dst []byte, r json.RawMessage, _ int) ([]byte, error) { return appendRaw(dst, r) }), nil
	case anyMapType:
		return planMap(appendAny), nil
	}
	elem, err := p.encoder(t.Elem())
	if err != nil {
		return nil, err
	}
	return func(dst []byte, v reflect.Value, depth int) ([]byte, error) {
		return appendReflectMap(dst, v, elem, depth)
	}, nil
}

// planMap serves the unnamed type map[string]V.
func planMap[V any](elem func(dst []byte, v V, depth int) ([]byte, error)) encodeFunc {
	return func(dst []byte, v reflect.Value, depth int) ([]byte, error) {
		m, ok := reflect.TypeAssert[map[string]V](v)
		if !ok {
			return dst, fmt.Errorf("%s is not the planned map type", v.Type())
		}
		return appendMap(dst, m, elem, depth)
	}
}

// appendMap writes m with its names in UTF-16 order.
func appendMap[V any](dst []byte, m map[string]V, elem func([]byte, V, int) ([]byte, error), depth int) ([]byte, error) {
	if m == nil {
		return append(dst, "null"...), nil
	}
	if depth >= MaxDepth {
		return dst, ErrTooDeep
	}
	var room [16]string // most maps are small; their names stay on the stack
	names := room[:0]
	for name := range m {
		names = append(names, name)
	}
	slices.SortFunc(names, compareUTF16[string])
	dst = append(dst, '{')
	for i, name := range names {
		var err error
		if dst, err = appendName(dst, name, i == 0); err != nil {
			return dst, err
		}
		if dst, err = elem(dst, m[name], depth+1); err != nil {
			return dst, fmt.Errorf("%q: %w", name, err)
		}
	}
	return append(dst, '}'), nil
}

// member is one entry of a map that is walked by reflection.
type member struct {
	name  string
	value reflect.Value
}

// appendReflectMap is appendMap for types known only at run time.
func appendReflectMap(dst []byte, v reflect.Value, elem encodeFunc, depth int) ([]byte, error) {
	if v.IsNil() {
		return append(dst, "null"...), nil
	}
	if depth >= MaxDepth {
		return dst, ErrTooDeep
	}
	// Two calls of MapIndex per member would cost more than keeping the values.
	members := make([]member, 0, v.Len())
	for iter := v.MapRange(); iter.Next(); {
		members = append(members, member{iter.Key().String(), iter.Value()})
	}
	slices.SortFunc(members, func(a, b member) int { return compareUTF16(a.name, b.name) })
	dst = append(dst, '{')
	for i, m := range members {
		var err error
		if dst, err = appendName(dst, m.name, i == 0); err != nil {
			return dst, err
		}
		if dst, err = elem(dst, m.value, depth+1); err != nil {
			return dst, fmt.Errorf("%q: %w", m.name, err)
		}
	}
	return append(dst, '}'), nil
}

// appendName writes a member's name, colon included, and the comma before it.
func appendName(dst []byte, name string, first bool) ([]byte, error) {
	if !first {
		dst = append(dst, ',')
	}
	dst, err := appendString(dst, name)
	if err != nil {
		return dst, fmt.Errorf("member name: %w", err)
	}
	return append(dst, ':'), nil
}
