package cond

import (
	"encoding/json"
	"reflect"
	"strings"

	"github.com/grapnelhq/grapnel/phases"
)

// kind is what is known of a value before it is there.
type kind uint8

// The kinds of values.
const (
	kindAny kind = iota // embedded JSON and everything computed from it
	kindText
	kindBool
	kindInt
	kindFloat
	kindList
	kindObject
)

// shape is a kind with what is inside.
type shape struct {
	kind kind
	// fields are the names that an object has. Nil means that nothing is known.
	fields map[string]*shape
	// elem is the shape of a list's entries; nil means that nothing is known.
	elem *shape
}

// typeOf is the Go type that the type checker is told; nil is any.
func (s *shape) typeOf() reflect.Type {
	switch s.kind {
	case kindText:
		return reflect.TypeFor[string]()
	case kindBool:
		return reflect.TypeFor[bool]()
	case kindInt:
		return reflect.TypeFor[int]()
	case kindFloat:
		return reflect.TypeFor[float64]()
	case kindObject:
		return reflect.TypeFor[map[string]any]()
	case kindList:
		if s.elem != nil && s.elem.kind == kindText {
			return reflect.TypeFor[[]string]()
		}
		return reflect.TypeFor[[]any]()
	default:
		return nil
	}
}

// shapeOf reads the shape of an input's field from its Go type.
func shapeOf(t reflect.Type) *shape {
	// These types are structs or bytes in Go and something else in JSON.
	switch t {
	case reflect.TypeFor[phases.Text](), reflect.TypeFor[phases.Preview]():
		return &shape{kind: kindText}
	case reflect.TypeFor[json.RawMessage]():
		return &shape{}
	}
	switch t.Kind() {
	case reflect.String:
		return &shape{kind: kindText}
	case reflect.Bool:
		return &shape{kind: kindBool}
	case reflect.Int:
		return &shape{kind: kindInt}
	case reflect.Float64:
		return &shape{kind: kindFloat}
	case reflect.Slice:
		return &shape{kind: kindList, elem: shapeOf(t.Elem())}
	case reflect.Struct:
		s := &shape{kind: kindObject, fields: map[string]*shape{}}
		for f := range t.Fields() {
			if name := jsonName(f); name != "" {
				s.fields[name] = shapeOf(f.Type)
			}
		}
		return s
	default:
		return &shape{}
	}
}

// jsonName is the name of a field in JSON, "" for one that is not in it.
func jsonName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	if name == "-" {
		return ""
	}
	return name
}

// plain turns an input's field into what its shape says. Structs become maps
// by JSON name, embedded JSON is decoded.
func plain(v reflect.Value) (any, error) {
	switch x := v.Interface().(type) {
	case string:
		return x, nil
	case []string:
		return x, nil
	case phases.Text:
		return x.Value, nil
	case phases.Preview:
		return x.Text, nil
	case json.RawMessage:
		return decode(x)
	}
	switch v.Kind() {
	case reflect.String:
		return v.String(), nil
	case reflect.Bool:
		return v.Bool(), nil
	case reflect.Int:
		return int(v.Int()), nil
	case reflect.Float64:
		return v.Float(), nil
	case reflect.Slice:
		return plainList(v)
	case reflect.Struct:
		return plainObject(v)
	default:
		return nil, nil
	}
}

// plainList turns a list of structs into one of objects.
func plainList(v reflect.Value) (any, error) {
	list := make([]any, v.Len())
	for i := range list {
		entry, err := plain(v.Index(i))
		if err != nil {
			return nil, err
		}
		list[i] = entry
	}
	return list, nil
}

// plainObject turns a struct into an object with the names that it has in JSON.
// Zero fields are there too: a condition may ask for them.
func plainObject(v reflect.Value) (any, error) {
	object := make(map[string]any, v.NumField())
	for i := range v.NumField() {
		name := jsonName(v.Type().Field(i))
		if name == "" {
			continue
		}
		field, err := plain(v.Field(i))
		if err != nil {
			return nil, err
		}
		object[name] = field
	}
	return object, nil
}
