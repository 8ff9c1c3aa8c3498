package digest_test

import (
	"encoding/json"
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
	}{
		{"NaN", "unsupported value", math.NaN()},
		{"MarshalJSON", "json: error calling MarshalJSON for type digest_test.badJSON: bad JSON", badJSON{}},
		{"not UTF-8", "string is not valid UTF-8", "a\xff"},
		{"name not UTF-8", "string is not valid UTF-8", map[string]int{"\xff": 1}},
		{"text not UTF-8", "string is not valid UTF-8", level("\xff")},
		{"channel", "json: unsupported type: chan int", make(chan int)},
		{"MarshalText", "json: error calling MarshalText for type digest_test.level: bad level", level("bad")},
		{"AppendText", "json: error calling MarshalText for type *digest_test.grade: bad grade", new(grade(-1))},
		{"year", "", time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC)},
		{"raw", `duplicate object member name "a" within "/k"`, json.RawMessage(`{"a":1,"a":1}`)},
		{"empty raw", "", json.RawMessage{}},
		{"number", `json: invalid number literal "true"`, json.Number("true")},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			out, err := enc.Append([]byte("dst"), &outer{inner{[]map[string]any{nil, {"k": tt.value}}}})
			if err == nil || string(out) != "dst" {
				t.Fatalf("got %q, error %v", out, err)
			}
			if want := "canonical encoding: in: items: [1]: "; !strings.HasPrefix(err.Error(), want) || !strings.Contains(err.Error(), tt.text) {
				t.Errorf("error %q, want %q… and %q in it", err, want, tt.text)
			}
		})
	}
}

func TestEncoderOfPanics(t *testing.T) {
	t.Parallel()
	type loop struct{ Next []loop }
	tests := map[string]struct {
		build func()
		want  string
	}{
		"channel": {func() { digest.EncoderOf[struct{ C chan int }]() }, "chan int has no JSON form"},
		"itself":  {func() { digest.EncoderOf[loop]() }, "digest_test.loop contains itself"},
		"string": {func() {
			digest.EncoderOf[struct {
				N int `json:"n,string"`
			}]()
		}, "field N of"},
		"one name": {func() {
			digest.EncoderOf[struct {
				twice
				Other string `json:"label"`
			}]()
		}, `has two fields "label"`},
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

type twice struct {
	Label string `json:"label"`
}
