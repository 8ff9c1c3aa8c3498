package jsonscan

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestCheck(t *testing.T) {
	t.Parallel()
	nested := func(n int) string { return strings.Repeat(`{"a":[`, n/2) + strings.Repeat("]}", n/2) }
	tests := []struct{ name, in, want string }{
		{"number", "1", ""},
		{"object", ` {"a":[1,"}]",{}]} `, ""},
		{"as deep as may be", nested(32), ""},
		{"one too many", `[` + nested(32) + `]`, "nested deeper than 32"},
		{"brackets in texts", `"` + strings.Repeat("[", 50) + `\"` + strings.Repeat("{", 50) + `"`, ""},
		{"deep and never closed", strings.Repeat("[", 1<<20), "nested deeper than 32"},
		{"empty", "", "not valid JSON"},
		{"two values", "1 2", "not valid JSON"},
		{"not UTF-8", "\"\xff\"", "not valid UTF-8"},
		{"NUL", `["a\u0000"]`, "holds a NUL"},
		{"NUL in a name", `{"\u0000":1}`, "holds a NUL"},
		{"escaped backslash before", `["a\\u0000"]`, ""},
		{"escaped backslash and NUL", `["a\\\u0000"]`, "holds a NUL"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			err := Check([]byte(tt.in), 32)
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error is %v, want %q", err, tt.want)
			}
		})
	}
}

// depthOf is the nesting of a decoded value, and whether a NUL is in it.
func depthOf(v any) (deepest int, nul bool) {
	below := func(v any) {
		d, n := depthOf(v)
		deepest, nul = max(deepest, d+1), nul || n
	}
	switch v := v.(type) {
	case string:
		return 0, strings.ContainsRune(v, 0)
	case []any:
		deepest = 1
		for _, e := range v {
			below(e)
		}
	case map[string]any:
		deepest = 1
		for k, e := range v {
			below(e)
			nul = nul || strings.ContainsRune(k, 0)
		}
	}
	return deepest, nul
}

func FuzzCheck(f *testing.F) {
	for _, s := range []string{`{"a":[1,{"b":"\u0000"}]}`, `[[[]]]`, `"\\u0000"`, "\"\xff\"", `{"a":"\"]"}`} {
		f.Add([]byte(s), 3)
	}
	f.Fuzz(func(t *testing.T, raw []byte, limit int) {
		err := Check(raw, limit)
		var v any
		if json.Unmarshal(raw, &v) != nil {
			if err == nil {
				t.Fatalf("%q is taken", raw)
			}
			return
		}
		deep, nul := depthOf(v)
		if (deep > limit || nul) && err == nil {
			t.Fatalf("%q is taken; it is %d deep, NUL: %t", raw, deep, nul)
		}
	})
}

func TestDepth(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]int{
		"": 0, "1": 0, "[]": 1, `{"a":[1,{}]}`: 3, `"[[["`: 0, `["\"[[", "\\"]`: 1, `"[`: 0, `"\`: 0, "]]][": 1,
	} {
		if got := Depth([]byte(in)); got != want {
			t.Errorf("Depth(%q) = %d, want %d", in, got, want)
		}
	}
}

func TestFlaw(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`{"a":[{"b":"\\u0000 \ud83d\ude00 é"},{"b":1}]}`: "", `["\u0000"]`: "NUL", `{"a":[{"b":1,"\u0062":2}]}`: `duplicate object member name "b" within "/a/0"`,
		`["\ud800"]`: "surrogate", `{"\ud800":1}`: "surrogate", "\"\xff\"": "UTF-8",
	} {
		if err := Flaw([]byte(in)); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", in, err, want)
		}
	}
}

func TestDecode(t *testing.T) {
	t.Parallel()

	for text, want := range map[string]string{
		`{"a":1}`: "", `{"a":1,"b":2}`: "unknown field", `{"a":1}{}`: "more than one JSON value", `{"a":1}]`: "more than one JSON value",
	} {
		var into struct{ A int }
		if err := Decode([]byte(text), &into); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
