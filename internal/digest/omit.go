package digest

import "reflect"

// omission returns the test that leaves a field out, or nil.
func omission(t reflect.Type, options []string) func(reflect.Value) bool {
	var zero, empty func(reflect.Value) bool
	for _, option := range options {
		switch option {
		case "omitzero":
			zero = zeroTest(t)
		case "omitempty":
			empty = isEmpty
		}
	}
	switch {
	case zero != nil && empty != nil:
		return func(v reflect.Value) bool { return zero(v) || empty(v) }
	case zero != nil:
		return zero
	default:
		return empty
	}
}

// isEmpty is encoding/json's notion: false, 0, nil, and what has no length. A
// struct is never empty.
func isEmpty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Array, reflect.Map, reflect.Slice, reflect.String:
		return v.Len() == 0
	case reflect.Struct:
		return false
	default:
		return v.IsZero()
	}
}

// zeroTest asks the type's own IsZero method where there is one, through a
// pointer where that saves a copy.
func zeroTest(t reflect.Type) func(reflect.Value) bool {
	if t.Kind() != reflect.Pointer && t.Kind() != reflect.Interface && !reflect.PointerTo(t).Implements(zeroMethodType) {
		return reflect.Value.IsZero
	}
	if (t.Kind() == reflect.Pointer || t.Kind() == reflect.Interface) && !t.Implements(zeroMethodType) {
		return reflect.Value.IsZero
	}
	return func(v reflect.Value) bool {
		switch {
		case isNil(v), v.Kind() == reflect.Interface && isNil(v.Elem()):
			return true
		case v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface:
			// The method belongs to the value itself.
		case v.CanAddr():
			v = v.Addr()
		default:
			box := reflect.New(v.Type())
			box.Elem().Set(v)
			v = box
		}
		z, ok := reflect.TypeAssert[interface{ IsZero() bool }](v)
		return ok && z.IsZero()
	}
}

// quoted applies the tag option string, which encoding/json heeds on strings,
// numbers and booleans, or one pointer to them, that do not encode themselves.
func quoted(t reflect.Type, plain encodeFunc) encodeFunc {
	inner := elemOfUnnamed(t)
	ptr := reflect.PointerTo(inner)
	if ptr.Implements(marshalerType) || ptr.Implements(textType) {
		return plain
	}
	switch inner.Kind() {
	case reflect.Bool, reflect.String, reflect.Float32, reflect.Float64,
		reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
	default:
		return plain
	}
	return func(dst []byte, v reflect.Value, depth int) ([]byte, error) {
		if v.Kind() != reflect.Pointer {
			return encodeQuoted(dst, v, depth)
		}
		if v.IsNil() {
			return append(dst, "null"...), nil
		}
		return encodeQuoted(dst, v.Elem(), depth)
	}
}
