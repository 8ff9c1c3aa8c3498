package cond

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/internal/jsonscan"
	"github.com/grapnelhq/grapnel/phases"
)

// The caps on conditions and on what they read.
const (
	MaxSource = 4096      // bytes of a source
	MaxNodes  = 256       // nodes of a parsed condition
	MaxItems  = 1000      // entries of a list that is read, and of a range
	MaxBytes  = 64 << 10  // weight of a value that is read: the bytes of its texts, and entryBytes for each entry
	MaxJSON   = 1 << 20   // bytes of embedded JSON that are decoded to read a value in it
	MaxWork   = 128 << 20 // bytes that one evaluation looks at
)

const (
	entryBytes = 16 // what an entry of a list or an object weighs by itself
	// The factors below make a byte worth about the same time everywhere: for an argument of a function, an
	// instruction of a regular expression, and a step of a predicate.
	functionWork = 8
	matchWork    = 12
	stepWork     = 64
)

var errWork = fmt.Errorf("takes too much work: a condition looks at %d bytes at most; compare less, or in fewer predicates", MaxWork)

type frame struct {
	cond    *Condition
	env     Env
	left    int // bytes that the evaluation may still look at
	values  []value
	decoded map[string]any // embedded JSON documents by the leaf's name, since several slots may lie in one
}

type value struct {
	v      any // may be nil
	weight int
	loaded bool
}

// inFrame adapts a method to expr: the first argument is the frame, the last one
// a constant that the compiler put there.
func inFrame(do func(f *frame, v any, n int) (any, error)) func(...any) (any, error) {
	return func(args ...any) (any, error) {
		f, _ := args[0].(*frame)
		n, _ := args[len(args)-1].(int)
		return do(f, args[1], n)
	}
}

func (f *frame) load(_ any, i int) (any, error) {
	known := &f.values[i]
	if !known.loaded {
		s := &f.cond.slots[i]
		v, err := f.read(&s.leaf)
		if err == nil {
			v, err = follow(v, s.path)
		}
		if err == nil {
			known.weight, err = checkSize(v)
		}
		if err != nil {
			return nil, fmt.Errorf("%s %w", s.name, err)
		}
		known.v, known.loaded = v, true
	}
	return known.v, f.spend(known.weight)
}

// read reads a leaf. It decodes a JSON document only once.
func (f *frame) read(l *leaf) (any, error) {
	if l.typ != nil {
		return l.read(&f.env)
	}
	if v, ok := f.decoded[l.name]; ok {
		return v, nil
	}
	v, err := l.read(&f.env)
	if f.decoded == nil {
		f.decoded = map[string]any{}
	}
	f.decoded[l.name] = v
	return v, err
}

// count returns v and counts each of its bytes n times.
func (f *frame) count(v any, n int) (any, error) {
	weight, _ := weigh(v, f.left/max(n, 1))
	return v, f.spend(weight * n)
}

// list returns v, which must be a list, and counts the work of a predicate with so many steps over it.
func (f *frame) list(v any, steps int) (any, error) {
	r := reflect.ValueOf(v)
	if r.Kind() != reflect.Slice {
		return nil, fmt.Errorf("wants a list and got %s", typeName(v))
	}
	return v, f.spend(r.Len() * steps * stepWork)
}

// json returns v as compact JSON in which no character of HTML is escaped.
func (f *frame) json(v any, _ int) (any, error) {
	if err := f.enter(v); err != nil {
		return nil, err
	}
	var out strings.Builder
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(v)
	return strings.TrimSuffix(out.String(), "\n"), err
}

func (f *frame) texts(v any, _ int) (any, error) {
	all := []string{}
	if err := f.enter(v); err != nil {
		return nil, err
	}
	collect(v, &all)
	return all, nil
}

// enter counts the work of a function that visits all of v, which is as large as a value that is read at most.
func (f *frame) enter(v any) error {
	weight, err := checkSize(v)
	if err != nil {
		return fmt.Errorf("the argument %w", err)
	}
	return f.spend(weight * functionWork)
}

// collect appends the texts in a value, those of an object by the names of its members.
func collect(v any, all *[]string) {
	switch v := v.(type) {
	case string:
		*all = append(*all, v)
	case []string:
		*all = append(*all, v...)
	case []any:
		for _, entry := range v {
			collect(entry, all)
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			collect(v[name], all)
		}
	}
}

func (f *frame) spend(work int) error {
	if f.left -= work; f.left < 0 {
		return errWork
	}
	return nil
}

// follow goes down a path of embedded JSON. A missing member is nil; a member of anything but an object is an error.
func follow(v any, path []string) (any, error) {
	for _, name := range path {
		object, ok := v.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("has no member %q on its way: there is %s", name, typeName(v))
		}
		v = object[name]
	}
	return v, nil
}

// decode decodes embedded JSON; absent JSON is nil. The engine checks its inputs,
// but policies and tests come from elsewhere.
func decode(raw json.RawMessage) (any, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	if len(raw) > MaxJSON {
		return nil, fmt.Errorf("is JSON of %d bytes; conditions look into at most %d", len(raw), MaxJSON)
	}
	if err := jsonscan.Check(raw, phases.MaxJSONDepth); err != nil {
		return nil, err
	}
	var v any
	err := json.Unmarshal(raw, &v)
	return v, err
}

func checkSize(v any) (int, error) {
	weight, longest := weigh(v, MaxBytes)
	switch {
	case longest > MaxItems:
		return 0, fmt.Errorf("is a list of %d entries; conditions read at most %d", longest, MaxItems)
	case weight > MaxBytes:
		return 0, fmt.Errorf("weighs %d bytes or more; conditions read at most %d", weight, MaxBytes)
	}
	return weight, nil
}

// weigh returns a value's weight and the length of the longest list in it. It
// stops once the weight exceeds the limit.
func weigh(v any, limit int) (weight, longest int) {
	add := func(name string, entry any) bool {
		w, l := weigh(entry, limit-weight-entryBytes-len(name))
		weight, longest = weight+entryBytes+len(name)+w, max(longest, l)
		return weight <= limit
	}
	switch v := v.(type) {
	case string:
		return len(v), 0
	case []int:
		return entryBytes * len(v), len(v)
	case []string:
		weight, longest = entryBytes*len(v), len(v)
		for _, s := range v {
			weight += len(s)
		}
	case []any:
		longest = len(v)
		for _, entry := range v {
			if !add("", entry) {
				break
			}
		}
	case map[string]any:
		for name, entry := range v {
			if !add(name, entry) {
				break
			}
		}
	default:
		return entryBytes, 0
	}
	return weight, longest
}

// span evaluates the operator ".." with ends that are not constants.
func span(from, to any) (any, error) {
	a, okA := whole(from)
	b, okB := whole(to)
	switch {
	case !okA || !okB:
		return nil, fmt.Errorf("a range goes from one whole number to another, not from %s to %s", typeName(from), typeName(to))
	case b < a:
		return []int{}, nil
	case a <= math.MaxInt-MaxItems && b >= a+MaxItems: // the distance itself need not fit into an int
		return nil, fmt.Errorf("the range %d..%d is longer than %d", a, b, MaxItems)
	}
	list := make([]int, b-a+1)
	for i := range list {
		list[i] = a + i
	}
	return list, nil
}

// whole converts a whole number, which JSON decodes as a float64.
func whole(v any) (int, bool) {
	switch v := v.(type) {
	case int:
		return v, true
	case float64:
		return int(v), v == float64(int(v))
	default:
		return 0, false
	}
}

func typeName(v any) string {
	switch v.(type) {
	case nil:
		return "nil"
	case string:
		return "a text"
	case bool:
		return "a bool"
	case int, float64:
		return "a number"
	case map[string]any:
		return "an object"
	case []any, []string, []int:
		return "a list"
	default:
		return fmt.Sprintf("%T", v)
	}
}
