package rpc

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/google/go-cmp/cmp"
)

func itoa(n int) string { return strconv.Itoa(n) }

func TestWebSocketRefusals(t *testing.T) {
	t.Parallel()

	h := start(t, func(o *Options) {
		o.Tokens = []Token{{Name: "ann", SHA256: sum("secret-a")}}
		o.Origins = []string{"https://page.example"}
	})
	offer := func(names ...string) func(*websocket.DialOptions) {
		return func(o *websocket.DialOptions) { o.Subprotocols = names }
	}
	header := func(name, value string) func(*websocket.DialOptions) {
		return func(o *websocket.DialOptions) {
			o.Subprotocols = []string{subprotocol + "secret-a"}
			o.HTTPHeader.Set(name, value)
		}
	}
	tests := []struct {
		name   string
		change func(*websocket.DialOptions)
		want   string // how the answer to a refused one begins
		chosen string // the subprotocol
	}{
		{"no token", offer(), "Unauthorized ", ""},
		{"wrong token", offer(subprotocol + "secret-b"), "Unauthorized ", ""},
		{"token without its prefix", offer("secret-a"), "Unauthorized ", ""},
		{"token as subprotocol", offer(subprotocol + "secret-a"), "", subprotocol + "secret-a"},
		{"token among subprotocols", offer("other", "grapnel", subprotocol+"secret-a"), "", "grapnel"},
		{"token in the header", func(o *websocket.DialOptions) { o.HTTPHeader.Set("Authorization", "Bearer secret-a") }, "", ""},
		{"wrong token in the header", header("Authorization", "Bearer secret-b"), "Unauthorized ", ""},
		{"own origin", header("Origin", "http://"+h.addr), "", subprotocol + "secret-a"},
		{"configured origin", header("Origin", "https://page.example"), "", subprotocol + "secret-a"},
		{"another origin", header("Origin", "http://evil.example"), "Forbidden ", ""},
		{"another host", func(o *websocket.DialOptions) { o.Host = "evil.example" }, "Forbidden ", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			ws, answer, err := h.tryDial(t, tt.change)
			if (err != nil) != (tt.want != "") || !strings.HasPrefix(answer, tt.want) {
				t.Fatalf("got %q and %v, want %q", answer, err, tt.want)
			}
			if err != nil {
				if !strings.Contains(answer, `"data":{"code":"unauthorized"}`) {
					t.Errorf("no error object: %s", answer)
				}
				return
			}
			defer ws.CloseNow() //nolint:errcheck // the test is over
			if got := ws.Subprotocol(); got != tt.chosen {
				t.Errorf("got the subprotocol %q, want %q", got, tt.chosen)
			}
			say(t, ws, `{"jsonrpc":"2.0","id":1,"method":"test/who"}`)
			if diff := cmp.Diff(summaries(t, hear(t, ws)), []string{`1 "ann"`}); diff != "" {
				t.Errorf("answer (-got +want):\n%s", diff)
			}
		})
	}
}

func TestWebSocketBadFrames(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name string
		send func(t *testing.T, ws *websocket.Conn)
		want websocket.CloseError
	}{
		{"too long", func(t *testing.T, ws *websocket.Conn) {
			t.Helper()
			// The server may close before it has read everything.
			_ = ws.Write(t.Context(), websocket.MessageText, []byte(strings.Repeat(" ", 2<<20+1)))
		}, websocket.CloseError{Code: websocket.StatusMessageTooBig, Reason: "a message may have at most 2097152 bytes"}},
		{"too long in fragments", func(t *testing.T, ws *websocket.Conn) {
			t.Helper()
			w, err := ws.Writer(t.Context(), websocket.MessageText)
			for i := 0; i < 100 && err == nil; i++ {
				_, err = w.Write(make([]byte, 1<<16))
			}
		}, websocket.CloseError{Code: websocket.StatusMessageTooBig, Reason: "a message may have at most 2097152 bytes"}},
		{"binary", func(t *testing.T, ws *websocket.Conn) {
			t.Helper()
			if err := ws.Write(t.Context(), websocket.MessageBinary, []byte("{}")); err != nil {
				t.Error(err)
			}
		}, websocket.CloseError{Code: websocket.StatusUnsupportedData, Reason: "messages are JSON in text frames"}},
	}
	h := start(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			ws := h.dial(t)
			sent := make(chan struct{})
			go func() {
				defer close(sent)
				tt.send(t, ws)
			}()
			if diff := cmp.Diff(hearClose(t, ws), tt.want); diff != "" {
				t.Errorf("close (-got +want):\n%s", diff)
			}
			await(t, sent, "the sender")
		})
	}
	status, _ := h.post(t, `{"jsonrpc":"2.0","id":1,"method":"test/who"}`)
	if status != 200 {
		t.Errorf("the server does not live on: %d", status)
	}
}

// A frame that is announced and does not arrive, or a peer that gives no sign of
// life, ends the connection.
func TestWebSocketHalfOpen(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name   string
		limits Limits
		send   []byte
	}{
		{"silent", Limits{Ping: 20 * time.Millisecond, Write: time.Second}, nil},
		{"half a header", Limits{Ping: 20 * time.Millisecond, Write: time.Second}, []byte{0x81}},
		{"half a message", Limits{Read: 50 * time.Millisecond}, frame(1000, "{")},
		{"a header that announces 2^62 bytes", Limits{Read: 50 * time.Millisecond}, frame(1<<62, "{")},
		{"an unmasked frame", Limits{}, []byte{0x81, 2, '{', '}'}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			h := start(t, func(o *Options) { o.Limits = tt.limits })
			conn := h.rawSocket(t, 0)
			h.awaitOpen(t, 1)
			must(conn.Write(tt.send))(t)
			h.awaitOpen(t, 0)
		})
	}
}

// A peer that answers pings stays, however little it says.
func TestWebSocketPing(t *testing.T) {
	t.Parallel()

	h := start(t, func(o *Options) { o.Limits.Ping = 5 * time.Millisecond })
	pings := make(chan struct{}, 1000)
	ws := h.dial(t, func(o *websocket.DialOptions) {
		o.OnPingReceived = func(context.Context, []byte) bool {
			pings <- struct{}{}
			return true
		}
	})
	heard := make(chan string, 1)
	go func() {
		_, text, err := ws.Read(t.Context())
		heard <- string(text) + errText(err)
	}()
	for range 20 {
		await(t, pings, "a ping")
	}
	say(t, ws, `{"jsonrpc":"2.0","id":1,"method":"test/who"}`)
	if got := await(t, heard, "the answer"); got != `{"jsonrpc":"2.0","id":1,"result":"open"}` {
		t.Errorf("got %s", got)
	}
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// What a client has asked for in one batch and does not wait for, is not begun.
func TestCancelInBatch(t *testing.T) {
	t.Parallel()

	h := start(t)
	ws := h.dial(t)
	say(t, ws, `[{"jsonrpc":"2.0","id":1,"method":"test/hang"},{"jsonrpc":"2.0","id":2,"method":"test/who"}]`)
	await(t, h.hooks.began, "the call")
	_ = ws.CloseNow()
	var got []called
	for range 2 {
		got = append(got, await(t, h.calls, "the calls"))
	}
	want := []called{{"test/hang", CodeUnavailable}, {"test/who", CodeUnavailable}}
	if diff := cmp.Diff(got, want, cmp.AllowUnexported(called{})); diff != "" {
		t.Errorf("calls (-got +want):\n%s", diff)
	}
}

// TestMemory: what messages take is bounded over all clients, and given back.
func TestMemory(t *testing.T) {
	t.Parallel()

	h := start(t, func(o *Options) { o.Limits.Memory, o.Limits.Admission = 1<<20, 20*time.Millisecond })
	big := `{"jsonrpc":"2.0","id":1,"method":"test/who"}` + strings.Repeat(" ", 1<<20)
	small := big[:len(big)-1<<19]
	for range 3 {
		if _, body := h.post(t, big); summaries(t, body)[0] != "null -32004 overloaded" {
			t.Errorf("the big POST got %s", body)
		}
		if _, body := h.post(t, small); summaries(t, body)[0] != `1 "open"` {
			t.Errorf("the small POST got %s", body)
		}
		ws := h.dial(t)
		say(t, ws, small)
		if got := summaries(t, hear(t, ws)); got[0] != `1 "open"` {
			t.Errorf("the small message got %v", got)
		}
		say(t, ws, big)
		want := websocket.CloseError{Code: websocket.StatusTryAgainLater, Reason: "the gateway is overloaded: read the answers that are due, then connect again"}
		if diff := cmp.Diff(hearClose(t, ws), want); diff != "" {
			t.Errorf("the big message (-got +want):\n%s", diff)
		}
	}
	// A message in flight holds what it takes decoded.
	ws := h.dial(t)
	say(t, ws, `{"jsonrpc":"2.0","id":1,"method":"test/wait"}`+strings.Repeat(" ", 3<<18))
	await(t, h.hooks.began, "the call")
	if _, body := h.post(t, small); summaries(t, body)[0] != "null -32004 overloaded" {
		t.Errorf("the POST beside a call got %s", body)
	}
	close(h.hooks.release)
	hear(t, ws)
	h.stop()
	if err := h.ended(t); err != nil {
		t.Error(err)
	}
	h.checkReleased(t)
}

// Not more messages of a connection are worked on than the limit says; others wait
// for them, and none is lost.
func TestWebSocketInFlight(t *testing.T) {
	t.Parallel()

	h := start(t, func(o *Options) {
		o.Limits.InFlight = 3
		o.Limits.Ping = time.Millisecond // while the reader waits, no sign of life is asked for
	})
	ws := h.dial(t)
	for i := range 8 {
		say(t, ws, `{"jsonrpc":"2.0","id":`+itoa(i)+`,"method":"test/wait"}`)
	}
	for range 3 {
		await(t, h.hooks.began, "three calls")
	}
	select {
	case <-h.hooks.began:
		t.Error("a fourth call has begun")
	case <-time.After(20 * time.Millisecond):
	}
	close(h.hooks.release)
	got := map[string]bool{}
	for range 8 {
		got[summaries(t, hear(t, ws))[0]] = true
	}
	if len(got) != 8 {
		t.Errorf("got %d different answers: %v", len(got), got)
	}
}

// A ping whose pong is late holds up no answer.
func TestWebSocketLatePong(t *testing.T) {
	t.Parallel()

	h := start(t, func(o *Options) {
		o.Limits.InFlight = 3
		o.Limits.Ping, o.Limits.Write = time.Millisecond, 10*patience
	})
	pinged := make(chan struct{}, 1)
	ws := h.dial(t, func(o *websocket.DialOptions) {
		o.OnPingReceived = func(context.Context, []byte) bool {
			pinged <- struct{}{}
			return false
		}
	})
	answers := make(chan string, 8)
	go func() {
		for range cap(answers) {
			answers <- hear(t, ws)
		}
	}()
	await(t, pinged, "a ping")
	for i := range cap(answers) {
		say(t, ws, `{"jsonrpc":"2.0","id":`+itoa(i)+`,"method":"test/wait"}`)
	}
	close(h.hooks.release)
	for range cap(answers) {
		await(t, answers, "an answer")
	}
}
