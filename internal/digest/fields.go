package digest

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode"
)

// field is one member of a planned struct.
type field struct {
	name   string
	key    []byte // the name as it is written: quoted, with its colon
	index  []int  // the way through embedded structs
	tagged bool   // the name comes from a tag, which wins among equals
	omit   func(reflect.Value) bool
	encode encodeFunc
}

// structure plans a struct: its members in canonical order.
func (p *planner) structure(t reflect.Type) (encodeFunc, error) {
	candidates, err := p.collect(t, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("type %s: %w", t, err)
	}
	fields := dominant(candidates)
	return func(dst []byte, v reflect.Value, depth int) ([]byte, error) {
		if depth >= MaxDepth {
			return dst, ErrTooDeep
		}
		return appendStruct(dst, v, fields, depth+1)
	}, nil
}

// appendStruct writes the members that are there; depth is that of the members.
func appendStruct(dst []byte, v reflect.Value, fields []field, depth int) ([]byte, error) {
	dst = append(dst, '{')
	empty := true
	for i := range fields {
		f := &fields[i]
		value, ok := follow(v, f.index)
		if !ok || f.omit != nil && f.omit(value) {
			continue
		}
		if !empty {
			dst = append(dst, ',')
		}
		empty = false
		dst = append(dst, f.key...)
		var err error
		if dst, err = f.encode(dst, value, depth); err != nil {
			return dst, fmt.Errorf("%s: %w", f.name, err)
		}
	}
	return append(dst, '}'), nil
}

// follow goes to a field; a nil embedded pointer on the way means that the
// member is absent.
func follow(v reflect.Value, index []int) (reflect.Value, bool) {
	if len(index) == 1 {
		return v.Field(index[0]), true
	}
	for _, i := range index {
		if v.Kind() == reflect.Pointer {
			if v.IsNil() {
				return reflect.Value{}, false
			}
			v = v.Elem()
		}
		v = v.Field(i)
	}
	return v, true
}

// collect returns every field of t that could become a member, embedded
// structs included. within holds the embedding types on the way, at which a
// type that embeds itself ends: what it would add below is hidden anyway.
func (p *planner) collect(t reflect.Type, prefix []int, within []reflect.Type) ([]field, error) {
	within = append(slices.Clone(within), t)
	var out []field
	for i := range t.NumField() {
		sf := t.Field(i)
		name, options, ok := memberName(sf)
		if !ok {
			continue
		}
		index := append(slices.Clone(prefix), i)
		inner := elemOfUnnamed(sf.Type)
		if sf.Anonymous && name == "" && inner.Kind() == reflect.Struct {
			if slices.Contains(within, inner) {
				continue
			}
			nested, err := p.collect(inner, index, within)
			if err != nil {
				return nil, err
			}
			out = append(out, nested...)
			continue
		}
		f, err := p.member(sf, name, options)
		if err != nil {
			return nil, fmt.Errorf("field %s: %w", sf.Name, err)
		}
		f.index = index
		out = append(out, f)
	}
	return out, nil
}

// member plans a field under its name.
func (p *planner) member(sf reflect.StructField, name string, options []string) (field, error) {
	encode, err := p.encoder(sf.Type)
	if err != nil {
		return field{}, err
	}
	if slices.Contains(options, "string") {
		encode = quoted(sf.Type, encode)
	}
	f := field{name: name, tagged: name != "", omit: omission(sf.Type, options), encode: encode}
	if name == "" {
		f.name = sf.Name
	}
	if f.key, err = appendString(nil, f.name); err != nil {
		return field{}, err
	}
	f.key = append(f.key, ':')
	return f, nil
}

// memberName reads the tag as encoding/json does; not ok means no member. An
// unexported embedded struct is one: its exported fields are promoted.
func memberName(sf reflect.StructField) (name string, options []string, ok bool) {
	if !sf.IsExported() {
		t := sf.Type
		if t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		if !sf.Anonymous || t.Kind() != reflect.Struct {
			return "", nil, false
		}
	}
	tag := sf.Tag.Get("json")
	if tag == "-" {
		return "", nil, false
	}
	parts := strings.Split(tag, ",")
	if !validName(parts[0]) {
		parts[0] = ""
	}
	return parts[0], parts[1:], true
}

// validName is encoding/json's rule for names in tags; another name is ignored
// and the field's own is used.
func validName(s string) bool {
	for _, c := range s {
		if !strings.ContainsRune("!#$%&()*+-./:;<=>?@[]^_{|}~ ", c) && !unicode.IsLetter(c) && !unicode.IsDigit(c) {
			return false
		}
	}
	return s != ""
}

// elemOfUnnamed follows one unnamed pointer.
func elemOfUnnamed(t reflect.Type) reflect.Type {
	if t.Name() == "" && t.Kind() == reflect.Pointer {
		return t.Elem()
	}
	return t
}

// dominant applies Go's rule for promoted fields, tags first among equals: per
// name the shallowest wins, and where two are equal none does. It returns the
// winners in canonical order.
func dominant(candidates []field) []field {
	slices.SortStableFunc(candidates, func(a, b field) int {
		if c := compareUTF16(a.name, b.name); c != 0 {
			return c
		}
		return a.weight() - b.weight()
	})
	var out []field
	for len(candidates) > 0 {
		first, n := candidates[0], 1
		for n < len(candidates) && candidates[n].name == first.name {
			n++
		}
		if n == 1 || candidates[1].weight() != first.weight() {
			out = append(out, first)
		}
		candidates = candidates[n:]
	}
	return out
}

// weight is lower for fields that hide others of their name.
func (f *field) weight() int {
	w := 2 * len(f.index)
	if f.tagged {
		w--
	}
	return w
}
