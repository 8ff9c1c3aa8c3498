package jsonscan

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

type foreign struct {
	inner

	Hooks map[string][]struct {
		Matcher *string `json:"matcher"`
	} `json:"hooks"`
	Raw json.RawMessage `json:"raw"`
}

type inner struct {
	Tool string `json:"tool_name"`
}

// TestDecodeForeign: names are what the other program takes them for, and an error says where they are not.
func TestDecodeForeign(t *testing.T) {
	t.Parallel()

	for _, tt := range []struct{ in, want string }{
		{`{"tool_name":"a","hooks":{"A":[{"matcher":"x","more":1}],"a":[]},"raw":{"A":1,"a":2},"other":{"x":[{"B":1,"b":2}]}}`, ""},
		{"{\"hooks\":{\n\"A\":[],\n\"B\":[],\n\"A\":[]}}", `line 4: the name "A" is there twice, first in line 2`},
		{"{\"hooks\":{\n\"A\":[],\n\"\\u0041\":[]}}", `line 3: the name "A" is there twice, first in line 2`},
		{"{\"raw\":{\"x\":[1,\n{\"a\":1,\"a\":2}]}}", `line 2: the name "a" is there twice, first in line 2`},
		{"{\"other\":{\"x\":1,\n\"x\":2}}", `line 2: the name "x" is there twice, first in line 1`},
		{`{"tool_name":"a","Tool_Name":"b"}`, `line 1: the name "Tool_Name" must be written "tool_name"`},
		{"{\n\"Hooks\":{}}", `line 2: the name "Hooks" must be written "hooks"`},
		{`{"hooks":{"A":[{"Matcher":"x"}]}}`, `line 1: the name "Matcher" must be written "matcher"`},
		{`{"tool_name":"a"} {}`, "invalid character"},
		{`{"tool_name":7}`, "cannot unmarshal"},
	} {
		var v foreign
		err := DecodeForeign([]byte(tt.in), &v)
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.in, err, tt.want)
		}
	}
}

// TestUniqueWork: a long name above many values is not read again for each of them. It counts allocations, alone.
func TestUniqueWork(t *testing.T) {
	hostile := []byte(`{"` + strings.Repeat("k", 10_000) + `":[` + strings.Repeat("1,", 10_000) + `{"a":1,"a":2}]}`)
	allocs := testing.AllocsPerRun(1, func() {
		if err := Unique(hostile); err == nil || !strings.Contains(err.Error(), `the name "a" is there twice`) {
			t.Error(err)
		}
	})
	if allocs > 200 {
		t.Errorf("%v allocations for 10,000 numbers", allocs)
	}
}

func TestRepair(t *testing.T) {
	t.Parallel()

	for _, tt := range []struct {
		in, want string
		n        int
	}{
		{`{"a":"é\u00e9\\u0000\n"}`, `{"a":"é\u00e9\\u0000\n"}`, 0},
		{`"\u0000"`, `"` + "\ufffd" + `"`, 1},
		{`"\\\u0000a\u0000"`, `"\\` + "\ufffda\ufffd" + `"`, 2},
		{`"\ud83d\ude00"`, `"\ud83d\ude00"`, 0},
		{`"\ud83d\u0041\uDE00"`, `"` + "\ufffd" + `\u0041` + "\ufffd" + `"`, 2},
		{`"\ud83d\ud83d\ude00"`, `"` + "\ufffd" + `\ud83d\ude00"`, 1},
		{"\"\xff\xfea\xed\xa0\x80\"", "\"\ufffda\ufffd\"", 2},
		{"\"\xff\\u0000\ufffd\"", "\"\ufffd\ufffd\ufffd\"", 2},
		{`"\u00`, `"\u00`, 0},
		{`\`, `\`, 0},
	} {
		if got, n := Repair([]byte(tt.in)); string(got) != tt.want || n != tt.n {
			t.Errorf("%q: %q and %d, want %q and %d", tt.in, got, n, tt.want, tt.n)
		}
	}
}

// FuzzRepair: what is JSON is valid afterwards, and what is not stays that.
func FuzzRepair(f *testing.F) {
	for _, seed := range []string{`{"a\u0000":"\ud800"}`, "\"\xff\"", `"\\u0000"`, `"\ud800\ud800\udc00"`, "\\"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		got, n := Repair(raw)
		if json.Valid(raw) != json.Valid(got) || !utf8.Valid(got) || n == 0 && string(got) != string(raw) {
			t.Fatalf("%q: %q and %d", raw, got, n)
		}
		if !json.Valid(got) {
			return
		}
		if err := Flaw(got); err != nil && !errors.Is(err, jsontext.ErrDuplicateName) && Depth(got) <= 10_000 {
			t.Fatalf("%q: %q: %v", raw, got, err)
		}
		if again, more := Repair(got); more != 0 || string(again) != string(got) {
			t.Fatalf("%q: %q and then %q", raw, got, again)
		}
	})
}
