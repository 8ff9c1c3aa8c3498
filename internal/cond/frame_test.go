package cond

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/file"
	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/phases"
)

func TestSpan(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name     string
		from, to any
		want     any    // nil for an error
		message  string // a part of it
	}{
		{"plain", 1, 3, []int{1, 2, 3}, ""},
		{"one", 4, 4, []int{4}, ""},
		{"negative", -1, 1, []int{-1, 0, 1}, ""},
		{"empty", 3, 1, []int{}, ""},
		{"empty over the whole of int", math.MaxInt, math.MinInt, []int{}, ""},
		{"numbers from JSON", 1.0, 2.0, []int{1, 2}, ""},
		{"the end of int", math.MaxInt - 1, math.MaxInt, []int{math.MaxInt - 1, math.MaxInt}, ""},
		{"half a number", 1.5, 2, nil, "from a number to a number"},
		{"no number", 1, nil, nil, "to nil"},
		{"too long", 0, MaxItems, nil, "0..1000 is longer than 1000"},
		{"too long over the whole of int", math.MinInt, math.MaxInt, nil, "longer than 1000"},
		{"too long at the end of int", math.MaxInt - MaxItems, math.MaxInt, nil, "longer than 1000"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			got, err := span(tt.from, tt.to)
			if (err != nil) != (tt.want == nil) || err != nil && !strings.Contains(err.Error(), tt.message) {
				t.Fatalf("error %v, want one with %q", err, tt.message)
			}
			if diff := cmp.Diff(got, tt.want); diff != "" {
				t.Errorf("range (-got +want):\n%s", diff)
			}
		})
	}
	if longest, err := span(1, MaxItems); err != nil || reflect.ValueOf(longest).Len() != MaxItems {
		t.Errorf("the longest range: %v", err)
	}
}

func TestList(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name    string
		v       any
		message string // "" for a list
	}{
		{"any", []any{1, "a"}, ""},
		{"texts", []string{"a"}, ""},
		{"numbers", []int{1}, ""},
		{"empty", []any{}, ""},
		{"as long as may be", make([]any, MaxItems), ""},
		{"nil", nil, "got nil"},
		{"text", "abc", "got a text"},
		{"object", map[string]any{}, "got an object"},
		{"bool", true, "got a bool"},
		{"number", 1.5, "got a number"},
		{"something else", struct{}{}, "got struct {}"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			got, err := (&frame{left: MaxWork}).list(tt.v, 1)
			switch {
			case tt.message == "" && (err != nil || !cmp.Equal(got, tt.v)):
				t.Errorf("list = %v, %v", got, err)
			case tt.message != "" && (err == nil || !strings.Contains(err.Error(), tt.message)):
				t.Errorf("error %v, want one with %q", err, tt.message)
			}
		})
	}
}

// naive weighs without stopping early.
func naive(v any) (weight, longest int) {
	switch v := v.(type) {
	case string:
		return len(v), 0
	case []any:
		longest = len(v)
		for _, entry := range v {
			w, l := naive(entry)
			weight, longest = weight+entryBytes+w, max(longest, l)
		}
	case []string:
		for _, s := range v {
			weight += entryBytes + len(s)
		}
		longest = len(v)
	case map[string]any:
		for name, entry := range v {
			w, l := naive(entry)
			weight, longest = weight+entryBytes+len(name)+w, max(longest, l)
		}
	default:
		weight = entryBytes
	}
	return weight, longest
}

func randomValue(r *rand.Rand, depth int) any {
	text := func() string { return strings.Repeat("x", r.IntN(40)*r.IntN(40)) }
	switch kind := r.IntN(7); {
	case kind == 0 || depth == 0:
		return text()
	case kind == 1:
		return r.Float64()
	case kind == 2:
		return nil
	case kind == 3:
		list := make([]string, r.IntN(30)*r.IntN(40))
		for i := range list {
			list[i] = strconv.Itoa(i)
		}
		return list
	case kind == 4:
		m := map[string]any{}
		for i := range r.IntN(8) {
			m[fmt.Sprint("k", i)] = randomValue(r, depth-1)
		}
		return m
	default:
		list := make([]any, r.IntN(12))
		for i := range list {
			list[i] = randomValue(r, depth-1)
		}
		return list
	}
}

// Whatever stops the weighing early, the verdict is that of the whole.
func TestCheckSizeIsThatOfTheWhole(t *testing.T) {
	t.Parallel()

	r := rand.New(rand.NewPCG(8, 9))
	fine, refused := 0, 0
	for range 3000 {
		v := randomValue(r, 4)
		weight, longest := naive(v)
		got, err := checkSize(v)
		if want := weight > MaxBytes || longest > MaxItems; (err != nil) != want {
			t.Fatalf("checkSize of %d bytes, longest list %d: %v", weight, longest, err)
		}
		switch {
		case err != nil:
			refused++
		case got != weight:
			t.Fatalf("checkSize = %d, want %d", got, weight)
		default:
			fine++
		}
	}
	if fine < 100 || refused < 100 {
		t.Errorf("%d fine and %d refused values prove little", fine, refused)
	}
}

func TestFollow(t *testing.T) {
	t.Parallel()

	v := map[string]any{"a": map[string]any{"b": 1.0, "n": nil}, "l": []any{}}
	tests := []struct {
		path    string
		want    any
		message string
	}{
		{"", v, ""},
		{"a b", 1.0, ""},
		{"a n", nil, ""},
		{"a missing", nil, ""},
		{"a missing x", nil, `no member "x" on its way: there is nil`},
		{"a b x", nil, `no member "x" on its way: there is a number`},
		{"l 0", nil, `no member "0" on its way: there is a list`},
	}
	for _, tt := range tests {
		t.Run(tt.path, func(t *testing.T) {
			t.Parallel()

			got, err := follow(v, strings.Fields(tt.path))
			if tt.message != "" {
				if err == nil || !strings.Contains(err.Error(), tt.message) {
					t.Errorf("error %v, want one with %q", err, tt.message)
				}
				return
			}
			if diff := cmp.Diff(got, tt.want); diff != "" || err != nil {
				t.Errorf("value (-got +want), %v:\n%s", err, diff)
			}
		})
	}
}

// Structs that are no input of today: what they become by shape and by value
// must agree, and what is not in JSON is not there.
func TestShapesAndValuesAgree(t *testing.T) {
	t.Parallel()

	type inner struct {
		Name string          `json:"name"`
		Raw  json.RawMessage `json:"raw,omitempty"`
	}
	type outer struct {
		Hidden string      `json:"-"`
		Bare   string      // no name in JSON
		On     bool        `json:"on"`
		N      int         `json:"n"`
		F      float64     `json:"f"`
		Word   phases.Mode `json:"word"`
		List   []inner     `json:"list"`
		One    inner       `json:"one"`
		Fn     func()      `json:"fn"`
	}
	v := outer{Hidden: "h", Bare: "b", On: true, N: 2, F: 0.5, Word: "w", List: []inner{{"a", json.RawMessage(`[1]`)}}, One: inner{Name: "o"}}
	got, err := plain(reflect.ValueOf(v))
	want := map[string]any{
		"on": true, "n": 2, "f": 0.5, "word": "w", "list": []any{map[string]any{"name": "a", "raw": []any{1.0}}}, "one": map[string]any{"name": "o", "raw": nil}, "fn": nil,
	}
	if diff := cmp.Diff(got, any(want)); diff != "" || err != nil {
		t.Fatalf("value (-got +want), %v:\n%s", err, diff)
	}
	for name, field := range want {
		f, err := member(reflect.TypeOf(v), "v", name, &ast.NilNode{})
		if err != nil {
			t.Errorf("the type has no %s: %v", name, err)
		}
		if typ := plainType(f); typ != nil && typ != reflect.TypeOf(field) {
			t.Errorf("%s is %T, and the checker goes by %v", name, field, typ)
		}
	}
	for _, name := range []string{"Hidden", "-", "Bare", "bare", ""} {
		if _, err := member(reflect.TypeOf(v), "v", name, &ast.NilNode{}); err == nil {
			t.Errorf("%q is a member", name)
		}
	}

	for _, bad := range []any{outer{One: inner{Raw: json.RawMessage(`{`)}}, outer{List: []inner{{Raw: json.RawMessage(`]`)}}}} {
		if _, err := plain(reflect.ValueOf(bad)); err == nil {
			t.Errorf("invalid JSON inside %+v passed", bad)
		}
	}
}

func TestLocated(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name, source string
		offset       int
		want         Error
	}{
		{"beginning", "abc", 0, Error{1, 1, "m", "abc"}},
		{"end", "abc", 3, Error{1, 4, "m", "abc"}},
		{"behind the end", "abc", 9, Error{1, 4, "m", "abc"}},
		{"second line", "a\nbcd\ne", 3, Error{2, 2, "m", "bcd"}},
		{"line break itself", "a\nb", 1, Error{1, 2, "m", "a"}},
		{"wide characters", "äö\nü日x", 5, Error{2, 3, "m", "ü日x"}},
		{"empty", "", 0, Error{1, 1, "m", ""}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			at := &file.Error{Location: file.Location{From: tt.offset}, Message: "m"}
			if diff := cmp.Diff(*located(tt.source, at), tt.want); diff != "" {
				t.Errorf("error (-got +want):\n%s", diff)
			}
		})
	}
}
