package digest_test

import (
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/internal/digest"
)

// reference is the definition that the encoder must meet byte for byte.
func reference(v any) (string, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return "", err
	}
	out, err := digest.JSON(nil, raw) // compared with another implementation in internal/tests/oracle
	return string(out), err
}

// check encodes v and compares with the reference and, if given, with want.
func check[T any](t *testing.T, v T, want string) {
	t.Helper()
	got, err := digest.EncoderOf[T]().Append(nil, &v)
	if err != nil {
		t.Errorf("%T: %v", v, err)
		return
	}
	ref, err := reference(&v)
	if err != nil {
		t.Errorf("%T: reference: %v", v, err)
		return
	}
	if diff := cmp.Diff(string(got), ref); diff != "" {
		t.Errorf("%T got/reference:\n%s", v, diff)
	}
	if diff := cmp.Diff(string(got), want); want != "" && diff != "" {
		t.Errorf("%T got/want:\n%s", v, diff)
	}
}

type level string

func (l level) MarshalText() ([]byte, error) {
	if l == "bad" {
		return nil, errors.New("bad level")
	}
	return []byte("level " + string(l)), nil
}

// grade appends, and has a pointer receiver.
type grade int

func (g *grade) AppendText(b []byte) ([]byte, error) {
	if *g < 0 {
		return b, errors.New("bad grade")
	}
	if *g == 7 {
		return append(b, "se\"ven"...), nil
	}
	return fmt.Appendf(b, "grade %d", int(*g)), nil
}
func (g *grade) MarshalText() ([]byte, error) { return g.AppendText(nil) }

var (
	_ encoding.TextAppender  = (*grade)(nil)
	_ encoding.TextMarshaler = level("")
)

// pair says itself as JSON, by value; ratio by pointer only, and it could not
// be encoded by its kind.
type (
	pair  struct{ A, B int }
	ratio struct{ Parts map[int]int }
)

func (p pair) MarshalJSON() ([]byte, error) {
	return fmt.Appendf(nil, ` { "b":%d , "a":%d } `, p.B, p.A), nil
}
func (r *ratio) MarshalJSON() ([]byte, error) { return json.Marshal(len(r.Parts)) }

type badJSON struct{}

func (badJSON) MarshalJSON() ([]byte, error) { return nil, errors.New("bad JSON") }

func TestAppendTypes(t *testing.T) {
	t.Parallel()
	three := 3
	now := time.Date(2026, 3, 4, 5, 6, 7, 890, time.FixedZone("", -3600))
	check[*int](t, nil, "null")
	check(t, &three, "3")
	check(t, []int(nil), "null")
	check(t, []int{}, "[]")
	check(t, [2]bool{true}, "[true,false]")
	check(t, []byte("hi?>"), `"aGk/Pg=="`)
	check(t, []byte(nil), "null")
	check(t, [2]byte{1, 2}, "[1,2]")
	check(t, now, `"2026-03-04T05:06:07.00000089-01:00"`)
	check(t, map[string]time.Time{"t": now}, "")
	check(t, &now, "")
	check(t, json.RawMessage(`{"b":1 ,"a":2}`), `{"a":2,"b":1}`)
	check(t, json.RawMessage(nil), "null")
	check(t, level("x"), `"level x"`)
	check(t, grade(3), `"grade 3"`)
	check(t, grade(7), `"se\"ven"`)
	check(t, map[string]grade{"g": 3}, `{"g":3}`) // not addressable: its kind
	check(t, map[string]*grade{"g": new(grade), "n": nil}, `{"g":"grade 0","n":null}`)
	check(t, []pair{{1, 2}}, `[{"a":1,"b":2}]`)
	check(t, map[string]pair{"p": {1, 2}}, "")
	check(t, []ratio{{map[int]int{1: 1}}}, "[1]")
	check(t, struct{}{}, "{}")
	check(t, true, "true")
	check(t, []uint64{7, 1 << 60}, "[7,1152921504606847000]")
	check(t, int64(-1<<60), "-1152921504606847000")
	check(t, map[string]string{"b": "1", "a": "2"}, `{"a":"2","b":"1"}`)
	check(t, map[string]bool{"b": true, "a": false}, `{"a":false,"b":true}`)
	check(t, map[string]json.RawMessage{"r": nil, "q": []byte("[1, 2]")}, `{"q":[1,2],"r":null}`)
	check(t, map[level]int{"b": 1, "a": 2}, `{"a":2,"b":1}`)
	check(t, map[level]any{"b": 1, "a": nil}, `{"a":null,"b":1}`)
	check(t, map[string]any(nil), "null")
	check(t, map[string][]int(nil), "null")
	check(t, map[string]int{"\uffff": 1, "😀": 2, "\ue000": 3, "é": 4, "": 5}, "")
	check[any](t, nil, "null")
	check[any](t, []any{
		nil, "s", true, 1.5, 7, int64(8), int32(9), json.Number("1e1"), json.RawMessage("[ ]"),
		map[string]any{"z": []any(nil), "a": map[string]any(nil)},
		&three, level("x"),
		pair{1, 2},
		[]string{"p"},
	}, "")
	check[error](t, nil, "null")
	check[fmt.Stringer](t, time.Duration(5), "5")
	check[json.Marshaler](t, pair{1, 2}, "")
	check[json.Marshaler](t, nil, "null")
	check[encoding.TextMarshaler](t, level("x"), "")
	check(t, map[string]any{"b": map[string]string{"x": "y"}, "a": [1]any{2}}, `{"a":[2],"b":{"x":"y"}}`)
}

// Embedding: the shallower field hides the deeper.
type (
	Base struct {
		Name   string
		Shared int `json:"shared"`
		Deep   int
	}
	Other  struct{ Deep, Only int }
	hidden struct{ Promoted int }
)

type embedding struct {
	Base
	*Other
	hidden
	Field Base   `json:"base"`
	Deep  string `json:"Deep,omitempty"`
}

type tags struct {
	Dash     int `json:"-"`
	RealDash int `json:"-,"`
	Accent   int `json:"é"`
	private  int
	E1       string          `json:"e1,omitempty"`
	E2       []int           `json:"e2,omitempty"`
	E3       map[string]int  `json:"e3,omitempty"`
	E4       *int            `json:"e4,omitempty"`
	E5       any             `json:"e5,omitempty"`
	E6       struct{}        `json:"e6,omitempty"`
	E7       [0]int          `json:"e7,omitempty"`
	E8       float64         `json:"e8,omitempty"`
	E9       json.RawMessage `json:"e9,omitempty"`
	Z1       time.Time       `json:"z1,omitzero"`
	Z2       struct{ N int } `json:"z2,omitzero"`
	Z5       []int           `json:"z5,omitzero"`
	Z7       []int           `json:"z7,omitzero,omitempty"`
}

func TestAppendStructs(t *testing.T) {
	t.Parallel()
	check(t, embedding{}, "")
	check(t, embedding{Other: &Other{Only: 2}, Deep: "x", hidden: hidden{3}}, "")
	check(t, tags{}, "")
	check(t, tags{
		Dash: 1, RealDash: 2, Accent: 4, private: 5, E1: "x", E2: []int{}, E3: map[string]int{"": 1}, E4: new(int),
		E5: 0, E8: 1, E9: json.RawMessage("{ }"), Z1: time.Unix(0, 0).UTC(), Z5: []int{},
		Z7: []int{},
	}, "")
	check(t, tags{Z7: []int{1}}, "")
}

func FuzzAppendString(f *testing.F) {
	for _, text := range []string{"words and more", "\"\\\n\x00\x1f\x7f", "<&é漢😀", "\u2028\ufffd\ue000\ufeff"} {
		f.Add(text, 1.5, int64(3))
	}
	f.Add("\xff", 1e300, int64(math.MaxInt64))
	f.Add("", math.NaN(), int64(math.MinInt64))
	type value struct {
		S string         `json:"s"`
		M map[string]int `json:"m"`
		F float64        `json:"f"`
		I int64          `json:"i"`
	}
	enc := digest.EncoderOf[value]()
	f.Fuzz(func(t *testing.T, s string, x float64, i int64) {
		v := value{s, map[string]int{s: 1, "m": 2, s + "\uffff": 3, s + "😀": 4}, x, i}
		got, err := enc.Append(nil, &v)
		if !utf8.ValidString(s) || math.IsNaN(x) || math.IsInf(x, 0) {
			if err == nil {
				t.Fatalf("%q, %g accepted as %s", s, x, got)
			}
			return
		}
		want, refErr := reference(&v)
		if err != nil || refErr != nil || string(got) != want {
			t.Fatalf("got %s, %v; want %s, %v", got, err, want, refErr)
		}
	})
}
