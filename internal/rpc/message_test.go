package rpc

import (
	"strconv"
	"strings"
	"testing"

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
		{"escaped names and method", `{"json\u0072pc":"2\u002e0","m\u0065thod":"\u006d","id":1}`, []string{"1|m|"}},
		{"null params are none", call(`,"params":null,"id":1`), []string{"1|m|"}},

		{"id string", call(`,"id":"x\u00e9"`), []string{`"x\u00e9"|m|`}},
		{"id null is an id", call(`,"id":null`), []string{`null|m|`}},
		{"id true", call(`,"id":true`), []string{"|invalid_request|false"}},
		{"id with half a character", call(`,"id":"\ud800"`), []string{"|invalid_request|false"}},

		{"no version", `{"method":"m","id":1}`, []string{"1|invalid_request|false"}},
		{"empty method", `{"jsonrpc":"2.0","id":1,"method":""}`, []string{"1|invalid_request|false"}},
		{"method with a NUL", `{"jsonrpc":"2.0","id":1,"method":"m\u0000"}`, []string{"1|invalid_request|false"}},
		{"params as a string", call(`,"id":1,"params":"x"`), []string{"1|invalid_request|false"}},
		{"other case", `{"JSONRPC":"2.0","method":"m","id":1}`, []string{"1|invalid_request|false"}},
		{"unknown member", call(`,"id":1,"meta":{}`), []string{"1|invalid_request|false"}},
		{"params twice", call(`,"id":1,"params":{},"params":{}`), []string{"1|invalid_request|false"}},

		{"params with a name twice deep down", call(`,"id":1,"params":{"x":[{"a":1,"\u0061":2}]}`), []string{"1|invalid_params|false"}},
		{"params with a high surrogate", call(`,"id":1,"params":["\ud83d"]`), []string{"1|invalid_params|false"}},
		{"params with a pair", call(`,"id":1,"params":["\ud83d\ude00"]`), []string{`1|m|["\ud83d\ude00"]`}},
		{"params with a NUL", call(`,"id":1,"params":{"a":"\u0000"}`), []string{"1|invalid_params|false"}},
		{"bad params of a notification", call(`,"params":{"a":1,"a":2}`), []string{"|invalid_params|true"}},

		{"batch", `[` + call(`,"id":1`) + `,` + call(`,"id":2`) + `]`, []string{"1|m|", "2|m|"}},
		{"batch of no requests", `[1,"x",[],{}]`, []string{
			"|invalid_request|false", "|invalid_request|false", "|invalid_request|false", "|invalid_request|false",
		}},
		{"batch with one bad", `[` + call(`,"id":1`) + `,{"id":2}]`, []string{"1|m|", "2|invalid_request|false"}},
		{"empty batch", `[ ]`, []string{CodeRequest}},
		{"batch of five, too many", `[1,2,3,4,5]`, []string{CodeRequest}},

		{"empty", ``, []string{CodeParse}},
		{"cut short", `{"jsonrpc":"2.0"`, []string{CodeParse}},
		{"raw control character", "{\"a\":\"\n\"}", []string{CodeParse}},
		{"invalid UTF-8", "{\"a\":\"\xff\"}", []string{CodeParse}},
		{"overlong UTF-8", "{\"a\":\"\xc0\x80\"}", []string{CodeParse}},
		{"byte order mark", "\ufeff{}", []string{CodeParse}},
		{"unfinished escape", `{"a":"\u12"}`, []string{CodeParse}},
		{"leading zero", call(`,"id":01`), []string{CodeParse}},
		{"as deep as allowed", call(`,"id":1,"params":` + deep(7)), []string{"1|m|" + deep(7)}},
		{"deeper", call(`,"id":1,"params":` + deep(8)), []string{CodeRequest}},
		{"a bomb", strings.Repeat("[", 100_000), []string{CodeRequest}},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(parsed(tt.text, Limits{Batch: 4, Depth: 8}), tt.want); diff != "" {
			t.Errorf("%s: parse(%.200s) (-got +want):\n%s", tt.name, tt.text, diff)
		}
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
