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

	"github.com/grapnelhq/grapnel/internal/text/suggest"
	"github.com/grapnelhq/grapnel/phases"
)

// decoder fills Go values from nodes. It reports every mistake with its place, and leaves the value zero.
type decoder struct {
	*report

	rules  map[string]rule
	lookup func(string) (string, bool) // finds variables of the environment
}

// value decodes n, which may be null, into v. The rule belongs to the key; elements of lists and maps have none.
func (d *decoder) value(n *node, v reflect.Value, r rule) {
	switch p := v.Addr().Interface().(type) {
	case *phases.Duration:
		d.duration(n, p, r)
	case *Size:
		d.size(n, p, r)
	case *Secret:
		d.secret(n, p)
	case *phases.OnFailure:
		d.onFailure(n, p)
	case *phases.Contributions:
		d.contributions(n, p)
	case *json.RawMessage:
		*p = d.rawJSON(n, r)
	case *time.Time:
		if !d.want(n, textNode) {
			return
		}
		if err := p.UnmarshalText([]byte(n.text)); err != nil {
			d.badf(n, "%.80q: %v", n.text, err)
		}
	default:
		d.byKind(n, v, r)
	}
}

func (d *decoder) byKind(n *node, v reflect.Value, r rule) {
	switch v.Kind() {
	case reflect.Pointer:
		if k := v.Type().Elem().Kind(); n.kind == nullNode && (k == reflect.Struct || k == reflect.Map || k == reflect.Slice) {
			return
		}
		v.Set(reflect.New(v.Type().Elem()))
		d.value(n, v.Elem(), r)
		if v.Elem().Kind() == reflect.Slice && v.Elem().IsNil() {
			v.Elem().Set(reflect.MakeSlice(v.Elem().Type(), 0, 0)) // empty, not absent
		}
	case reflect.Struct:
		if d.filled(n, mappingNode) {
			d.fields(n, v, "")
		}
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
		panic(fmt.Sprintf("config: no rule for decoding %v", v.Type())) // tests decode every type
	}
}

func (d *decoder) want(n *node, kind nodeKind) bool {
	switch {
	case n.kind == kind:
		return true
	case n.kind == nullNode: // more likely forgotten than a wish for the default
		d.badf(n, "there is no value; want %s", kind)
	case kind == textNode && (n.kind == boolNode || n.kind == numberNode):
		d.badf(n, "want a text, got %s; put it in quotes", n.kind)
	case kind == textNode && n.kind == mappingNode && len(n.entries) > 0: // most likely a text with a colon
		d.badf(n, "want a text, got a mapping; put a text with a colon in quotes")
	default:
		d.badf(n, "want %s, got %s", kind, n.kind)
	}
	return false
}

// filled is want for lists and mappings. One without a value, whose entries are all commented out, counts as absent.
func (d *decoder) filled(n *node, kind nodeKind) bool { return n.kind != nullNode && d.want(n, kind) }

// fields decodes the keys of n into a struct, and refuses others than these and skip.
func (d *decoder) fields(n *node, v reflect.Value, skip string) {
	byKey := map[string]field{}
	var known []string
	if skip != "" {
		known = append(known, skip)
	}
	fields := fieldsOf(v.Type())
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
	// After the others, so that a required key that was misspelt is reported once.
	for _, f := range fields {
		r := d.rules[f.owner+"."+f.key]
		switch {
		case !r.required || n.child(f.key) != nil:
		case r.bounded && r.low == r.high:
			d.badKeyf(n, "%s is missing; add %s: %d", f.key, f.key, r.low)
		default:
			d.badKeyf(n, "%s is missing", f.key)
		}
	}
}

func hint(name string, known []string) string {
	if near := suggest.DidYouMean(name, known); near != "" {
		return near
	}
	return "; known are " + strings.Join(known, ", ")
}

func (d *decoder) mapping(n *node, v reflect.Value) {
	if !d.filled(n, mappingNode) || len(n.entries) == 0 {
		return
	}
	t := v.Type()
	v.Set(reflect.MakeMap(t))
	for _, e := range n.entries {
		if t.Key() == reflect.TypeFor[phases.Phase]() {
			d.phase(e.key, e.line, e.column)
		}
		value := reflect.New(t.Elem()).Elem()
		d.value(e.value, value, rule{})
		v.SetMapIndex(reflect.ValueOf(e.key).Convert(t.Key()), value)
	}
}

// sequence decodes a list: element i of the slice is item i of the node, whatever is
// wrong with it. An empty list of names stays nil.
func (d *decoder) sequence(n *node, v reflect.Value) {
	if !d.filled(n, listNode) || len(n.items) == 0 && v.Type() == reflect.TypeFor[[]string]() {
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

func (d *decoder) integer(n *node, v reflect.Value, r rule) {
	if !d.want(n, numberNode) {
		return
	}
	i, err := strconv.ParseInt(n.text, 10, 64)
	if err != nil || v.OverflowInt(i) {
		d.badf(n, "want a whole number, got %s", n.text)
		return
	}
	if r.bounded && (i < r.low || i > r.high) {
		d.badf(n, "%d is out of range; %s", i, rangeOf(r, strconv.FormatInt(r.low, 10), strconv.FormatInt(r.high, 10)))
		return
	}
	v.SetInt(i)
}

func rangeOf(r rule, low, high string) string {
	switch {
	case r.low == r.high:
		return "it is " + low
	case r.high == math.MaxInt64:
		return "it is at least " + low
	}
	return "it is between " + low + " and " + high
}

// text decodes a text. Numbers and booleans are not texts, because readers of YAML disagree about their spelling.
func (d *decoder) text(n *node, v reflect.Value, r rule) {
	if !d.want(n, textNode) {
		return
	}
	words := r.wordsFor(v.Type())
	if words != nil && !slices.Contains(words, n.text) {
		d.badf(n, "unknown word %.80q%s", n.text, hint(n.text, words))
		return
	}
	if v.Type() == reflect.TypeFor[phases.Phase]() && !d.phase(n.text, n.line, n.column) {
		return
	}
	v.SetString(n.text)
}

func (d *decoder) phase(name string, line, column int) bool {
	parts, standard := strings.Split(name, "."), phases.Standard().Names()
	custom := parts[0] == "x" && len(parts) >= 3 && !slices.Contains(parts, "")
	if custom || slices.Contains(standard, name) {
		return true
	}
	d.addf(line, column, "unknown phase %.80q%s", name, suggest.DidYouMean(name, standard))
	return false
}
