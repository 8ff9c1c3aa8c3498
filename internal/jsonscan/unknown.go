package jsonscan

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/grapnelhq/grapnel/internal/suggest"
)

// unknownField adds the nearest known name to the error about an unknown one; encoding/json has no type for it.
func unknownField(err error, into any) error {
	const begin = "json: unknown field "
	quoted, ok := strings.CutPrefix(err.Error(), begin)
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
	return fmt.Errorf("%s%.100q%s", begin, name, suggest.DidYouMean(name, known))
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
