package rpc

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

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

// TestParseForeign: a member that its method checks itself may have flaws, and nothing else of a message.
func TestParseForeign(t *testing.T) {
	t.Parallel()

	l := Limits{Batch: 4, Depth: 8, foreign: map[string]string{"m": "p"}}
	call := func(method, params string) string {
		return `{"jsonrpc":"2.0","id":1,"params":` + params + `,"method":"` + method + `"}`
	}
	deep := strings.Repeat("[", 100) + strings.Repeat("]", 100)
	for _, flawed := range []string{`"\u0000"`, `"\ud800"`, "\"\xff\"", `{"a":1,"a":2}`, deep} {
		for _, tt := range []struct {
			text string
			fine bool
		}{
			{call("m", `{"p":`+flawed+`}`), true},
			{call("m", `{"q":1,"p":`+flawed+`}`), true},
			{call("m", `{"p":1,"q":`+flawed+`}`), flawed == deep},
			{call("m", `{"p":`+flawed+`,"p":1}`), false},
			{call("m", `[`+flawed+`]`), flawed == deep},
			{call("n", `{"p":`+flawed+`}`), false},
			{`[` + call("n", `{"p":`+flawed+`}`) + `]`, false},
		} {
			m, bad := parse([]byte(tt.text), l)
			if fine := bad == nil && m.requests[0].bad == nil; fine != tt.fine {
				t.Errorf("%q: %v, %+v", tt.text, bad, m.requests)
			}
		}
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

// FuzzParse: what is accepted is valid JSON, and valid JSON is never a parse error.
// The module internal/tests/oracle compares the meaning of requests with jrpc2's.
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
		_, bad := parse(text, l)
		switch {
		case bad == nil && !json.Valid(text):
			t.Fatal("invalid JSON was accepted")
		case bad != nil && bad.Code == CodeParse && utf8.Valid(text) && json.Valid(text):
			t.Fatalf("valid JSON was refused: %v", bad)
		}
	})
}
