package rpc

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/creachadair/jrpc2"
	"github.com/google/go-cmp/cmp"
)

// parsed says what parse made of a text: for each request its id, method, params
// and the code of its refusal.
func parsed(text string, l Limits) []string {
	m, bad := parse([]byte(text), l)
	if bad != nil {
		return []string{bad.Code}
	}
	out := []string{}
	for _, r := range m.requests {
		line := string(r.id) + "|" + r.method + "|" + string(r.params)
		if r.bad != nil {
			line = string(r.id) + "|" + r.bad.Code + "|" + strconv.FormatBool(r.silent())
		}
		out = append(out, line)
	}
	return out
}

func TestParse(t *testing.T) {
	t.Parallel()

	call := func(rest string) string { return `{"jsonrpc":"2.0","method":"m"` + rest + `}` }
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	tests := []struct {
		name, text string
		want       []string
	}{
		{"call", call(`,"id":1,"params":{"a":1}`), []string{`1|m|{"a":1}`}},
		{"blanks everywhere", " \t\r\n{ \"jsonrpc\" : \"2.0\" , \"method\" : \"m\" , \"params\" : [ ] , \"id\" : 1 } \n", []string{`1|m|[ ]`}},
		{"escaped names and method", `{"json\u0072pc":"2\u002e0","m\u0065thod":"\u006d","id":1}`, []string{"1|m|"}},
		{"notification", call(``), []string{"|m|"}},
		{"null params are none", call(`,"params":null,"id":1`), []string{"1|m|"}},

		{"id string", call(`,"id":"x\u00e9"`), []string{`"x\u00e9"|m|`}},
		{"id fraction", call(`,"id":1.50`), []string{`1.50|m|`}},
		{"id negative exponent", call(`,"id":-1e-3`), []string{`-1e-3|m|`}},
		{"id null is an id", call(`,"id":null`), []string{`null|m|`}},
		{"id true", call(`,"id":true`), []string{"|invalid_request|false"}},
		{"id object", call(`,"id":{}`), []string{"|invalid_request|false"}},
		{"id with half a character", call(`,"id":"\ud800"`), []string{"|invalid_request|false"}},

		{"no version", `{"method":"m","id":1}`, []string{"1|invalid_request|false"}},
		{"version 1.0", `{"jsonrpc":"1.0","method":"m","id":1}`, []string{"1|invalid_request|false"}},
		{"version as a number", `{"jsonrpc":2.0,"method":"m","id":1}`, []string{"1|invalid_request|false"}},
		{"no method", `{"jsonrpc":"2.0","id":1}`, []string{"1|invalid_request|false"}},
		{"empty method", `{"jsonrpc":"2.0","id":1,"method":""}`, []string{"1|invalid_request|false"}},
		{"method as a number", `{"jsonrpc":"2.0","id":1,"method":1}`, []string{"1|invalid_request|false"}},
		{"method with a NUL", `{"jsonrpc":"2.0","id":1,"method":"m\u0000"}`, []string{"1|invalid_request|false"}},
		{"params as a string", call(`,"id":1,"params":"x"`), []string{"1|invalid_request|false"}},
		{"unknown member", call(`,"id":1,"meta":{}`), []string{"1|invalid_request|false"}},
		{"other case", `{"JSONRPC":"2.0","method":"m","id":1}`, []string{"1|invalid_request|false"}},
		{"a response", `{"jsonrpc":"2.0","id":1,"result":{}}`, []string{"1|invalid_request|false"}},
		{"id twice", call(`,"id":1,"id":2`), []string{"2|invalid_request|false"}},
		{"params twice", call(`,"id":1,"params":{},"params":{}`), []string{"1|invalid_request|false"}},
		{"method twice, once escaped", call(`,"id":1,"m\u0065thod":"x"`), []string{"1|invalid_request|false"}},

		{"params with a name twice", call(`,"id":1,"params":{"a":1,"a":2}`), []string{"1|invalid_params|false"}},
		{"params with a name twice deep down", call(`,"id":1,"params":{"x":[{"a":1,"\u0061":2}]}`), []string{"1|invalid_params|false"}},
		{"params with a high surrogate", call(`,"id":1,"params":["\ud83d"]`), []string{"1|invalid_params|false"}},
		{"params with a low surrogate", call(`,"id":1,"params":["\ude00x"]`), []string{"1|invalid_params|false"}},
		{"params with swapped surrogates", call(`,"id":1,"params":["\ude00\ud83d"]`), []string{"1|invalid_params|false"}},
		{"params with a pair", call(`,"id":1,"params":["\ud83d\ude00"]`), []string{`1|m|["\ud83d\ude00"]`}},
		{"params with a NUL", call(`,"id":1,"params":{"a":"\u0000"}`), []string{"1|invalid_params|false"}},
		{"params with a NUL in a name", call(`,"id":1,"params":{"\u0000":1}`), []string{"1|invalid_params|false"}},
		{"bad params of a notification", call(`,"params":{"a":1,"a":2}`), []string{"|invalid_params|true"}},
		{"same name in two objects", call(`,"id":1,"params":[{"a":1},{"a":2}]`), []string{`1|m|[{"a":1},{"a":2}]`}},

		{"batch", `[` + call(`,"id":1`) + `,` + call(`,"id":2`) + `]`, []string{"1|m|", "2|m|"}},
		{"batch of no requests", `[1,"x",[],{}]`, []string{
			"|invalid_request|false", "|invalid_request|false", "|invalid_request|false", "|invalid_request|false",
		}},
		{"batch with one bad", `[` + call(`,"id":1`) + `,{"id":2}]`, []string{"1|m|", "2|invalid_request|false"}},
		{"empty batch", `[ ]`, []string{CodeRequest}},
		{"batch of three", `[1,2,3]`, []string{"|invalid_request|false", "|invalid_request|false", "|invalid_request|false"}},
		{"batch of five, too many", `[1,2,3,4,5]`, []string{CodeRequest}},
		{"a number", `7`, []string{"|invalid_request|false"}},

		{"empty", ``, []string{CodeParse}},
		{"blank", `  `, []string{CodeParse}},
		{"cut short", `{"jsonrpc":"2.0"`, []string{CodeParse}},
		{"cut batch", `[{"jsonrpc": "2.0", "method"`, []string{CodeParse}},
		{"comma behind the last", `{"a":1,}`, []string{CodeParse}},
		{"two values", `{} {}`, []string{CodeParse}},
		{"single quotes", `{'a':1}`, []string{CodeParse}},
		{"raw control character", "{\"a\":\"\n\"}", []string{CodeParse}},
		{"raw NUL", "{\"a\":\"\x00\"}", []string{CodeParse}},
		{"invalid UTF-8", "{\"a\":\"\xff\"}", []string{CodeParse}},
		{"surrogate in UTF-8", "{\"a\":\"\xed\xa0\x80\"}", []string{CodeParse}},
		{"overlong UTF-8", "{\"a\":\"\xc0\x80\"}", []string{CodeParse}},
		{"byte order mark", "\ufeff{}", []string{CodeParse}},
		{"unfinished escape", `{"a":"\u12"}`, []string{CodeParse}},
		{"unknown escape", `{"a":"\x"}`, []string{CodeParse}},
		{"leading zero", call(`,"id":01`), []string{CodeParse}},
		{"no number", call(`,"id":-`), []string{CodeParse}},
		{"as deep as allowed", call(`,"id":1,"params":` + deep(7)), []string{"1|m|" + deep(7)}},
		{"deeper", call(`,"id":1,"params":` + deep(8)), []string{CodeRequest}},
		{"a bomb", strings.Repeat("[", 100_000), []string{CodeRequest}},
		{"a bomb of objects", strings.Repeat(`{"a":`, 100_000), []string{CodeRequest}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			if diff := cmp.Diff(parsed(tt.text, Limits{Batch: 4, Depth: 8}), tt.want); diff != "" {
				t.Errorf("parse(%.200s) (-got +want):\n%s", tt.text, diff)
			}
		})
	}
}

// Wide texts must cost time and memory in proportion to their length.
func TestParseWide(t *testing.T) {
	t.Parallel()

	var names, same strings.Builder
	for i := range 200_000 {
		names.WriteString(`"` + strconv.Itoa(i) + `":1,`)
		same.WriteString(`"` + strconv.Itoa(i%199_999) + `":1,`)
	}
	tests := []struct {
		name, params, want string
	}{
		{"names", "{" + strings.TrimSuffix(names.String(), ",") + "}", ""},
		{"one name twice among them", "{" + strings.TrimSuffix(same.String(), ",") + "}", CodeInvalid},
		{"elements", "[" + strings.Repeat("[],", 600_000) + "{}]", ""},
		{"numbers", "[" + strings.Repeat("1,", 900_000) + "1]", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			m, bad := parse([]byte(`{"jsonrpc":"2.0","id":1,"method":"m","params":`+tt.params+`}`), Limits{}.withDefaults())
			if bad != nil {
				t.Fatal(bad)
			}
			got := ""
			if m.requests[0].bad != nil {
				got = m.requests[0].bad.Code
			}
			if got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestNameSet(t *testing.T) {
	t.Parallel()

	for _, n := range []int{1, fewNames - 1, fewNames, fewNames + 1, 3 * fewNames} {
		var s nameSet
		for i := range n {
			if !s.add([]byte(strconv.Quote("n" + strconv.Itoa(i)))) {
				t.Errorf("of %d names, %d was taken for an old one", n, i)
			}
		}
		for i := range n {
			if s.add([]byte(`"\u006e` + strconv.Itoa(i) + `"`)) {
				t.Errorf("of %d names, %d was taken for a new one", n, i)
			}
		}
	}
}

// FuzzParse compares with jrpc2's parser, which is less strict: what is accepted
// here, is accepted there, and means the same.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		`{"jsonrpc":"2.0","method":"m","id":1,"params":{"a":["\ud83d\ude00",1.5e3,null,true]}}`,
		`[{"jsonrpc":"2.0","method":"m"},{"jsonrpc":"2.0","method":"n","id":"x"},1]`,
		`{"jsonrpc":"2.0","method":"m","id":null}`, `{"a":"\ud800"}`, "\xff", `[`, `{"id":01}`, strings.Repeat("[", 40),
	} {
		f.Add([]byte(seed))
	}
	l := Limits{}.withDefaults()
	f.Fuzz(func(t *testing.T, text []byte) {
		m, bad := parse(text, l)
		if bad != nil {
			if bad.Code == CodeParse && utf8.Valid(text) && json.Valid(text) {
				t.Fatalf("valid JSON was refused: %v", bad)
			}
			return
		}
		if !json.Valid(text) {
			t.Fatal("invalid JSON was accepted")
		}
		theirs, err := jrpc2.ParseRequests(text)
		if err != nil {
			t.Fatalf("jrpc2 refuses: %v", err)
		}
		if len(theirs) != len(m.requests) {
			t.Fatalf("got %d requests, jrpc2 %d", len(m.requests), len(theirs))
		}
		for i, r := range m.requests {
			compareRequest(t, r, theirs[i])
		}
	})
}

// compareRequest fails when a request that is accepted means something else.
func compareRequest(t *testing.T, ours request, theirs *jrpc2.ParsedRequest) {
	t.Helper()
	if ours.bad != nil {
		return
	}
	if theirs.Error != nil {
		t.Fatalf("jrpc2 refuses: %v", theirs.Error)
	}
	id := string(ours.id)
	if id == "null" {
		id = "" // jrpc2 takes it for none
	}
	if id != theirs.ID || ours.method != theirs.Method || !bytes.Equal(bytes.TrimSpace(theirs.Params), ours.params) {
		t.Fatalf("got %s %s %s, jrpc2 %+v", id, ours.method, ours.params, theirs)
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
		s := scanner{text: text, max: maxScan}
		err := s.value(0)
		if err == nil {
			err = s.end()
		}
		if want := json.Valid(text); (err == nil) != want {
			t.Fatalf("json.Valid says %v, scanner %v", want, err)
		}
		if err == nil && s.flaw == nil && strings.ContainsRune(decodedStrings(t, text), utf8.RuneError) && !bytes.ContainsRune(text, utf8.RuneError) && !bytes.Contains(bytes.ToLower(text), []byte(`\ufffd`)) {
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
		s := scanner{text: text.Bytes(), max: maxScan}
		err := s.value(0)
		if err == nil {
			err = s.end()
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
	out, err := encode(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}
