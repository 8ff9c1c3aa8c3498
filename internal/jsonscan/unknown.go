package jsonscan

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/grapnelhq/grapnel/internal/text/suggest"
)

// ErrUnknownField is wrapped by the error of [Decode] about a name that the type does not have.
var ErrUnknownField = errors.New("json: unknown field")

// unknownField adds the nearest known name to the error about an unknown one; encoding/json has no type for it.
func unknownField(err error, into any) error {
	quoted, ok := strings.CutPrefix(err.Error(), ErrUnknownField.Error()+" ")
	if !ok {
		return err
	}
	name, failed := strconv.Unquote(quoted)
	if failed != nil {
		return err
	}
	var known []string
	addNames(&known, reflect.TypeOf(into), map[reflect.Type]bool{})
	slices.Sort(known)
	return fmt.Errorf("%w %.100q%s", ErrUnknownField, name, suggest.DidYouMean(name, known))
}

// addNames adds the names of all members that a value of a type may have, at any depth.
func addNames(names *[]string, t reflect.Type, seen map[reflect.Type]bool) {
	if t == nil || seen[t] {
		return
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		addNames(names, t.Elem(), seen)
	case reflect.Struct:
		for f := range t.Fields() {
			tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if tag == "-" || !f.IsExported() && !f.Anonymous {
				continue
			}
			if tag != "" {
				*names = append(*names, tag)
			}
			addNames(names, f.Type, seen)
		}
	default: // has no members
	}
}

// KindName names a kind of value for people, as JSON Schema, [encoding/json.UnmarshalTypeError] or [reflect.Kind] has it.
func KindName(kind string) string {
	if literal, ok := strings.CutPrefix(kind, "number "); ok {
		return "the number " + literal
	}
	return cmp.Or(kindNames[strings.TrimRight(kind, "0123456789")], kind)
}

//nolint:gochecknoglobals // immutable
var kindNames = map[string]string{
	"string": "a text", "boolean": "true or false", "bool": "true or false", "null": "nothing",
	"integer": "a whole number", "int": "a whole number", "uint": "a whole number", "number": "a number", "float": "a number",
	"array": "a list", "slice": "a list", "object": "a mapping", "map": "a mapping", "struct": "a mapping",
}
