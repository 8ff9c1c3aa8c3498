package jsonscan

import (
	"bytes"
	"encoding/json"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
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

func TestNames(t *testing.T) {
	t.Parallel()

	for _, n := range []int{1, fewNames - 1, fewNames, fewNames + 1, 3 * fewNames} {
		var s Names
		for i := range n {
			if !s.Add([]byte(strconv.Quote("n" + strconv.Itoa(i)))) {
				t.Errorf("of %d names, %d was taken for an old one", n, i)
			}
		}
		for i := range n {
			if s.Add([]byte(`"\u006e` + strconv.Itoa(i) + `"`)) {
				t.Errorf("of %d names, %d was taken for a new one", n, i)
			}
		}
	}
}

// FuzzScan compares with encoding/json's check.
func FuzzScan(f *testing.F) {
	for _, seed := range []string{`{"a":[1,-0.5e+7,"\u00e9\\"]}`, `"\ud800\u0041"`, `[1,]`, `-`, `nul`, "\"\x1f\"", `1 2`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if !utf8.Valid(text) || bytes.Count(text, []byte("[")) > 1000 || bytes.Count(text, []byte("{")) > 1000 {
			return
		}
		s := Scanner{Text: text, MaxDepth: math.MaxInt}
		err := s.Value(0)
		if err == nil {
			err = s.End()
		}
		if want := json.Valid(text); (err == nil) != want {
			t.Fatalf("json.Valid says %v, scanner %v", want, err)
		}
		if err == nil && s.Flaw == nil && strings.ContainsRune(decodedStrings(t, text), utf8.RuneError) && !bytes.ContainsRune(text, utf8.RuneError) && !bytes.Contains(bytes.ToLower(text), []byte(`\ufffd`)) {
			t.Fatal("encoding/json repairs a string in which nothing was found")
		}
	})
}

// What FuzzScan looks for, in texts that are nearly JSON.
func TestScanRandom(t *testing.T) {
	t.Parallel()

	rng := rand.New(rand.NewPCG(1, 2))
	pieces := []string{
		`{`, `}`, `[`, `]`, `,`, `:`, `"a"`, `"b"`, `"\ud83d\ude00"`, `"\ud800"`, `"\""`, `"\u00"`, `0`, `-1.5e3`, `01`, `1.`, `true`, `nul`, `null`, ` `, "\n", `"é"`,
	}
	valid := 0
	for range 100_000 {
		var text bytes.Buffer
		for range rng.IntN(8) {
			text.WriteString(pieces[rng.IntN(len(pieces))])
		}
		s := Scanner{Text: text.Bytes(), MaxDepth: math.MaxInt}
		err := s.Value(0)
		if err == nil {
			err = s.End()
		}
		want := json.Valid(text.Bytes())
		if (err == nil) != want {
			t.Fatalf("%s: json.Valid says %v, scanner %v", text.Bytes(), want, err)
		}
		if want {
			valid++
		}
	}
	if valid < 1000 {
		t.Errorf("only %d texts were valid", valid)
	}
}

// decodedStrings is the value with its strings decoded.
func decodedStrings(t *testing.T, text []byte) string {
	t.Helper()
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		if _, ok := err.(*json.UnmarshalTypeError); ok { //nolint:errorlint // a number out of range
			return ""
		}
		t.Fatal(err)
	}
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
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
