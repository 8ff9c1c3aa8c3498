package digest_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/internal/digest"
	"github.com/grapnelhq/grapnel/internal/jsonscan"
)

func TestJSON(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, in, want string }{
		{"null", "null", "null"},
		{"members sorted", `{"b":1, "a":[2 , 3]}`, `{"a":[2,3],"b":1}`},
		{"UTF-16 order puts surrogates before U+FFFD", `{"\ufffd":1,"😀":2}`, `{"😀":2,"�":1}`},
		{"names are sorted by what they say", `{"#":1,"\"":2}`, `{"\"":2,"#":1}`},
		{"escapes undone", `"\u0041\/\u00e9"`, `"A/é"`},
		{"escapes kept", `"\n\"\u0007\u007f"`, "\"\\n\\\"\\u0007\x7f\""},
		{"negative zero", "-0", "0"},
		{"exponent", "1E3", "1000"},
		{"rounded integer", "9007199254740993", "9007199254740992"},
		{"the largest number", "17976931348623157e292", "1.7976931348623157e+308"},
		{"numbers near zero", "[1e-400,-1e-400,5e-324,1e-7,0.000001]", "[0,0,5e-324,1e-7,0.000001]"},
		{"long integers", "[999999999999999,123456789012345678901,1234567890123456789012]", "[999999999999999,123456789012345680000,1.2345678901234568e+21]"},
		{"NUL and half of an escape", `"\\ufffd\u0000\uD83D\ude00"`, `"\\ufffd\u0000😀"`},
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
		"out of range":      "1e400",
		"leading zero":      "01",
		"control character": "\"\n\"",
		"open string":       `"abc`,
		"trailing comma":    "[1,]",
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
			if _, err := digest.JSON(nil, raw); !errors.Is(err, jsonscan.ErrTooDeep) {
				t.Errorf("%.20s…: error %v, want ErrTooDeep", raw, err)
			}
		}
	}
}
