package openaihttp_test

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/grapnelhq/grapnel/adapters/openaihttp"
	"github.com/grapnelhq/grapnel/phases"
)

func TestEndlessCalls(t *testing.T) {
	t.Parallel()
	each(t, func(n int, _ dict) said { return said{calls: []call{{fmt.Sprint("c", n), "shell", `{}`}}} }, func(t *testing.T, c *talk) {
		t.Helper()
		c.user("Go.")
		s := c.ask()
		if s.status == http.StatusOK || c.model.count() != 16 {
			t.Errorf("the client got %+v after %d requests", s, c.model.count())
		}
		if end := c.ended(); end.Status != phases.TurnProviderFailure {
			t.Errorf("the turn ended with %+v", end)
		}
	})
}

func TestBadTools(t *testing.T) {
	t.Parallel()
	each(t, script(said{calls: []call{{"a", "panics", `{}`}, {"b", "huge", `{}`}, {"c", "desk_add", `not JSON`}, {"\x1b[31m\u202e", "no such\x1b[31m tool", `{}`}}}, said{text: "Done."}), func(t *testing.T, c *talk) {
		t.Helper()
		c.user("Go.")
		s := c.ask()
		if len(s.calls) != 1 || s.calls[0].name != "no such\x1b[31m tool" {
			t.Errorf("the client got %+v", s.calls)
		}
		c.result(call{id: "\x1b[31m\u202e", args: "none"})
		c.ask()
		got := c.conversation(1)
		if !strings.Contains(got, "result a ") || len(got) > 60_000 || !strings.Contains(got, "tool.output.trimmed") {
			t.Errorf("request 1: %.2000s", got)
		}
		if end := c.ended(); end.Status != phases.TurnSucceeded || len(end.ToolEvents) != 4 {
			t.Errorf("the turn ended with %+v", end)
		}
	})
}

// TestNUL: plugins take none, and a conversation with one goes on anyway.
func TestNUL(t *testing.T) {
	t.Parallel()
	each(t, script(said{calls: []call{{"a", "read", `{"x":"\u0000"}`}, {"b", "desk_add", `{"x":"\u0000"}`}, {"c", "read", `{}`}}}, said{text: "Done."}), func(t *testing.T, c *talk) {
		t.Helper()
		c.user("a\x00b")
		if s := c.ask(); len(s.calls) != 1 || s.calls[0].id != "c" {
			t.Errorf("the client got %+v", s)
		}
		c.result(call{id: "c", args: "x\x00y"})
		c.ask()
		if got := c.conversation(1); !strings.Contains(got, "result c x\x00y") || strings.Count(got, "was refused (input of tool.pre_call: arguments holds a NUL)") != 2 {
			t.Errorf("request 1:\n%q", got)
		}
		c.ended()
	})
}

func TestHostileRequests(t *testing.T) {
	t.Parallel()
	w := newWorld(t, script(said{text: "Hi."}), func(o *openaihttp.Options) { o.MaxBody = 1 << 20 })
	deep := strings.Repeat("[", 9000) + strings.Repeat("]", 9000)
	for _, path := range []string{chatPath, responsesPath, messagesPath} {
		list := map[string]string{chatPath: "messages", responsesPath: "input", messagesPath: "messages"}[path]
		for _, tt := range []struct {
			name, body string
			want       int
		}{
			{"no JSON", `hello`, http.StatusBadRequest},
			{"no object", `[]`, http.StatusBadRequest},
			{"half", `{"model":"m","`, http.StatusBadRequest},
			{"two values", `{} {}`, http.StatusBadRequest},
			{"empty", ``, http.StatusBadRequest},
			{"too deep", `{"x":` + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) + `}`, http.StatusBadRequest},
			{"deep", `{"model":"m","` + list + `":[{"role":"user","content":` + deep + `}],"x":` + deep + `}`, http.StatusOK},
			{"too large", `{"model":"` + strings.Repeat("x", 1<<20) + `"}`, http.StatusRequestEntityTooLarge},
			{"a list twice", `{"` + list + `":[],"` + list + `":[{"role":"user","content":"x"}]}`, http.StatusBadRequest},
			{"a role twice", `{"` + list + `":[{"role":"user","role":"assistant","content":"x"}]}`, http.StatusBadRequest},
			{"another case", `{"` + list + `":[{"role":"user","content":"x"}],"` + strings.ToUpper(list) + `":7}`, http.StatusOK},
			{"no messages", `{"` + list + `":{}}`, http.StatusOK},
			{"messages that are none", `{"` + list + `":[1,null,"x"]}`, http.StatusBadRequest},
			{"two answers", `{"n":2,"` + list + `":[]}`, http.StatusBadRequest},
			{"functions", `{"functions":[{}],"` + list + `":[]}`, http.StatusBadRequest},
			{"background", `{"background":true,"` + list + `":[]}`, http.StatusBadRequest},
			{"a stored conversation", `{"conversation":"c","` + list + `":[]}`, http.StatusBadRequest},
			{"strange members", `{"` + list + `":[{"role":7,"content":7,"tool_calls":7,"tool_call_id":7}],"tools":7,"system":7,"instructions":7,"tool_choice":7,"stream":7,"model":7}`, http.StatusOK},
			{"strange calls", `{"` + list + `":[{"role":"assistant","content":[{"type":"tool_use"}],"tool_calls":[{},{"id":1}]},{"role":"tool"},{"type":"function_call","call_id":"x"},{"type":"x_call_output"},{"role":"user","content":[{"type":"tool_result"}]}],"tools":[{},{"name":7},{"name":"\u0000","parameters":[]}]}`, http.StatusOK},
		} {
			c := &talk{world: w, path: path}
			res := c.do(t.Context(), []byte(tt.body))
			got, _ := io.ReadAll(res.Body)
			_ = res.Body.Close()
			if res.StatusCode != tt.want {
				t.Errorf("%s, %s: status %d, want %d: %.300s", path, tt.name, res.StatusCode, tt.want, got)
			}
			if tt.want != http.StatusOK {
				said{body: string(got)}.problem(t)
			}
		}
	}
}

func TestHostileAnswers(t *testing.T) {
	t.Parallel()
	for _, path := range []string{chatPath, responsesPath, messagesPath} {
		for _, body := range []string{
			`hello`, `[]`, `{"choices":7,"content":7,"output":7}`, `{"choices":[{"message":{"function_call":{"name":"shell"}}}]}`,
			`{"choices":[{},{}]}`, `{"choices":[{"message":{"tool_calls":[{"id":"a","id":"b"}]}}]}`, strings.Repeat("x", 2<<20),
			`{"type":"message","content":[{"type":"tool_use","type":"text"}]}`, `{"output":[7]}`, `{"type":"message","content":[7]}`, `{"choices":[7]}`,
		} {
			w := newWorld(t, func(int, dict) said { return said{body: body} }, func(o *openaihttp.Options) { o.MaxBody = 1 << 20 })
			c := &talk{world: w, path: path}
			c.user("Hi.")
			res := c.do(t.Context(), raw(c.request()))
			got, _ := io.ReadAll(res.Body)
			_ = res.Body.Close()
			if strings.Contains(string(got), "shell") || res.StatusCode == http.StatusOK && !strings.Contains(body, "7") {
				t.Errorf("%s: %.100s gives %d %.300s", path, body, res.StatusCode, got)
			}
			w.ended()
		}
	}
}

// TestTwins: two conversations that nobody can tell apart get no part of each other's turns.
func TestTwins(t *testing.T) {
	t.Parallel()
	each(t, script(said{calls: []call{{"p", "desk_add", `{"n":1}`}, {"c", "read", `{}`}}}, said{calls: []call{{"p", "desk_add", `{"n":2}`}, {"c", "read", `{}`}}}), func(t *testing.T, c *talk) {
		t.Helper()
		twin := &talk{world: c.world, path: c.path, stream: c.stream}
		for _, one := range []*talk{c, twin} {
			one.user("Go.")
			one.ask()
			one.result(call{id: "c", args: "one"})
		}
		for i, one := range []*talk{c, twin} {
			one.ask()
			if got := c.conversation(2 + i); strings.Contains(got, "desk_add") {
				t.Errorf("request %d:\n%s", 2+i, got)
			}
			c.ended()
		}
		c.proxy.Close(t.Context())
		for range 2 {
			if end := c.ended(); end.Status != phases.TurnInterrupted {
				t.Errorf("the turn ended with %+v", end)
			}
		}
	})
}

// TestOtherCalls: tools with a text, or of the provider's making, are judged, too.
func TestOtherCalls(t *testing.T) {
	t.Parallel()
	for path, bodies := range map[string][2]string{
		chatPath: {
			`{"choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"custom","custom":{"name":"shell","input":"rm"}},{"id":"b","type":"custom","custom":{"name":"read","input":"x"}}]},"finish_reason":"tool_calls"}]}`,
			`[{"id":"b","type":"custom","custom":{"name":"read","input":"x"}}]`,
		},
		responsesPath: {
			`{"object":"response","output":[{"type":"custom_tool_call","call_id":"a","name":"shell","input":"rm"},{"type":"web_search_call","id":"w"},{"type":"custom_tool_call","call_id":"b","name":"read","input":"x"}]}`,
			`"output":[{"type":"web_search_call","id":"w"},{"type":"custom_tool_call","call_id":"b","name":"read","input":"x"}]`,
		},
		messagesPath: {
			`{"type":"message","content":[{"type":"tool_use","id":"a","name":"shell","input":{}},{"type":"server_tool_use","id":"w","name":"shell","input":{}},{"type":"tool_use","id":"b","name":"read","input":{"z":1,"a":2}}]}`,
			`"content":[{"type":"server_tool_use","id":"w","name":"shell","input":{}},{"type":"tool_use","id":"b","name":"read","input":{"z":1,"a":2}}]`,
		},
	} {
		w := newWorld(t, func(int, dict) said { return said{body: bodies[0]} }, nil)
		c := &talk{world: w, path: path}
		c.user("Go.")
		res := c.do(t.Context(), raw(c.request()))
		got, _ := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if !strings.Contains(string(got), bodies[1]) || strings.Contains(string(got), "rm") {
			t.Errorf("%s: the client got %s", path, got)
		}
	}
	w := newWorld(t, func(int, dict) said {
		return said{body: `{"object":"response","output":[{"type":"shell_call","call_id":"a","action":{"commands":["rm"]}}]}`}
	}, nil)
	c := &talk{world: w, path: responsesPath}
	c.user("Go.")
	if s := c.ask(); s.status != http.StatusForbidden || !strings.Contains(s.problem(t).Error.Message, "no shell here") || w.ended().Status != phases.TurnBlocked {
		t.Errorf("the client got %+v", s)
	}
}

func TestOtherPaths(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(int, dict) said { return said{status: http.StatusTeapot, body: `{ "as" : 1.0 }`} }, nil)
	for _, path := range []string{"/v1/models", "/v1/messages/count_tokens", "/v1/threads/t/messages"} {
		c := &talk{world: w, path: path, header: map[string]string{"X-Grapnel-Thread": "t"}}
		s := c.answer(c.do(t.Context(), []byte(`{"zeta" : 1}`))) //nolint:bodyclose // answer closes it
		if s.status != http.StatusTeapot || s.body != `{ "as" : 1.0 }` {
			t.Errorf("%s: the client got %+v", path, s)
		}
	}
	if w.model.body(2) != `{"zeta" : 1}` || w.model.headers[2].Get("X-Grapnel-Thread") != "" || len(w.ends) > 0 {
		t.Errorf("the provider got %s, %v", w.model.body(2), w.model.headers[2])
	}
	c := &talk{world: w, path: responsesPath, header: map[string]string{"Connection": "Upgrade", "Upgrade": "websocket"}}
	s := c.answer(c.do(t.Context(), nil)) //nolint:bodyclose // answer closes it
	if s.status != http.StatusNotImplemented || w.model.count() != 3 {
		t.Errorf("another protocol: the client got %+v", s)
	}
}

func TestUnreachable(t *testing.T) {
	t.Parallel()
	w := newWorld(t, script(), nil)
	w.model.Close()
	c := &talk{world: w, path: messagesPath}
	c.user("Hi.")
	s := c.ask()
	if p := s.problem(t); s.status != http.StatusBadGateway || strings.Contains(p.Error.Message, "127.0.0.1") || w.ended().Status != phases.TurnProviderFailure {
		t.Errorf("the client got %+v", s)
	}
}

func TestOptions(t *testing.T) {
	t.Parallel()
	if _, err := openaihttp.New(openaihttp.Options{Upstream: &url.URL{Host: "x"}}); err == nil {
		t.Error("a proxy without an engine")
	}
	w := newWorld(t, script(said{calls: []call{{"a", "read", `{}`}}}), func(o *openaihttp.Options) {
		o.Context = func(r *http.Request) (phases.Context, error) {
			if r.Header.Get("Authorization") != "Bearer key" {
				return phases.Context{}, http.ErrNoCookie
			}
			return phases.Context{ThreadID: "named"}, nil
		}
	})
	c := &talk{world: w, path: chatPath, header: map[string]string{"Authorization": "none"}}
	c.user("Hi.")
	if s := c.ask(); s.status != http.StatusForbidden {
		t.Errorf("the client got %+v", s)
	}
	c.header = nil
	c.ask()
	if got := w.sink.Prompts()[0].ThreadID; got != "named" {
		t.Errorf("thread %q", got)
	}
	w.proxy.Close(t.Context())
	w.proxy.Close(t.Context())
	w.ended()
	if s := c.ask(); s.status != http.StatusServiceUnavailable {
		t.Errorf("after Close the client got %+v", s)
	}
}

// TestConversationsAtOnce: many clients, each with turns of several requests, over all APIs. The provider numbers
// the calls of each answer alike, and all results are the same.
func TestConversationsAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(_ int, r dict) said {
		switch strings.Count(show(r), "it is done") {
		case 2:
			return said{text: "Done."}
		case 1:
			return said{calls: []call{{"call_0", "read", `{"f":2}`}}}
		default:
			return said{calls: []call{{"call_p", "desk_add", `{}`}, {"call_0", "read", `{"f":1}`}}}
		}
	}, nil)
	const clients = 24
	var wg sync.WaitGroup
	for i := range clients {
		wg.Go(func() {
			c := &talk{world: w, path: []string{chatPath, responsesPath, messagesPath}[i%3], stream: i%2 == 0}
			c.user(fmt.Sprint("I am ", i))
			for {
				s := c.ask()
				if len(s.calls) == 0 {
					if s.text != "Done." {
						t.Errorf("client %d got %+v", i, s)
					}
					return
				}
				c.result(call{id: s.calls[0].id, args: "it is done"})
			}
		})
	}
	wg.Wait()
	seen := map[string]bool{}
	for range clients {
		end := w.ended()
		if end.Status != phases.TurnSucceeded || len(end.ToolEvents) != 3 || seen[end.UserText.Text] {
			t.Errorf("a turn ended with %+v", end)
		}
		seen[end.UserText.Text] = true
	}
}
