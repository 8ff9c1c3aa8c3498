package rpc

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// batchOf is a batch of so many equal requests.
func batchOf(n int, request string) string {
	return "[" + strings.TrimSuffix(strings.Repeat(request+",", n), ",") + "]"
}

func TestPost(t *testing.T) {
	t.Parallel()

	h := start(t)
	call := func(method, params string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":` + params + `}`
	}
	note := `{"jsonrpc":"2.0","method":"test/who"}`
	tests := []struct {
		name, body string
		status     int
		want       []string
	}{
		{"call without params", `{"jsonrpc":"2.0","id":"a","method":"test/who"}`, 200, []string{`"a" "open"`}},
		{"notification", note, 204, nil},
		{"batch", "[" + call("test/who", "{}") + "," + note + "," + call("test/x", "{}") + ",1]", 200, []string{
			`1 "open"`, "1 -32601 unknown_method", "null -32600 invalid_request",
		}},
		{"batch of 50", batchOf(50, note), 204, nil},
		{"batch of 51", batchOf(51, note), 200, []string{"null -32600 invalid_request"}},
		{"width bomb", call("test/echo", "{"+strings.Repeat(`"a":[],`, 200_000)+`"b":1}`), 200, []string{"1 -32602 invalid_params"}},
		{"as long as allowed", call("test/who", "{}") + strings.Repeat(" ", 2<<20-len(call("test/who", "{}"))), 200, []string{`1 "open"`}},
		{"one byte longer", call("test/who", "{}") + strings.Repeat(" ", 2<<20+1-len(call("test/who", "{}"))), 200, []string{"null -32602 too_large"}},
		{"error of the inside", call("test/fail", "{}"), 200, []string{"1 -32603 internal"}},
		{"panic", call("test/panic", "{}"), 200, []string{"1 -32603 internal"}},
	}
	for _, tt := range tests {
		status, body := h.post(t, tt.body)
		if status != tt.status {
			t.Errorf("%s: got the status %d, want %d", tt.name, status, tt.status)
		}
		if strings.Contains(body, "hunter2") {
			t.Errorf("%s: the client sees the inside: %s", tt.name, body)
		}
		if diff := cmp.Diff(summaries(t, body), tt.want); diff != "" {
			t.Errorf("%s: responses (-got +want):\n%s\n%s", tt.name, diff, body)
		}
	}
}

func TestPostRefusals(t *testing.T) {
	t.Parallel()

	h := start(t, func(o *Options) {
		o.Hosts = []string{"Gateway.example", "proxy.example:8443", "[2001:DB8::1]", "[2001:db8::2]:8443"}
		o.Origins = []string{"https://page.example"}
	})
	header := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(name, value) }
	}
	host := func(name string) func(*http.Request) { return func(r *http.Request) { r.Host = name } }
	tests := []struct {
		name   string
		change func(*http.Request)
		status int
	}{
		{"own address", func(*http.Request) {}, 200},
		{"localhost", host("localhost:99"), 200},
		{"IPv6 loopback", host("[::1]:80"), 200},
		{"configured host", host("gateway.example:1234"), 200},
		{"configured host and port", host("PROXY.example:8443"), 200},
		{"configured host, other port", host("proxy.example:80"), 403},
		{"configured IPv6 address, any port", host("[2001:db8::1]:80"), 200},
		{"configured IPv6 address and port", host("[2001:db8::2]:8443"), 200},
		{"configured IPv6 address, other port", host("[2001:db8::2]:80"), 403},
		{"a name with a dot at its end", host("gateway.example."), 403},
		{"a name that points here", host("evil.example"), 403},
		{"localhost as a part", host("localhost.evil.example"), 403},
		{"every address", host("0.0.0.0"), 403},

		{"own origin", header("Origin", "http://"+h.addr), 200},
		{"own origin with a path", header("Origin", "http://"+h.addr+"/x"), 403},
		{"configured origin", header("Origin", "https://page.example"), 200},
		{"configured origin, other scheme", header("Origin", "http://page.example"), 403},
		{"another origin", header("Origin", "http://evil.example"), 403},
		{"own host, other port", header("Origin", "http://127.0.0.1:1"), 403},
		{"origin null", header("Origin", "null"), 403},
		{"two origins", func(r *http.Request) { r.Header["Origin"] = []string{"http://" + h.addr, "http://" + h.addr} }, 403},

		{"charset", header("Content-Type", "application/json; charset=utf-8"), 200},
		{"text", header("Content-Type", "text/plain"), 415},
		{"no type", header("Content-Type", ""), 415},
		{"packed", header("Content-Encoding", "gzip"), 415},
		{"GET", func(r *http.Request) { r.Method = http.MethodGet }, 405},
	}
	for _, tt := range tests {
		status, body := h.post(t, `{"jsonrpc":"2.0","id":1,"method":"test/who"}`, tt.change)
		if status != tt.status {
			t.Errorf("%s: got the status %d, want %d: %s", tt.name, status, tt.status, body)
		}
		if status != 200 && !strings.Contains(body, `"data":{"code":`) {
			t.Errorf("%s: no error object: %s", tt.name, body)
		}
	}
}

func TestPostTokens(t *testing.T) {
	t.Parallel()

	h := start(t, func(o *Options) {
		o.Tokens = []Token{
			{Name: "ann", SHA256: sum("secret-a"), Rights: []Right{ReadRight}, Workspaces: []string{"w"}},
			{Name: "bob", SHA256: strings.ToUpper(sum("secret-b")), Rights: []Right{AdminRight}, Workspaces: []string{EveryWorkspace}},
		}
	})
	header := func(name string, values ...string) func(*http.Request) {
		return func(r *http.Request) { r.Header[name] = values }
	}
	bearer := func(values ...string) func(*http.Request) { return header("Authorization", values...) }
	tests := []struct {
		name   string
		method string
		change func(*http.Request)
		want   string
	}{
		{"none", "test/who", func(*http.Request) {}, "null -32003 unauthorized"},
		{"wrong", "test/who", bearer("Bearer secret-c"), "null -32003 unauthorized"},
		{"empty", "test/who", bearer("Bearer "), "null -32003 unauthorized"},
		{"the hash itself", "test/who", bearer("Bearer " + sum("secret-a")), "null -32003 unauthorized"},
		{"other scheme", "test/who", bearer("Basic secret-a"), "null -32003 unauthorized"},
		{"behind a wrong one", "test/who", bearer("Bearer secret-c", "Bearer secret-a"), "null -32003 unauthorized"},
		{"for a proxy", "test/who", header("Proxy-Authorization", "Bearer secret-a"), "null -32003 unauthorized"},
		{"in a cookie", "test/who", header("Cookie", "token=secret-a"), "null -32003 unauthorized"},
		{"in the address", "test/who", func(r *http.Request) { r.URL.RawQuery = "token=secret-a&access_token=secret-a" }, "null -32003 unauthorized"},
		{"right", "test/who", bearer("Bearer secret-a"), `1 "ann"`},
		{"the other", "test/who", bearer("bearer secret-b"), `1 "bob"`},
		{"has the right", "test/admin", bearer("Bearer secret-b"), `1 "done"`},
		{"lacks the right", "test/admin", bearer("Bearer secret-a"), "1 -32003 unauthorized"},
	}
	for _, tt := range tests {
		status, body := h.post(t, `{"jsonrpc":"2.0","id":1,"method":"`+tt.method+`"}`, tt.change)
		if diff := cmp.Diff(summaries(t, body), []string{tt.want}); diff != "" || status != 200 {
			t.Errorf("%s: status %d, responses (-got +want):\n%s", tt.name, status, diff)
		}
	}
}
