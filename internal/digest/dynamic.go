package digest

import (
	"encoding/json"
	"fmt"
	"reflect"
)

// encodeInterface writes what the interface holds; nil is null.
func encodeInterface(dst []byte, v reflect.Value, depth int) ([]byte, error) {
	if v.IsNil() {
		return append(dst, "null"...), nil
	}
	return appendAny(dst, v.Interface(), depth)
}

// appendAny writes a value of a type that is known only now. The types that
// JSON decodes into, and those that people put beside them by hand, take a
// path without planning.
func appendAny(dst []byte, x any, depth int) ([]byte, error) {
	switch x := x.(type) {
	case nil:
		return append(dst, "null"...), nil
	case string:
		return appendString(dst, x)
	case bool:
		return appendBool(dst, x), nil
	case float64:
		return appendFloat(dst, x)
	case int:
		return appendInt(dst, int64(x)), nil
	case int64:
		return appendInt(dst, x), nil
	case json.Number:
		return appendNumber(dst, x)
	case json.RawMessage:
		return appendRaw(dst, x)
	case map[string]any:
		return appendMap(dst, x, appendAny, depth)
	case []any:
		return appendList(dst, x, depth)
	default:
		return appendPlanned(dst, x, depth)
	}
}

// appendList is the list of values of unknown type, as JSON decodes it.
func appendList(dst []byte, list []any, depth int) ([]byte, error) {
	if list == nil {
		return append(dst, "null"...), nil
	}
	if depth >= MaxDepth {
		return dst, ErrTooDeep
	}
	dst = append(dst, '[')
	for i, x := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		var err error
		if dst, err = appendAny(dst, x, depth+1); err != nil {
			return dst, fmt.Errorf("[%d]: %w", i, err)
		}
	}
	return append(dst, ']'), nil
}

// appendPlanned plans the type of x for this one value. A type without a JSON
// form is an error here and not a panic: it came with the data.
func appendPlanned(dst []byte, x any, depth int) ([]byte, error) {
	v := reflect.ValueOf(x)
	encode, err := newPlanner().encoder(v.Type())
	if err != nil {
		return dst, err
	}
	return encode(dst, v, depth)
}
