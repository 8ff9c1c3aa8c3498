package answers

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/grapnelhq/grapnel/internal/digest/digesttest"
	"github.com/grapnelhq/grapnel/phases"
)

// kept are the keys of the answers that there are, oldest first, of so many.
func kept(a *Cache, keys []string, incarnation uint64) []string {
	var out []string
	for _, key := range keys {
		if found, _ := a.Get([]byte(key), incarnation); found != nil {
			out = append(out, key)
		}
	}
	return out
}

// TestAnswersAreBounded: in number and in bytes; the oldest make room.
func TestAnswersAreBounded(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name        string
		bytes, puts int
		want        int
	}{
		{"few", 1, 10, 10},
		{"many", 1, maxAnswers + 10, maxAnswers},
		{"large", maxBytes / 4, 10, 4},
		{"too large", maxBytes/4 + 1, 10, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			a := New()
			var keys []string
			for i := range test.puts {
				keys = append(keys, strconv.Itoa(i))
				for range 2 { // the second one stands in for the first
					a.put(keys[i], 0, &Answer{bytes: test.bytes, Incarnation: 1})
				}
			}
			if got, want := kept(a, keys, 1), keys[test.puts-test.want:]; !slices.Equal(got, want) {
				t.Errorf("kept %q, want %q", got, want)
			}
			if want := test.want * test.bytes; a.bytes != want || a.kept.Len() != test.want {
				t.Errorf("%d answers of %d bytes, want %d of %d", a.kept.Len(), a.bytes, test.want, want)
			}
		})
	}
}

// TestKeyOfCustomInput: the fields of a host's own phases are fields too.
func TestKeyOfCustomInput(t *testing.T) {
	t.Parallel()
	row := phases.Custom("x.test.look", "in tests", 0)
	vary := NewVary(row, []string{"input.a", "input.b"})
	key := func(fields string) string {
		return string(vary.AppendKey(nil, Question{Context: &phases.Context{}, Input: &phases.CustomInput{Fields: []byte(fields)}}))
	}
	for _, test := range []struct {
		name, a, b string
		same       bool
	}{
		{"other fields", `{"a":1}`, `{"a":1,"c":2}`, true},
		{"no fields", ``, `{"c":1}`, true},
		{"value", `{"a":1}`, `{"a":2}`, false},
		{"type", `{"a":1}`, `{"a":"1"}`, false},
		{"large numbers", `{"a":12345678901234567}`, `{"a":12345678901234568}`, false},
		{"border", `{"a":"x","b":"yz"}`, `{"a":"xy","b":"z"}`, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if a, b := key(test.a), key(test.b); (a == b) != test.same {
				t.Errorf("keys are %q and %q", a, b)
			}
		})
	}
}

// TestCollidingQuestions: texts of one fingerprint are two questions.
func TestCollidingQuestions(t *testing.T) {
	t.Parallel()
	vary := NewVary(phases.Custom("x.test.look", "in tests", 0), []string{"input.a"})
	text := strings.Repeat("What did we say about the budget? ", 3)
	cache := New()
	for _, asked := range []string{text, digesttest.Collide(text, 8)} {
		key := vary.AppendKey(nil, Question{Context: &phases.Context{}, Input: &phases.CustomInput{Fields: []byte(`{"a":"` + asked + `"}`)}})
		found, epoch := cache.Get(key, 1)
		if found != nil {
			t.Errorf("%q is answered with what was said to another text", asked)
		}
		cache.Put(string(key), epoch, &Answer{Incarnation: 1})
	}
}
