package openaihttp_test

import (
	"bytes"
	"context"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/adapters/openaihttp"
	"github.com/grapnelhq/grapnel/loop"
	"github.com/grapnelhq/grapnel/phases"
)

func TestIdle(t *testing.T) {
	t.Parallel()
	w := newWorld(t, script(said{calls: []call{{"p", "desk_add", `{}`}, {"a", "read", `{}`}}}), func(o *openaihttp.Options) { o.Idle = time.Millisecond })
	c := &talk{world: w, path: chatPath}
	c.user("Go.")
	c.ask()
	if end := c.ended(); end.Status != phases.TurnInterrupted || !strings.Contains(end.Error.Text, "in time") {
		t.Errorf("the turn ended with %+v", end)
	}
	c.result(call{id: "a", args: "late"})
	c.ask()
	if end := c.ended(); end.Status != phases.TurnSucceeded || end.UserText.Text != "Go." {
		t.Errorf("the next turn ended with %+v", end)
	}
	c.wantConversation(1, "user Go.", "call a read {}", "result a late")
}

func TestMaxOpen(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(n int, _ dict) said { return said{calls: []call{{strconv.Itoa(n), "read", `{}`}}} }, func(o *openaihttp.Options) { o.MaxOpen = 2 })
	for i := range 5 {
		c := &talk{world: w, path: chatPath}
		c.user(strconv.Itoa(i))
		c.ask()
		if i >= 2 {
			if end := c.ended(); end.UserText.Text != strconv.Itoa(i-2) || end.Status != phases.TurnInterrupted {
				t.Errorf("the turn ended with %+v", end)
			}
		}
	}
}

// TestMemoryIsBounded: what no longer fits is forgotten, and results are judged again.
func TestMemoryIsBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, script(said{calls: []call{{"a", "read", `{}`}}}, said{calls: []call{{"b", "read", `{}`}}}), func(o *openaihttp.Options) { o.KeepBytes = 1 })
	c := &talk{world: w, path: chatPath}
	c.user("Go.")
	c.ask()
	c.result(call{id: "a", args: "the secret"})
	c.ask()
	c.result(call{id: "b", args: "fine"})
	c.ask()
	if end := c.ended(); len(end.ToolEvents) != 3 {
		t.Errorf("the turn ended with %+v", end)
	}
	if got := c.conversation(2); strings.Contains(got, "secret") {
		t.Errorf("request 2:\n%s", got)
	}
}

// TestHiddenWords: the plugins judge what a provider might read, too.
func TestHiddenWords(t *testing.T) {
	t.Parallel()
	w := newWorld(t, script(), nil)
	for _, part := range []string{
		`{"type":"text","text":"the forbidden thing","Text":"fine"}`, `{"type":"text","text":"fine","text":"the forbidden thing"}`, `{"type":"text","text":"the \u0066orbidden thing"}`,
	} {
		c := &talk{world: w, path: messagesPath}
		s := c.answer(c.do(t.Context(), []byte(`{"messages":[{"role":"user","content":[`+part+`]}]}`))) //nolint:bodyclose // answer closes it
		if s.status != http.StatusForbidden {
			t.Errorf("%s: status %d", part, s.status)
		}
	}
}

func TestHostileHosts(t *testing.T) {
	t.Parallel()
	each(t, script(said{text: "Hi."}), func(t *testing.T, c *talk) {
		t.Helper()
		c.header = map[string]string{"X-Grapnel-Thread": strings.Repeat("x", 5000)}
		c.user("Hi.")
		if s := c.ask(); s.status != http.StatusBadRequest || c.model.count() != 0 {
			t.Errorf("the client got %+v", s)
		}
		c.header = nil
		name := func(name string) dict {
			return dict{"type": "function", "name": name, "input_schema": dict{"type": 7}, "function": dict{"name": name, "parameters": dict{"type": 7}}}
		}
		c.more = dict{"tools": list{name("read"), name("read"), name("desk_add"), name("desk.add"), name(strings.Repeat("n", 5000)), name("request_tools"), name("\u202e")}}
		if s := c.ask(); s.text != "Hi." || strings.Count(c.toolNames(0), "desk_add") != 1 {
			t.Errorf("the client got %+v, the provider %s", s, c.toolNames(0))
		}
		c.ended()
	})
}

// TestPanics: a turn ends whatever a host's function does.
func TestPanics(t *testing.T) {
	t.Parallel()
	w := newWorld(t, script(said{calls: []call{{"a", "huge", `{}`}}}), func(o *openaihttp.Options) {
		o.KeepResult = func(context.Context, loop.Call, string) string { panic(http.ErrAbortHandler) }
	})
	c := &talk{world: w, path: chatPath}
	c.user("Go.")
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, c.URL+c.path, bytes.NewReader(raw(c.request())))
	if err != nil {
		t.Fatal(err)
	}
	if res, err := c.Client().Do(r); err == nil {
		_ = res.Body.Close()
		t.Error("there is an answer")
	}
	if end := c.ended(); end.Status != phases.TurnFailed && end.Status != phases.TurnInterrupted {
		t.Errorf("the turn ended with %+v", end)
	}
}

func TestTooManyItems(t *testing.T) {
	t.Parallel()
	many := said{}
	for i := range 1100 {
		many.calls = append(many.calls, call{strconv.Itoa(i), "read", `{}`})
	}
	each(t, script(many), func(t *testing.T, c *talk) {
		t.Helper()
		c.user("Go.")
		if s := c.ask(); len(s.calls) > 0 || s.status == http.StatusOK {
			t.Errorf("the client got %d calls", len(s.calls))
		}
		c.ended()
	})
}
