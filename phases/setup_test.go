package phases_test

import (
	"encoding/json"
	"reflect"
	"strconv"
	"time"

	"github.com/grapnelhq/grapnel/phases"
)

// fill sets every exported field below v to something that is not zero: each
// text, number and list to another value. It is how the tests see a field that
// somebody adds later.
func fill(v reflect.Value, n *int) {
	*n++
	switch v.Interface().(type) {
	case json.RawMessage:
		v.SetBytes([]byte(`{"n":` + strconv.Itoa(*n) + `}`))
		return
	case phases.Text:
		v.Set(reflect.ValueOf(phases.T("text " + strconv.Itoa(*n))))
		return
	case phases.Preview:
		v.Set(reflect.ValueOf(phases.Preview{Text: "preview " + strconv.Itoa(*n), OriginalLength: 100 + *n, Truncated: true}))
		return
	case time.Time:
		v.Set(reflect.ValueOf(time.Date(2026, 1, 2, 3, 4, *n, 0, time.UTC)))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString("word_" + strconv.Itoa(*n))
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(*n))
	case reflect.Uint64:
		v.SetUint(uint64(*n))
	case reflect.Float64:
		v.SetFloat(float64(*n))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Struct:
		for _, f := range v.Fields() {
			fill(f, n)
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), n)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(v.Index(0), n)
		fill(v.Index(1), n)
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key, n)
		fill(value, n)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	default:
		panic("cannot fill a " + v.Type().String())
	}
}

// filled fills what p points to.
func filled[T any](p T) T {
	n := 0
	fill(reflect.ValueOf(p).Elem(), &n)
	return p
}

// inputs returns a filled input of every phase, and of a host's own.
func inputs() []phases.Input {
	rows := phases.Standard().Rows()
	out := make([]phases.Input, 0, len(rows)+1)
	for _, r := range rows {
		out = append(out, filled(r.NewInput()))
	}
	return append(out, &phases.CustomInput{Name: "x.acme.idle", Fields: json.RawMessage(`{"since":3,"tool":"t","who":{"a":[1]}}`)})
}

// contributions returns a filled contribution of every kind.
func contributions() phases.Contributions {
	return phases.Contributions{
		filled(&phases.Policy{}), filled(&phases.PromptContext{}), filled(&phases.PromptSection{}), filled(&phases.ToolBundle{}),
		filled(&phases.Decision{}), filled(&phases.Rewrite{}), filled(&phases.Reminder{}), filled(&phases.ManifestDiagnostic{}),
		filled(&phases.Audit{}), filled(&phases.BackgroundJob{}), filled(&phases.Noop{}),
	}
}

// shared returns the paths at which two values of one type hold the same
// mutable memory: a pointer, a map, or the array below a slice.
func shared(path string, a, b reflect.Value) []string {
	if a.Kind() != b.Kind() {
		return nil
	}
	var out []string
	switch a.Kind() { //nolint:exhaustive // the other kinds hold no memory
	case reflect.Interface, reflect.Pointer:
		if a.IsNil() || b.IsNil() {
			return nil
		}
		if a.Kind() == reflect.Pointer && a.Pointer() == b.Pointer() {
			return []string{path}
		}
		return shared(path, a.Elem(), b.Elem())
	case reflect.Map:
		if !a.IsNil() && a.Pointer() == b.Pointer() {
			return []string{path}
		}
		for _, key := range a.MapKeys() {
			if other := b.MapIndex(key); other.IsValid() {
				out = append(out, shared(path+"["+key.String()+"]", a.MapIndex(key), other)...)
			}
		}
	case reflect.Slice:
		if a.Cap() > 0 && b.Cap() > 0 && a.Pointer() == b.Pointer() {
			return []string{path}
		}
		for i := range min(a.Len(), b.Len()) {
			out = append(out, shared(path+"["+strconv.Itoa(i)+"]", a.Index(i), b.Index(i))...)
		}
	case reflect.Struct:
		for i := range a.NumField() {
			if a.Type().Field(i).Type != reflect.TypeFor[time.Time]() {
				out = append(out, shared(path+"."+a.Type().Field(i).Name, a.Field(i), b.Field(i))...)
			}
		}
	}
	return out
}
