package phases

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

// alwaysSent is the field that needs no grant: the tool's name.
const alwaysSent = "tool"

//nolint:gochecknoglobals // a cache of JSON field names by input type
var fieldNames sync.Map

// eachField calls do for each field of an input, by JSON name.
func eachField(in Input, do func(name string, field reflect.Value)) {
	v := reflect.ValueOf(in).Elem()
	cached, ok := fieldNames.Load(v.Type())
	if !ok {
		names := make([]string, v.NumField())
		for i := range names {
			names[i], _, _ = strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		}
		cached, _ = fieldNames.LoadOrStore(v.Type(), names)
	}
	for i, name := range cached.([]string) { //nolint:forcetypeassert // stored above
		do(name, v.Field(i))
	}
}

// members returns the members of a host's own input; nil for any other.
func members(in Input) map[string]json.RawMessage {
	custom, ok := in.(*CustomInput)
	if !ok {
		return nil
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(custom.Fields, &fields) != nil || fields == nil {
		fields = map[string]json.RawMessage{} // DecodeInput refused it earlier
	}
	return fields
}

// CloneInput returns a copy of in that shares no mutable memory with it.
func CloneInput(in Input) Input {
	v := reflect.New(reflect.TypeOf(in).Elem())
	v.Elem().Set(reflect.ValueOf(in).Elem())
	unshare(v.Elem())
	return v.Interface().(Input) //nolint:forcetypeassert // of the same type
}

// unshare replaces everything that v points to with a copy.
func unshare(v reflect.Value) {
	switch v.Kind() { //nolint:exhaustive // the others point to nothing
	case reflect.Slice:
		if v.IsNil() {
			return
		}
		c := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		reflect.Copy(c, v)
		v.Set(c)
		if k := v.Type().Elem().Kind(); k == reflect.Struct || k == reflect.Slice {
			for i := range v.Len() {
				unshare(v.Index(i))
			}
		}
	case reflect.Map: // of strings to strings
		if v.IsNil() {
			return
		}
		c := reflect.MakeMapWithSize(v.Type(), v.Len())
		for iter := v.MapRange(); iter.Next(); {
			c.SetMapIndex(iter.Key(), iter.Value())
		}
		v.Set(c)
	case reflect.Pointer:
		if v.IsNil() {
			return
		}
		c := reflect.New(v.Type().Elem())
		c.Elem().Set(v.Elem())
		v.Set(c)
	case reflect.Struct:
		for i := range v.NumField() { //nolint:modernize // the iterator allocates, at each call of a hook
			if f := v.Field(i); f.CanSet() { // the fields of a time are its own
				unshare(f)
			}
		}
	}
}

// withhold returns in without the fields that see refuses, a copy if there are any, and their names in order.
// Texts and embedded JSON become {withheld, chars}, other fields empty. The tool's name and empty fields are kept.
func withhold(in Input, see func(field string) bool) (Input, []string) {
	var names []string
	hides := func(name string, empty bool) bool {
		if empty || name == alwaysSent || see(name) {
			return false
		}
		names = append(names, name)
		return true
	}
	if fields := members(in); fields != nil {
		for name, value := range fields {
			if hides(name, len(value) == 0) {
				fields[name] = withheldRaw(value)
			}
		}
		if len(names) == 0 {
			return in, nil
		}
		text, err := json.Marshal(fields)
		if err != nil {
			text = nil // the members were decoded from JSON
		}
		out := CloneInput(in)
		out.(*CustomInput).Fields = text //nolint:forcetypeassert // it has members
		slices.Sort(names)
		return out, names
	}
	eachField(in, func(name string, field reflect.Value) {
		hides(name, field.IsZero() || field.Kind() == reflect.Slice && field.Len() == 0)
	})
	if len(names) == 0 {
		return in, nil
	}
	out := CloneInput(in)
	eachField(out, func(name string, field reflect.Value) {
		if !slices.Contains(names, name) {
			return
		}
		switch p := field.Addr().Interface().(type) {
		case *Text:
			*p = p.withhold()
		case *Preview:
			*p = p.withhold()
		case *json.RawMessage:
			*p = withheldRaw(*p)
		default:
			field.SetZero()
		}
	})
	slices.Sort(names)
	return out, names
}

// withheldRaw replaces embedded JSON that was not granted.
func withheldRaw(raw json.RawMessage) json.RawMessage {
	shape, err := json.Marshal(withheldJSON{true, utf8.RuneCount(raw)})
	if err != nil {
		return nil // two plain fields always encode
	}
	return shape
}

// inputNames returns the JSON names of the fields of in, sorted.
func inputNames(in Input) []string {
	var names []string
	eachField(in, func(name string, _ reflect.Value) { names = append(names, name) })
	slices.Sort(names)
	return names
}

// checkValue checks all texts and embedded JSON in a field of an input.
func (v *contributionCheck) checkValue(name string, field reflect.Value) {
	switch {
	case field.Type() == reflect.TypeFor[json.RawMessage]():
		v.json(name, field.Bytes(), false)
	case field.Kind() == reflect.String:
		v.text(name, field.String(), 0)
	case field.Kind() == reflect.Slice:
		for i := range field.Len() {
			v.checkValue(name, field.Index(i))
		}
	case field.Kind() == reflect.Struct:
		for i := range field.NumField() { //nolint:modernize // the iterator allocates, at each dispatch
			v.checkValue(name, field.Field(i))
		}
	}
}
