package cond

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/expr-lang/expr/ast"
	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/phases"
)

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
