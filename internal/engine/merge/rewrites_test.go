package merge_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/grapnelhq/grapnel/internal/engine/merge"
	"github.com/grapnelhq/grapnel/internal/jsonscan"
	"github.com/grapnelhq/grapnel/phases"
)

func rewritesOf(pairs ...string) []phases.MergedRewrite {
	var out []phases.MergedRewrite
	for i := 0; i < len(pairs); i += 2 {
		out = append(out, phases.MergedRewrite{Path: pairs[i], Value: json.RawMessage(pairs[i+1]), Owner: "p.h"})
	}
	return out
}

func TestApplyRewrites(t *testing.T) {
	t.Parallel()

	nested := strings.Repeat("[", 32) + strings.Repeat("]", 32)
	tests := []struct {
		name, doc string
		rewrites  []phases.MergedRewrite
		want      string // an error if it begins with !
	}{
		{"none", `{"b": 1, "a": 2}`, nil, `{"b": 1, "a": 2}`},
		{"replace", `{"a":1,"b":2}`, rewritesOf("/a", `"x"`), `{"a":"x","b":2}`},
		{"add", `{"a":1}`, rewritesOf("/b", `{"c":null}`), `{"a":1,"b":{"c":null}}`},
		{"whole", `{"a":1}`, rewritesOf("", "[1]"), `[1]`},
		{"absent document", "", rewritesOf("/a", "1"), `{"a":1}`},
		{"append by dash", `{"a":[1]}`, rewritesOf("/a/-", "2", "/a/-", "3"), `{"a":[1,2,3]}`},
		{"later sees earlier", `{}`, rewritesOf("/a", "{}", "/a/b", "1"), `{"a":{"b":1}}`},
		{"escaped tokens", `{"a/b":1,"m~n":2,"~1":3}`, rewritesOf("/a~1b", "4", "/m~0n", "5", "/~01", "6"), `{"a/b":4,"m~n":5,"~1":6}`},
		{"numbers keep their digits", `{"n":12345678901234567890,"f":1.0}`, rewritesOf("/x", "1.50"), `{"f":1.0,"n":12345678901234567890,"x":1.50}`},
		{"no HTML escapes", `{"c":"a && b > c"}`, rewritesOf("/d", `"<x>"`), `{"c":"a && b > c","d":"<x>"}`},
		{"too deep", `{}`, rewritesOf("/a", nested), "!value: is JSON nested deeper than"},
		{"missing between", `{}`, rewritesOf("/a/b", "1"), `!there is no member "a"`},
		{"missing element", `[]`, rewritesOf("/0/a", "1"), `!there is no element 0`},
		{"behind the end", `[1]`, rewritesOf("/2", "1"), `!index 2 is behind the end of 1 elements`},
		{"leading zero", `[1]`, rewritesOf("/00", "1"), `!"00" is not an index`},
		{"through a scalar", `{"a":1}`, rewritesOf("/a/b", "1"), `!neither object nor array`},
		{"no pointer", `{}`, rewritesOf("a", "1"), `!not a JSON pointer`},
		{"bad value", `{}`, rewritesOf("/a", "{"), `!value`},
		{"bad document", `{`, rewritesOf("/a", "1"), `!document`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			got, err := merge.ApplyRewrites(json.RawMessage(tt.doc), tt.rewrites)
			if says, isError := strings.CutPrefix(tt.want, "!"); isError {
				if err == nil || !strings.Contains(phases.Whole(err), says) {
					t.Errorf("got %s, %v; want an error with %q", got, err, says)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			checkSame(t, "document", string(got), tt.want)
		})
	}
}

// FuzzApplyRewrites checks that what comes out is a document that may be sent
// on, that the input is not touched, and that a rewrite that was applied can be
// applied again without effect, unless it appends.
func FuzzApplyRewrites(f *testing.F) {
	for _, seed := range [][3]string{
		{`{"a":[1,{"b":2}]}`, "/a/1/b", `{"c":null}`},
		{`[]`, "/-", "1"},
		{`{}`, "", "[[]]"},
		{``, "/a~1b", `"x"`},
		{`{"":{"":1}}`, "//", "2"},
		{`{"a":1,"a":2}`, "/a", "3"},
		{`[1e999]`, "/0", "0"},
		{`{"~":1}`, "/~0", "2"},
		{`{}`, "/\xff", `""`},
	} {
		f.Add(seed[0], seed[1], seed[2])
	}
	f.Fuzz(func(t *testing.T, doc, path, value string) {
		given := json.RawMessage(doc)
		once, err := merge.ApplyRewrites(given, rewritesOf(path, value))
		if string(given) != doc {
			t.Fatal("the document was changed in place")
		}
		if err != nil {
			return
		}
		if err := jsonscan.Check(once, phases.MaxJSONDepth); err != nil {
			t.Fatalf("%s: %v", once, err)
		}
		twice, err := merge.ApplyRewrites(once, rewritesOf(path, value))
		if strings.HasSuffix(path, "/-") {
			return
		}
		if err != nil || string(twice) != string(once) {
			t.Fatalf("once %s, twice %s, %v", once, twice, err)
		}
	})
}

func TestRewrites(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name, a, b string // of a.h, then b.h, at equal priority unless +1 is at the end: "path=value"
		want       string // "path=value of owner"
		conflict   string
	}{
		{"two paths", "/x=1", "/y=2", "/x=1 of a.h, /y=2 of b.h", ""},
		{"one path", "/x=1", "/x=2 /y=3", "/x=1 of a.h, /y=3 of b.h", "b.h -> a.h: /x"},
		{"one path, other priorities", "/x=1", "/x=2+1", "/x=1 of a.h, /x=2 of b.h", ""},
		{"below another's", "/x={}", "/x/y/z=2", "/x={} of a.h", "b.h -> a.h: /x/y/z"},
		{"above another's", "/x/y/z=1", "/x=2", "/x/y/z=1 of a.h", "b.h -> a.h: /x"},
		{"the whole against a part", "/x=1", "=2", "/x=1 of a.h", "b.h -> a.h: "},
		{"below one's own", "/x={} /x/y=1", "/xy=2", "/x={} of a.h, /x/y=1 of a.h, /xy=2 of b.h", ""},
		{"above one's own and another's", "/x/a=1", "/x/b=2 /x=3", "/x/a=1 of a.h, /x/b=2 of b.h", "b.h -> a.h: /x"},
		{"both append", "/x/-=1 /x/-=2", "/x/-=3", "/x/-=1 of a.h, /x/-=2 of a.h, /x/-=3 of b.h", ""},
		{"twice by one", "/x=1 /x=2", "", "/x=1 of a.h", "a.h -> a.h: /x"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			got := merged(from(t, hook("a.h"), writing(tt.a)...), from(t, hook("b.h"), writing(tt.b)...))
			var list []string
			for _, r := range got.Merged.Rewrites {
				list = append(list, r.Path+"="+string(r.Value)+" of "+r.Owner)
			}
			checkSame(t, "rewrites", strings.Join(list, ", "), tt.want)
			checkSame(t, "conflicts", strings.Join(lost(got), ", "), tt.conflict)
		})
	}
}

// writing reads rewrites.
func writing(text string) []phases.Contribution {
	var list []phases.Contribution
	for one := range strings.FieldsSeq(text) {
		one, raised := strings.CutSuffix(one, "+1")
		path, value, _ := strings.Cut(one, "=")
		r := &phases.Rewrite{Path: path, Value: json.RawMessage(value)}
		if raised {
			r.Priority = 1
		}
		list = append(list, r)
	}
	return list
}
