package digest_test

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/internal/digest"
)

func TestAppendErrors(t *testing.T) {
	t.Parallel()
	type inner struct {
		Items []map[string]any `json:"items"`
	}
	type outer struct {
		In inner `json:"in"`
	}
	enc := digest.EncoderOf[outer]()
	tests := []struct {
		name, text string
		value      any
		is         error
	}{
		{"NaN", "number is not finite", math.NaN(), digest.ErrNotFinite},
		{"32-bit NaN", "number is not finite", float32(math.NaN()), digest.ErrNotFinite},
		{"MarshalJSON", "digest_test.badJSON: bad JSON", badJSON{}, nil},
		{"infinity", "number is not finite", float32(math.Inf(-1)), digest.ErrNotFinite},
		{"not UTF-8", "string is not valid UTF-8", "a\xff", digest.ErrInvalidUTF8},
		{"name not UTF-8", "member name: string is not valid UTF-8", map[string]int{"\xff": 1}, digest.ErrInvalidUTF8},
		{"text not UTF-8", "string is not valid UTF-8", level("\xff"), digest.ErrInvalidUTF8},
		{"channel", "type chan int: chan has no JSON form", make(chan int), nil},
		{"keys", "type map[int]int: map keys must be strings", map[int]int{}, nil},
		{"MarshalText", "digest_test.level: bad level", level("bad"), nil},
		{"AppendText", "*digest_test.grade: bad grade", new(grade(-1)), nil},
		{"year", "", time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC), nil},
		{"raw", `canonical JSON: Duplicate key: "a"`, json.RawMessage(`{"a":1,"a":1}`), nil},
		{"empty raw", "", json.RawMessage{}, nil},
		{"number", `not a JSON number: "true"`, json.Number("true"), nil},
		{"number with a blank", `not a JSON number: "1 "`, json.Number("1 "), nil},
		{"number and more", "", json.Number("1 2"), nil},
		{"pointer method only", "type digest_test.ratio: field Parts: type map[int]int: map keys must be strings", ratio{}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			out, err := enc.Append([]byte("dst"), &outer{inner{[]map[string]any{nil, {"k": tt.value}}}})
			if err == nil || string(out) != "dst" {
				t.Fatalf("got %q, error %v", out, err)
			}
			if tt.is != nil && !errors.Is(err, tt.is) {
				t.Errorf("error %v is not %v", err, tt.is)
			}
			if want := `canonical encoding: in: items: [1]: "k": ` + tt.text; !strings.Contains(err.Error(), want) {
				t.Errorf("error %q, want %q in it", err, want)
			}
		})
	}
}

type chain *chain

// A value that contains itself is an error, not a stack overflow.
func TestAppendCyclicValues(t *testing.T) {
	t.Parallel()
	node := &tree{}
	node.Left = node
	list := []any{nil}
	list[0] = list
	names := map[string]any{}
	names["self"] = names
	var own any
	own = &own
	var link chain
	link = &link
	trees := map[string]*tree{}
	trees["x"] = &tree{ByName: trees}
	for name, v := range map[string]any{
		"pointer": node, "list": list, "map": names, "interface": own, "pointer chain": link, "typed map": trees,
	} {
		if _, err := digest.EncoderOf[any]().Append(nil, &v); !errors.Is(err, digest.ErrTooDeep) {
			t.Errorf("%s: error %v, want ErrTooDeep", name, err)
		}
	}
}

func TestAppendMaxDepth(t *testing.T) {
	t.Parallel()
	leaf := 1
	var v any = &leaf
	for range digest.MaxDepth {
		v = []any{v}
	}
	if _, err := digest.EncoderOf[any]().Append(nil, &v); err != nil {
		t.Errorf("%d levels: %v", digest.MaxDepth, err)
	}
	v = []any{v}
	if _, err := digest.EncoderOf[any]().Append(nil, &v); !errors.Is(err, digest.ErrTooDeep) {
		t.Errorf("one level more: error %v, want ErrTooDeep", err)
	}
}

func TestAppendNil(t *testing.T) {
	t.Parallel()
	out, err := digest.EncoderOf[tree]().Append([]byte("x"), nil)
	if string(out) != "xnull" || err != nil {
		t.Errorf("got %q, %v", out, err)
	}
}

func TestEncoderOfPanics(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		build func()
		want  string
	}{
		"channel": {
			func() { digest.EncoderOf[struct{ C chan int }]() },
			"no encoder for struct { C chan int }: type struct { C chan int }: field C: type chan int: chan has no JSON form",
		},
		"function":  {func() { digest.EncoderOf[func()]() }, "type func(): func has no JSON form"},
		"complex":   {func() { digest.EncoderOf[[]complex128]() }, "complex128 has no JSON form"},
		"keys":      {func() { digest.EncoderOf[map[int]string]() }, "type map[int]string: map keys must be strings"},
		"deep down": {func() { digest.EncoderOf[*struct{ M map[string][]chan int }]() }, "field M: type chan int"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			defer func() {
				if got, ok := recover().(string); !ok || !strings.Contains(got, tt.want) {
					t.Errorf("panic %q, want %q", got, tt.want)
				}
			}()
			tt.build()
		})
	}
}
