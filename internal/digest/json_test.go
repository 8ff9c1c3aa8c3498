package digest_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/gowebpki/jcs"

	"github.com/grapnelhq/grapnel/internal/digest"
)

func TestJSON(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, in, want string }{
		{"null", "null", "null"},
		{"blanks around a scalar", " true\n", "true"},
		{"members sorted", `{"b":1, "a":[2 , 3]}`, `{"a":[2,3],"b":1}`},
		{"UTF-16 order puts surrogates before U+FFFD", `{"\ufffd":1,"😀":2}`, `{"😀":2,"�":1}`},
		{"names are sorted by what they say", `{"#":1,"\"":2}`, `{"\"":2,"#":1}`},
		{"escapes undone", `"\u0041\/\u00e9"`, `"A/é"`},
		{"escapes kept", `"\n\"\u0007\u007f"`, "\"\\n\\\"\\u0007\x7f\""},
		{"negative zero", "-0", "0"},
		{"negative zero in a list", "[-0]", "[0]"},
		{"exponent", "1E3", "1000"},
		{"rounded integer", "9007199254740993", "9007199254740992"},
		{"fraction", "1.50", "1.5"},
		{"empty containers", `{ "a":{ } , "b":[ ] }`, `{"a":{},"b":[]}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := digest.JSON([]byte("dst:"), []byte(tt.in))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(got), "dst:"+tt.want); diff != "" {
				t.Errorf("got/want:\n%s", diff)
			}
		})
	}
}

func TestJSONRefuses(t *testing.T) {
	t.Parallel()
	tests := map[string]string{
		"nothing":           "",
		"two values":        "1 2",
		"duplicate names":   `{"a":1,"a":2}`,
		"duplicate escaped": `{"a":1,"\u0061":2}`,
		"lone surrogate":    `"\ud800"`,
		"not UTF-8":         "\"\xff\"",
		"name not UTF-8":    "{\"\xff\":1}",
		"out of range":      "1e400",
		"leading zero":      "01",
		"bare minus":        "-",
		"control character": "\"\n\"",
		"open list":         "[1",
		"open string":       `"abc`,
		"open escape":       `"abc\`,
		"trailing comma":    "[1,]",
		"NUL at the end":    "1\x00",
		"closing only":      "]",
	}
	for name, in := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := digest.JSON([]byte("dst"), []byte(in))
			if err == nil {
				t.Errorf("accepted as %q", got)
			}
			if string(got) != "dst" {
				t.Errorf("dst became %q", got)
			}
		})
	}
	if _, err := digest.JSON(nil, nil); err == nil {
		t.Error("nil accepted")
	}
}

func TestJSONDepth(t *testing.T) {
	t.Parallel()
	nest := func(n int, open, inner, closing string) []byte {
		return []byte(strings.Repeat(open, n) + inner + strings.Repeat(closing, n))
	}
	for _, blank := range []string{"", " "} { // with blanks it is not canonical
		if _, err := digest.JSON(nil, nest(digest.MaxDepth, "["+blank, "", "]")); err != nil {
			t.Errorf("MaxDepth refused: %v", err)
		}
		for _, raw := range [][]byte{
			nest(digest.MaxDepth+1, "["+blank, "", "]"),
			nest(digest.MaxDepth+1, `{"a":`+blank, "1", "}"),
			nest(2_000_000, "["+blank, "", ""), // hostile and not even closed
		} {
			if _, err := digest.JSON(nil, raw); !errors.Is(err, digest.ErrTooDeep) {
				t.Errorf("%.20s…: error %v, want ErrTooDeep", raw, err)
			}
		}
	}
}

func TestDepth(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]int{
		"": 0, "1": 0, "[]": 1, `{"a":[1,{}]}`: 3, `"[[["`: 0, `["\"[[", "\\"]`: 1, `"[`: 0, `"\`: 0, "]]][": 1,
	} {
		if got := digest.Depth([]byte(in)); got != want {
			t.Errorf("Depth(%q) = %d, want %d", in, got, want)
		}
		if err := digest.CheckDepth([]byte(in), want); err != nil {
			t.Errorf("CheckDepth(%q, %d): %v", in, want, err)
		}
		if err := digest.CheckDepth([]byte(in), want-1); want > 0 && !errors.Is(err, digest.ErrTooDeep) {
			t.Errorf("CheckDepth(%q, %d) = %v, want ErrTooDeep", in, want-1, err)
		}
	}
}

// fragments are glued into texts that are often JSON and often just not.
var fragments = []string{
	"{", "}", "[", "]", ",", ":", `"a"`, `"b"`, `"é"`, `"😀"`, `"\n"`, `"\u00e9"`, `"\/"`, "1", "-0", "0", "12", "012",
	"1.5", "1e2", "-7", "123456789012345", "1234567890123456", "true", "false", "null", " ", `{"a":1,"b":2}`, `{"b":1,"a":2}`,
	`"` + "\uffff" + `"`, "\"\xff\"", "tru", `"`, "\\",
}

// What JSON gives is what jcs gives, whichever path it took.
func TestJSONEqualsJCS(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(3, 4))
	valid := 0
	for range 200_000 {
		var text strings.Builder
		for range 1 + rng.IntN(7) {
			text.WriteString(fragments[rng.IntN(len(fragments))])
		}
		if sameAsJCS(t, []byte(text.String())) {
			valid++
		}
	}
	if valid < 5_000 {
		t.Errorf("only %d texts were JSON: the test has lost its point", valid)
	}
}

// sameAsJCS compares with jcs and says whether raw was accepted.
func sameAsJCS(t *testing.T, raw []byte) bool {
	t.Helper()
	got, err := digest.JSON(nil, raw)
	want, jcsErr := jcs.Transform(raw)
	if (err == nil) != (jcsErr == nil) {
		t.Fatalf("JSON(%q) = %q, %v; jcs: %q, %v", raw, got, err, want, jcsErr)
	}
	if err != nil {
		return false
	}
	if !bytes.Equal(got, want) {
		t.Fatalf("JSON(%q) = %q, jcs gives %q", raw, got, want)
	}
	return true
}

func FuzzJSON(f *testing.F) {
	for _, s := range fragments {
		f.Add([]byte(s))
	}
	f.Add([]byte(`{"a":{"b":[1,"x",null]},"c":"\n\\"}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if digest.Depth(raw) > digest.MaxDepth {
			if _, err := digest.JSON(nil, raw); err == nil {
				t.Fatalf("%q accepted at depth %d", raw, digest.Depth(raw))
			}
			return
		}
		if !sameAsJCS(t, raw) {
			return
		}
		once, _ := digest.JSON(nil, raw) // accepted a moment ago
		twice, err := digest.JSON(nil, once)
		if err != nil || !bytes.Equal(once, twice) || !json.Valid(once) {
			t.Fatalf("%q: canonical %q is not stable: %q, %v", raw, once, twice, err)
		}
	})
}

func ExampleJSON() {
	out, err := digest.JSON(nil, []byte(`{"type": "object", "maxLength": 1e2, "$id": "\u0061"}`))
	fmt.Println(string(out), err)
	_, err = digest.JSON(nil, []byte(`{"a": 1, "a": 2}`))
	fmt.Println(err)
	// Output:
	// {"$id":"a","maxLength":100,"type":"object"} <nil>
	// canonical JSON: Duplicate key: "a"
}

func BenchmarkJSON(b *testing.B) {
	canonical := []byte(`{"description":"Reads one file.\nPaths are relative.","properties":{"path":{"type":"string"}},"type":"object"}`)
	for name, raw := range map[string][]byte{
		"scalar": []byte("true"), "canonical": canonical, "blanks": append([]byte(" "), canonical...),
	} {
		b.Run(name, func(b *testing.B) {
			var buf []byte
			b.SetBytes(int64(len(raw)))
			b.ReportAllocs()
			for b.Loop() {
				var err error
				if buf, err = digest.JSON(buf[:0], raw); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
