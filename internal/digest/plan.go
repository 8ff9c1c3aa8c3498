package digest

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"time"
)

// encodeFunc appends one value of the type that it was planned for. depth is
// the number of arrays and objects around it. On an error what it returns as
// bytes is of no use.
type encodeFunc func(dst []byte, v reflect.Value, depth int) ([]byte, error)

// Types and interfaces that a plan asks about; never changed.
//
//nolint:gochecknoglobals // immutable tables
var (
	timeType       = reflect.TypeFor[time.Time]()
	rawType        = reflect.TypeFor[json.RawMessage]()
	numberType     = reflect.TypeFor[json.Number]()
	anyMapType     = reflect.TypeFor[map[string]any]()
	stringMapType  = reflect.TypeFor[map[string]string]()
	boolMapType    = reflect.TypeFor[map[string]bool]()
	rawMapType     = reflect.TypeFor[map[string]json.RawMessage]()
	marshalerType  = reflect.TypeFor[json.Marshaler]()
	textType       = reflect.TypeFor[encoding.TextMarshaler]()
	zeroMethodType = reflect.TypeFor[interface{ IsZero() bool }]()
)

// planner turns types into encode functions. It lives for one plan; what it
// returns does not refer to it.
type planner struct {
	seen map[reflect.Type]*slot
}

// slot is the place of a function that is still being planned, so that a type
// can refer to itself.
type slot struct {
	encode encodeFunc
}

// forward is used by the type's own parts; by then the slot is filled.
func (s *slot) forward(dst []byte, v reflect.Value, depth int) ([]byte, error) {
	return s.encode(dst, v, depth)
}

// newPlanner returns a planner that knows no type yet.
func newPlanner() *planner {
	return &planner{seen: make(map[reflect.Type]*slot)}
}

// encoder returns the function for t, planning it at the first call.
func (p *planner) encoder(t reflect.Type) (encodeFunc, error) {
	if s, ok := p.seen[t]; ok {
		if s.encode == nil {
			return s.forward, nil
		}
		return s.encode, nil
	}
	s := &slot{}
	p.seen[t] = s
	encode, err := p.plan(t)
	if err != nil {
		delete(p.seen, t)
		return nil, err
	}
	s.encode = encode
	return encode, nil
}

// plan decides who encodes t, in encoding/json's order: the type's own methods
// go before its kind, and methods of the pointer count where a value can be
// addressed. Pointers are followed first: what *T can do, its element can.
func (p *planner) plan(t reflect.Type) (encodeFunc, error) {
	switch t {
	case timeType:
		return encodeTime, nil
	case rawType:
		return encodeRaw, nil
	case numberType:
		return encodeNumber, nil
	}
	if t.Kind() == reflect.Pointer {
		return p.pointer(t)
	}
	base, err := p.byValue(t)
	var addressed encodeFunc
	switch ptr := reflect.PointerTo(t); {
	case t.Kind() == reflect.Interface:
		return base, err
	case ptr.Implements(marshalerType):
		addressed = encodeMarshaler
	case ptr.Implements(textType):
		addressed = encodeText
	default:
		return base, err
	}
	if err != nil {
		// Only the pointer's method can encode t, so it depends on the value.
		base = func(dst []byte, _ reflect.Value, _ int) ([]byte, error) { return dst, err }
	}
	return func(dst []byte, v reflect.Value, depth int) ([]byte, error) {
		if v.CanAddr() {
			return addressed(dst, v.Addr(), depth)
		}
		return base(dst, v, depth)
	}, nil
}

// byValue plans t for values that cannot be addressed, such as those in a map:
// methods of the pointer do not count.
func (p *planner) byValue(t reflect.Type) (encodeFunc, error) {
	switch {
	case t.Implements(marshalerType):
		return encodeMarshaler, nil
	case t.Implements(textType):
		return encodeText, nil
	default:
		return p.byKind(t)
	}
}

// byKind plans t without regard to its methods. What is missing here has no
// JSON form: channels, functions, complex numbers, unsafe pointers.
func (p *planner) byKind(t reflect.Type) (encodeFunc, error) {
	switch t.Kind() {
	case reflect.Bool:
		return encodeBool, nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return encodeInt, nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return encodeUint, nil
	case reflect.Float32:
		return encodeFloat32, nil
	case reflect.Float64:
		return encodeFloat64, nil
	case reflect.String:
		return encodeString, nil
	case reflect.Interface:
		return encodeInterface, nil
	case reflect.Struct:
		return p.structure(t)
	case reflect.Slice:
		return p.slice(t)
	case reflect.Array:
		return p.array(t)
	case reflect.Map:
		return p.stringMap(t)
	default:
		return nil, fmt.Errorf("type %s: %s has no JSON form", t, t.Kind())
	}
}
