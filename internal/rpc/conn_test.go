package rpc

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/google/go-cmp/cmp"
)

// quietConn is a connection without goroutines, whose queue only grows.
func quietConn(t *testing.T, queue int) *Conn {
	t.Helper()
	srv := must(New(Options{Limits: Limits{Queue: queue}}))(t)
	t.Cleanup(func() { srv.stop(ErrClosed) })
	return newConn(srv, nil, nil, true)
}

// waiting takes everything from the queue.
func (c *Conn) waiting() []string {
	var out []string
	for {
		it, ok, bye := c.next()
		switch {
		case ok && it.answer != nil:
			out = append(out, string(it.answer))
		case ok:
			out = append(out, it.key+" "+it.method+" "+string(it.params))
		case bye != nil:
			return append(out, bye.reason)
		default:
			return out
		}
	}
}

func TestNotifyQueue(t *testing.T) {
	t.Parallel()

	const coalesced, dropped = NotifyCoalesced, NotifyDropped
	const tooSlow = "this client reads too slowly: connect again, and ask what changed since"
	raw := func(s string) json.RawMessage { return json.RawMessage(s) }
	tests := []struct {
		name     string
		do       func(c *Conn)
		want     []string
		outcomes map[string]int
	}{
		{"in order, answers among them", func(c *Conn) {
			c.Notify("a", "m", raw("1"))
			c.reply([]byte("answer"), c.srv.quota.lease(nil, c.memory, nil))
			c.Notify("b", "m", map[string]string{"x": "<"})
		}, []string{"a m 1", "answer", `b m {"x":"<"}`}, map[string]int{}},
		{"the same key is replaced, at the end", func(c *Conn) {
			c.Notify("a", "m", raw("1"))
			c.Notify("b", "m", raw("2"))
			c.Notify("a", "n", raw("3"))
		}, []string{"b m 2", "a n 3"}, map[string]int{coalesced: 1}},
		{"without a key nothing is replaced", func(c *Conn) {
			c.Notify("", "m", raw("1"))
			c.Notify("", "m", raw("2"))
		}, []string{" m 1", " m 2"}, map[string]int{}},
		{"as many as may wait, however often they change", func(c *Conn) {
			for i := range 30 {
				c.Notify(itoa(i%3), "m", raw(itoa(i)))
			}
		}, []string{"0 m 27", "1 m 28", "2 m 29"}, map[string]int{coalesced: 27}},
		{"one more", func(c *Conn) {
			for i := range 4 {
				c.Notify(itoa(i), "m", raw("1"))
			}
		}, []string{tooSlow}, map[string]int{dropped: 4}},
		{"answers do not count", func(c *Conn) {
			for range 5 {
				c.reply([]byte("answer"), c.srv.quota.lease(nil, c.memory, nil))
			}
			c.Notify("", "m", raw("1"))
		}, []string{"answer", "answer", "answer", "answer", "answer", " m 1"}, map[string]int{}},
		{"nothing behind the end", func(c *Conn) {
			c.close(websocket.StatusPolicyViolation, "bye", false)
			c.Notify("", "m", raw("1"))
			c.reply([]byte("answer"), c.srv.quota.lease(nil, c.memory, nil))
		}, []string{"bye"}, map[string]int{dropped: 1}},
		{"answers before a patient end", func(c *Conn) {
			c.Notify("", "m", raw("1"))
			c.close(websocket.StatusGoingAway, "bye", true)
			c.Notify("", "m", raw("2"))
			c.reply([]byte("answer"), c.srv.quota.lease(nil, c.memory, nil))
		}, []string{" m 1", "answer", "bye"}, map[string]int{dropped: 1}},
		{"the patient end waits for what is in flight", func(c *Conn) {
			c.slots <- struct{}{}
			c.close(websocket.StatusGoingAway, "bye", true)
		}, nil, map[string]int{}},
		{"an end at once goes before a patient one", func(c *Conn) {
			c.Notify("", "m", raw("1"))
			c.close(websocket.StatusGoingAway, "bye", true)
			c.close(websocket.StatusPolicyViolation, "now", false)
			c.close(websocket.StatusGoingAway, "later", true)
			c.close(websocket.StatusGoingAway, "later", false)
		}, []string{"now"}, map[string]int{dropped: 1}},
		{"what does not encode is omitted", func(c *Conn) {
			c.Notify("", "m", func() {})
			c.Notify("", "m", nil)
		}, []string{" m null"}, map[string]int{dropped: 1}},
		{"behind the writer's end", func(c *Conn) {
			c.Notify("", "m", raw("1"))
			c.over()
			c.Notify("", "m", raw("2"))
		}, []string{""}, map[string]int{dropped: 2}},
	}
	for _, tt := range tests { // each notification has one outcome, unless it waits
		c, got := quietConn(t, 3), map[string]int{}
		c.srv.opts.OnNotify = func(outcome string) { got[outcome]++ }
		tt.do(c)
		if diff := cmp.Diff(c.waiting(), tt.want); diff != "" {
			t.Errorf("%s: queue (-got +want):\n%s", tt.name, diff)
		}
		if diff := cmp.Diff(got, tt.outcomes); diff != "" {
			t.Errorf("%s: outcomes (-got +want):\n%s", tt.name, diff)
		}
	}
}

// watch opens a connection and returns both of its ends.
func (h *harness) watch(t testing.TB) (*websocket.Conn, *Conn) {
	t.Helper()
	ws := h.dial(t)
	say(t, ws, `{"jsonrpc":"2.0","id":1,"method":"test/watch"}`)
	hear(t, ws)
	return ws, await(t, h.hooks.conn, "the connection")
}

// A client that reads slowly is told so, when it reads at last.
func TestSlowReader(t *testing.T) {
	t.Parallel()

	h := start(t, func(o *Options) { o.Limits.Queue = 4 })
	ws, conn := h.watch(t)
	big := json.RawMessage(`"` + strings.Repeat("x", 4<<20) + `"`)
	for range 100 {
		conn.Notify("", "test/said", big)
	}
	await(t, conn.Context().Done(), "the end of the connection")
	got := hearClose(t, ws)
	want := websocket.CloseError{Code: websocket.StatusTryAgainLater, Reason: "this client reads too slowly: connect again, and ask what changed since"}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("close (-got +want):\n%s", diff)
	}
	h.awaitOpen(t, 0)
}

// A client that never reads is given up, with whatever waits for it.
func TestNoReader(t *testing.T) {
	t.Parallel()

	h := start(t, func(o *Options) { o.Limits.Write = 50 * time.Millisecond })
	conn := h.rawSocket(t, 4096)
	for i := range 3 {
		body := `{"jsonrpc":"2.0","id":` + itoa(i) + `,"method":"test/big","params":{"text":"","count":10000000}}`
		must(conn.Write(frame(len(body), body)))(t)
	}
	h.awaitOpen(t, 1)
	h.awaitOpen(t, 0)
}

func TestSetTokensCloses(t *testing.T) {
	t.Parallel()

	ann := Token{Name: "ann", SHA256: sum("a"), Rights: []Right{ReadRight}, Workspaces: []string{"w"}}
	tests := []struct {
		name   string
		tokens []Token
		stays  bool
	}{
		{"the same", []Token{{Name: "bob", SHA256: sum("b")}, ann}, true},
		{"gone", []Token{{Name: "bob", SHA256: sum("b")}}, false},
		{"none at all", []Token{}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			h := start(t, func(o *Options) { o.Tokens = []Token{ann} })
			ws := h.dial(t, func(o *websocket.DialOptions) { o.Subprotocols = []string{subprotocol + "a"} })
			say(t, ws, `{"jsonrpc":"2.0","id":1,"method":"test/hang"}`)
			await(t, h.hooks.began, "the call")
			if err := h.srv.SetTokens(tt.tokens); err != nil {
				t.Fatal(err)
			}
			if tt.stays {
				say(t, ws, `{"jsonrpc":"2.0","id":1,"method":"test/who"}`)
				if got := summaries(t, hear(t, ws)); got[0] != `1 "ann"` {
					t.Errorf("got %v", got)
				}
				return
			}
			want := websocket.CloseError{Code: websocket.StatusPolicyViolation, Reason: "the token is no longer valid"}
			if diff := cmp.Diff(hearClose(t, ws), want); diff != "" {
				t.Errorf("close (-got +want):\n%s", diff)
			}
			if err := await(t, h.hooks.ended, "the end of the call"); !errors.Is(err, ErrClosed) {
				t.Errorf("the cause is %v", err)
			}
		})
	}
}
