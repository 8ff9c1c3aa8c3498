package rpc

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/phases"
)

// Typed makes a method of a Go function. P is a struct whose JSON is the params'
// object; the schemas are generated from P and R by [New].
//
// Decoding is strict: no unknown members, no duplicates, no strings that are no
// text or hold a NUL; the params' own members have names in exactly their case, and
// those that the schema requires (without omitempty or omitzero) are there. Absent
// params are an empty object. P may also be [json.RawMessage]: then the function decodes.
func Typed[P, R any](name string, right Right, doc string, call func(ctx context.Context, c *Caller, p P) (R, error)) Method {
	known := membersOf(reflect.TypeFor[P]())
	return Method{
		Name: name, Doc: doc, Right: right,
		in: reflect.TypeFor[P](), out: reflect.TypeFor[R](),
		Call: func(ctx context.Context, c *Caller, params json.RawMessage) (any, error) {
			var p P
			if err := decodeParams(params, known, &p); err != nil {
				return nil, err
			}
			return call(ctx, c, p)
		},
	}
}

// TypedNotification describes a notification by the Go type of its params.
func TypedNotification[P any](name, doc string) Notification {
	return Notification{Name: name, Doc: doc, in: reflect.TypeFor[P]()}
}

// members are those of a struct's JSON.
type members struct {
	names []string
	// needed are the names without which the params make no sense. Without this
	// check a forgotten text would be an empty one.
	needed []string
}

// membersOf returns nil where the type is no struct or decodes itself, so that
// nothing is known.
func membersOf(t reflect.Type) *members {
	if t.Kind() != reflect.Struct || reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()) {
		return nil
	}
	known := &members{}
	for _, f := range reflect.VisibleFields(t) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() || name == "-" || f.Anonymous && name == "" {
			continue
		}
		name = cmp.Or(name, f.Name)
		known.names = append(known.names, name)
		if !strings.Contains(options, "omit") { // omitempty or omitzero
			known.needed = append(known.needed, name)
		}
	}
	return known
}

// decodeParams reads params, which are valid JSON, into a value. Known are the
// members that the object may have; nil does not look.
func decodeParams(params json.RawMessage, known *members, into any) error {
	if raw, ok := into.(*json.RawMessage); ok {
		*raw = params
		return nil
	}
	if len(params) == 0 {
		params = json.RawMessage("{}")
	}
	if params[0] != '{' {
		return Errorf(CodeInvalid, "params: this method takes them by name: an object, not an array")
	}
	missing, err := checkNames(params, known)
	if err != nil {
		return err
	}
	dec := json.NewDecoder(bytes.NewReader(params))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return &Error{Code: CodeInvalid, Message: decodeMessage(err), Err: err}
	}
	if len(missing) > 0 {
		return Errorf(CodeInvalid, "%s: it is missing", missing[0])
	}
	return nil
}

// checkNames refuses members of an object that are not known, where encoding/json
// takes "Name" for "name". It returns the needed ones that are not there, or null.
func checkNames(object json.RawMessage, known *members) (missing []string, err error) {
	if known == nil {
		return nil, nil
	}
	missing = slices.Clone(known.needed)
	s := scanner{text: object, max: maxScan}
	err = s.members(0, func(m member) error {
		if !slices.Contains(known.names, m.name) {
			return Errorf(CodeInvalid, "params: unknown member %q%s", clip(m.name), phases.DidYouMean(m.name, known.names))
		}
		if m.value[0] != 'n' {
			missing = slices.DeleteFunc(missing, func(name string) bool { return name == m.name })
		}
		return nil
	})
	return missing, err
}

// decodeMessage says for people what encoding/json says for programmers.
func decodeMessage(err error) string {
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		at := "params"
		if wrong.Field != "" {
			at += "." + wrong.Field
		}
		return fmt.Sprintf("%s: a %s is no %s", at, wrong.Value, jsonKind(wrong.Type))
	}
	text := strings.TrimPrefix(err.Error(), "json: ")
	return "params: " + strings.Replace(text, "unknown field", "unknown member", 1)
}

// jsonKind names what the JSON of a Go type is.
func jsonKind(t reflect.Type) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.Bool:
		return "boolean"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return "integer of its size"
	case reflect.Float32, reflect.Float64:
		return "number"
	case reflect.String:
		return "string"
	case reflect.Slice, reflect.Array:
		return "array"
	default:
		return "object"
	}
}

// clip shortens what a client sent, for messages.
func clip(text string) string {
	const longest = 64
	if len(text) <= longest {
		return text
	}
	return strings.ToValidUTF8(text[:longest], "") + "…"
}
