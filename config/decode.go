package config

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/grapnelhq/grapnel/phases"
)

// decoder fills Go values from nodes. Every mistake is reported with its place,
// and the value concerned stays zero.
type decoder struct {
	*report

	rules map[string]rule
	// phases are the names of the standard phases, for messages.
	phases []string
	// lookup finds variables of the environment.
	lookup func(string) (string, bool)
}

// jsonName returns the key of a struct field, "" for one that is not in the file.
func jsonName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	if !f.IsExported() || name == "-" {
		return ""
	}
	return name
}

// value decodes n into v, a settable value. n is present, but may be null. The
// rule is that of the key, or zero for an element of a list or a map.
func (d *decoder) value(n *node, v reflect.Value, r rule) {
	if special, ok := d.special(v, r); ok {
		special(n)
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if d.nothing(n, v.Type().Elem().Kind()) {
			return
		}
		v.Set(reflect.New(v.Type().Elem()))
		d.value(n, v.Elem(), r)
		if v.Elem().Kind() == reflect.Slice && v.Elem().IsNil() {
			v.Elem().Set(reflect.MakeSlice(v.Elem().Type(), 0, 0)) // says "none" where nil says nothing
		}
	case reflect.Struct:
		d.structure(n, v)
	case reflect.Map:
		d.mapping(n, v)
	case reflect.Slice:
		d.sequence(n, v)
	case reflect.Bool:
		if d.want(n, boolNode) {
			v.SetBool(n.text == "true")
		}
	case reflect.Int:
		d.integer(n, v, r)
	case reflect.String:
		d.text(n, v, r)
	default:
		panic(fmt.Sprintf("config: no rule for decoding %v", v.Type())) // a field of a new kind; tests decode every type
	}
}

// Types come before kinds: a Duration is an integer to reflection, and a Secret
// is a struct.

// special returns how a type with an encoding of its own is decoded.
func (d *decoder) special(v reflect.Value, r rule) (func(*node), bool) {
	switch p := v.Addr().Interface().(type) {
	case *phases.Duration:
		return func(n *node) { d.duration(n, p, r) }, true
	case *Size:
		return func(n *node) { d.size(n, p, r) }, true
	case *Secret:
		return func(n *node) { d.secret(n, p) }, true
	case *phases.OnFailure:
		return func(n *node) { d.onFailure(n, p) }, true
	case *phases.Contributions:
		return func(n *node) { d.contributions(n, p) }, true
	case *json.RawMessage:
		return func(n *node) { *p = d.rawJSON(n, r) }, true
	case *time.Time:
		return func(n *node) { d.unmarshalText(n, p) }, true
	}
	return nil, false
}

// want reports whether n is of a kind, and otherwise the mistake.
func (d *decoder) want(n *node, kind nodeKind) bool {
	switch {
	case n.kind == kind:
		return true
	// A scalar that is there without a value is no way to ask for the default:
	// in "sha256:" it is more likely that something was forgotten.
	case n.kind == nullNode:
		d.badf(n, "there is no value; want %s", kind)
	case kind == textNode && (n.kind == boolNode || n.kind == numberNode):
		d.badf(n, "want a text, got %s; put it in quotes", n.kind)
	default:
		d.badf(n, "want %s, got %s", kind, n.kind)
	}
	return false
}

// nothing reports whether n is a list or mapping without a value, which counts
// as absent: what remains when all entries are commented out.
func (d *decoder) nothing(n *node, kind reflect.Kind) bool {
	return n.kind == nullNode && (kind == reflect.Struct || kind == reflect.Map || kind == reflect.Slice)
}

// structure decodes the keys of a struct, and refuses others.
func (d *decoder) structure(n *node, v reflect.Value) {
	if d.nothing(n, reflect.Struct) || !d.want(n, mappingNode) {
		return
	}
	d.fields(n, v, fieldsOf(v.Type()), "")
}

// fields decodes the keys of n. One key, already read by the caller, is skipped.
func (d *decoder) fields(n *node, v reflect.Value, fields []field, skip string) {
	byKey := make(map[string]field, len(fields))
	known := make([]string, 0, len(fields)+1)
	if skip != "" {
		known = append(known, skip)
	}
	for _, f := range fields {
		byKey[f.key] = f
		known = append(known, f.key)
	}
	for _, e := range n.entries {
		f, ok := byKey[e.key]
		switch {
		case ok:
			d.value(e.value, v.FieldByIndex(f.index), d.rules[f.owner+"."+f.key])
		case e.key != skip:
			d.addf(e.line, e.column, "unknown key %.80q%s", e.key, hint(e.key, known))
		}
	}
	// Behind the others: a required key that was misspelt is reported once, with
	// the name that was meant.
	for _, f := range fields {
		if d.rules[f.owner+"."+f.key].required && n.child(f.key) == nil {
			d.badKeyf(n, "%s is missing", f.key)
		}
	}
}

// didYouMean is [phases.DidYouMean] for names out of a file: comparing takes time
// in proportion to both lengths, so a huge name has no nearest one.
func didYouMean(name string, known []string) string {
	if len(name) > phases.MaxIDBytes {
		return ""
	}
	return phases.DidYouMean(name, known)
}

// hint names the nearest known word, or all of them when none is near.
func hint(name string, known []string) string {
	if near := didYouMean(name, known); near != "" {
		return near
	}
	return "; known are " + strings.Join(known, ", ")
}

// mapping decodes a map with keys of the operator's choice. An empty one is as
// good as none.
func (d *decoder) mapping(n *node, v reflect.Value) {
	if d.nothing(n, reflect.Map) || !d.want(n, mappingNode) {
		return
	}
	t := v.Type()
	if len(n.entries) == 0 {
		return
	}
	v.Set(reflect.MakeMapWithSize(t, len(n.entries)))
	for _, e := range n.entries {
		if t.Key() == reflect.TypeFor[phases.Phase]() {
			d.phase(e.key, e.line, e.column)
		}
		value := reflect.New(t.Elem()).Elem()
		d.value(e.value, value, rule{})
		v.SetMapIndex(reflect.ValueOf(e.key).Convert(t.Key()), value)
	}
}

// sequence decodes each element, so that element i of the slice is item i of the
// node whatever is wrong with it. Of names, an empty list is as good as none.
func (d *decoder) sequence(n *node, v reflect.Value) {
	if d.nothing(n, reflect.Slice) || !d.want(n, listNode) {
		return
	}
	if len(n.items) == 0 && v.Type() == reflect.TypeFor[[]string]() {
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), len(n.items), len(n.items)))
	for i, item := range n.items {
		if item.kind == nullNode {
			d.badf(item, "there is no value")
			continue
		}
		d.value(item, v.Index(i), rule{})
	}
}

// integer decodes a whole number, also hexadecimal or octal, within the bounds of
// its rule.
func (d *decoder) integer(n *node, v reflect.Value, r rule) {
	if !d.want(n, numberNode) {
		return
	}
	i, ok := wholeNumber(n.text)
	if !ok || v.OverflowInt(i) {
		d.badf(n, "want a whole number, got %s", n.text)
		return
	}
	if r.bounded && (i < r.low || i > r.high) {
		d.badf(n, "%d is out of range; %s", i, d.rangeOf(r, strconv.FormatInt(r.low, 10), strconv.FormatInt(r.high, 10)))
		return
	}
	v.SetInt(i)
}

// rangeOf describes bounds that are formatted already.
func (d *decoder) rangeOf(r rule, low, high string) string {
	switch {
	case r.low == r.high:
		return "it is " + low
	case r.high == math.MaxInt64:
		return "it is at least " + low
	}
	return "it is between " + low + " and " + high
}

// text decodes a text. Numbers and booleans are not taken for texts: YAML has
// changed the spelling of both too often (1.10 would be another version than
// "1.10", and in some readers no is false).
func (d *decoder) text(n *node, v reflect.Value, r rule) {
	if !d.want(n, textNode) {
		return
	}
	words := r.words
	if words == nil {
		words = wordsOf(v.Type())
	}
	if words != nil && !slices.Contains(words, n.text) {
		d.badf(n, "unknown word %.80q%s", n.text, hint(n.text, words))
		return
	}
	if v.Type() == reflect.TypeFor[phases.Phase]() && !d.phase(n.text, n.line, n.column) {
		return
	}
	v.SetString(n.text)
}

// phase checks the name of a phase. Those of a host's own are known to the
// engine only.
func (d *decoder) phase(name string, line, column int) bool {
	parts := strings.Split(name, ".")
	custom := parts[0] == "x" && len(parts) >= 3 && !slices.Contains(parts, "")
	if custom || slices.Contains(d.phases, name) {
		return true
	}
	d.addf(line, column, "unknown phase %.80q%s", name, didYouMean(name, d.phases))
	return false
}
