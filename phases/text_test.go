package phases_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/phases"
)

func TestNewPreview(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		in    string
		limit int
		want  phases.Preview
	}{
		{"empty", "", 5, phases.Preview{}},
		{"whole", "añb", 3, phases.Preview{Text: "añb", OriginalLength: 3}},
		{"cut", "añb", 2, phases.Preview{Text: "añ", OriginalLength: 3, Truncated: true}},
		{"nothing", "añb", 0, phases.Preview{OriginalLength: 3, Truncated: true}},
		{"negative", "añb", -1, phases.Preview{OriginalLength: 3, Truncated: true}},
		{"not UTF-8", "\xff\xfeb", 2, phases.Preview{Text: "\xff\xfe", OriginalLength: 3, Truncated: true}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(phases.NewPreview(tt.in, tt.limit), tt.want); diff != "" {
				t.Errorf("(-got +want)\n%s", diff)
			}
		})
	}
}

func TestEmptyTextsAreLeftAway(t *testing.T) {
	t.Parallel()
	if got := encode(t, phases.PostTurnInput{}); got != "{}" {
		t.Errorf("got %s", got)
	}
	if got := encode(t, phases.PrePolicyInput{UserText: phases.Text{Withheld: true}}); got != `{"user_text":{"withheld":true,"chars":0}}` {
		t.Errorf("a withheld empty text is %s", got)
	}
}

func TestDuration(t *testing.T) {
	t.Parallel()
	tests := []struct {
		in   string
		want time.Duration
		ok   bool
	}{
		{`"250ms"`, 250 * time.Millisecond, true},
		{`"1h2m"`, 62 * time.Minute, true},
		{`"0"`, 0, true},
		{`"-1s"`, -time.Second, true},
		{`250`, 0, false},
		{`0`, 0, false},
		{`"250"`, 0, false},
		{`""`, 0, false},
		{`"ms"`, 0, false},
		{`null`, 0, false},
		{`"1 s"`, 0, false},
	}
	for _, tt := range tests {
		var got phases.Duration
		err := json.Unmarshal([]byte(tt.in), &got)
		if (err == nil) != tt.ok || got.D() != tt.want {
			t.Errorf("%s is %v, error %v", tt.in, got, err)
		}
		if err != nil && !strings.Contains(err.Error(), "with a unit, such as") {
			t.Errorf("%s: the error does not say what to write: %v", tt.in, err)
		}
		if tt.ok {
			var again phases.Duration
			if err := json.Unmarshal([]byte(encode(t, got)), &again); err != nil || again != got || got.String() != tt.want.String() {
				t.Errorf("%s is read back as %v, error %v", encode(t, got), again, err)
			}
		}
	}
}

func FuzzDuration(f *testing.F) {
	for _, s := range []string{"250ms", "1h", "9", "", "-1.5s", "1e3s", "µs", "0"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var d, again phases.Duration
		if d.UnmarshalText([]byte(text)) != nil {
			return
		}
		if last := text[len(text)-1]; last >= '0' && last <= '9' && d != 0 {
			t.Fatalf("the bare number %q is %v", text, d)
		}
		if err := again.UnmarshalText([]byte(d.String())); err != nil || again != d {
			t.Fatalf("%q is %v, and read back %v (%v)", text, d, again, err)
		}
	})
}

func TestNearest(t *testing.T) {
	t.Parallel()
	known := []string{"fail_closed", "best_effort", "fallback", "a", "b"}
	tests := []struct{ name, in, want string }{
		{"itself", "fallback", "fallback"},
		{"one letter missing", "failclosed", "fail_closed"},
		{"a third and one more", "falxxxck", "fallback"},
		{"too far", "fxxxxxck", ""},
		{"the first of equals", "c", "a"},
		{"empty", "", "a"},
		{"letters, not bytes", "fällbäck", "fallback"},
	}
	for _, tt := range tests {
		if got := phases.Nearest(tt.in, known); got != tt.want {
			t.Errorf("%s: nearest to %q is %q, want %q", tt.name, tt.in, got, tt.want)
		}
	}
	if got := phases.Nearest("x", nil); got != "" {
		t.Errorf("of nothing: %q", got)
	}
	if got := phases.DidYouMean("falback", known); got != ` (did you mean "fallback"?)` {
		t.Errorf("got %q", got)
	}
	if got := phases.DidYouMean("something else", known); got != "" {
		t.Errorf("got %q", got)
	}
}

// TestNearestToALongName: a name that a model has made up costs little, however
// long it is. Comparing each letter of it took over ten minutes.
func TestNearestToALongName(t *testing.T) {
	t.Parallel()
	known := make([]string, 200)
	for i := range known {
		known[i] = strings.Repeat("a", 128)
	}
	begun := time.Now()
	if got := phases.Nearest(strings.Repeat("a", 16<<20), known); got != "" {
		t.Errorf("got %q", got)
	}
	if took := time.Since(begun); took > 30*time.Second {
		t.Errorf("it took %s", took)
	}
}

func TestCheckJSON(t *testing.T) {
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
			err := phases.CheckJSON([]byte(tt.in), 32)
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

func FuzzCheckJSON(f *testing.F) {
	for _, s := range []string{`{"a":[1,{"b":"\u0000"}]}`, `[[[]]]`, `"\\u0000"`, "\"\xff\"", `{"a":"\"]"}`} {
		f.Add([]byte(s), 3)
	}
	f.Fuzz(func(t *testing.T, raw []byte, limit int) {
		err := phases.CheckJSON(raw, limit)
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
