package cond

import (
	"encoding/json"
	"reflect"
	"strings"

	"github.com/expr-lang/expr/ast"

	"github.com/grapnelhq/grapnel/internal/text/suggest"
	"github.com/grapnelhq/grapnel/phases"
)

// plainType is the type that the checker of conditions sees for a Go type: inputs
// have the plain form that they have in JSON. nil is any.
func plainType(t reflect.Type) reflect.Type {
	switch t {
	case nil, reflect.TypeFor[json.RawMessage]():
		return nil
	case reflect.TypeFor[phases.Text](), reflect.TypeFor[phases.Preview]():
		return reflect.TypeFor[string]()
	}
	switch t.Kind() {
	case reflect.String:
		return reflect.TypeFor[string]()
	case reflect.Bool:
		return reflect.TypeFor[bool]()
	case reflect.Int:
		return reflect.TypeFor[int]()
	case reflect.Float64:
		return reflect.TypeFor[float64]()
	case reflect.Slice:
		if t.Elem().Kind() == reflect.String {
			return reflect.TypeFor[[]string]()
		}
		return reflect.TypeFor[[]any]()
	case reflect.Struct:
		return reflect.TypeFor[map[string]any]()
	default:
		return nil
	}
}

// member returns the type of a named member of a struct; nil if it is unknown.
func member(t reflect.Type, of, name string, at ast.Node) (reflect.Type, error) {
	if known := plainType(t); known == nil || known.Kind() != reflect.Map {
		return nil, nil
	}
	var names []string
	for f := range t.Fields() {
		switch known := jsonName(f); known {
		case "":
		case name:
			return f.Type, nil
		default:
			names = append(names, known)
		}
	}
	return nil, mistakef(at, "%q has no field %q%s", of, name, suggest.DidYouMean(name, names))
}

// entryOf returns the type of a list's entries; nil if it is unknown.
func entryOf(t reflect.Type) reflect.Type {
	if known := plainType(t); known == nil || known.Kind() != reflect.Slice {
		return nil
	}
	return t.Elem()
}

// jsonName returns a field's name in JSON, "" if JSON omits it.
func jsonName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	if name == "-" {
		return ""
	}
	return name
}

// plain returns the plain form of a value, with zero fields of structs and decoded embedded JSON.
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
		list := make([]any, v.Len())
		for i := range list {
			entry, err := plain(v.Index(i))
			if err != nil {
				return nil, err
			}
			list[i] = entry
		}
		return list, nil
	case reflect.Struct:
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
	default:
		return nil, nil
	}
}
