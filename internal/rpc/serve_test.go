package rpc

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/google/go-cmp/cmp"
)

// What is in flight ends; what is new is refused; connections are told.
func TestDrain(t *testing.T) {
	t.Parallel()

	h := start(t)
	idle, busy := h.dial(t), h.dial(t)
	say(t, busy, `{"jsonrpc":"2.0","id":1,"method":"test/wait"}`)
	await(t, h.hooks.began, "the call")
	posted := make(chan string, 1)
	go func() {
		_, body := h.post(t, `{"jsonrpc":"2.0","id":2,"method":"test/wait"}`)
		posted <- body
	}()
	await(t, h.hooks.began, "the POST")

	h.stop()
	gone := websocket.CloseError{Code: websocket.StatusGoingAway, Reason: "the gateway is stopping"}
	if diff := cmp.Diff(hearClose(t, idle), gone); diff != "" {
		t.Errorf("the idle connection (-got +want):\n%s", diff)
	}
	say(t, busy, `{"jsonrpc":"2.0","id":3,"method":"test/who"}`)
	if got := summaries(t, hear(t, busy)); got[0] != "3 -32004 unavailable" {
		t.Errorf("a new call got %v", got)
	}
	if _, _, err := h.tryDial(t); err == nil {
		t.Error("a new connection was accepted")
	}
	close(h.hooks.release)
	if got := hear(t, busy); got != `{"jsonrpc":"2.0","id":1,"result":"waited"}` {
		t.Errorf("the call in flight got %s", got)
	}
	if diff := cmp.Diff(hearClose(t, busy), gone); diff != "" {
		t.Errorf("the busy connection (-got +want):\n%s", diff)
	}
	if got := await(t, posted, "the POST"); got != `{"jsonrpc":"2.0","id":2,"result":"waited"}` {
		t.Errorf("the POST in flight got %s", got)
	}
	if err := h.ended(t); err != nil {
		t.Errorf("Serve: %v", err)
	}
}

// Calls that do not end in time are cut short. A method that ignores its context is the one thing that Serve gives up on.
func TestDrainCuts(t *testing.T) {
	t.Parallel()

	h := start(t, func(o *Options) { o.Limits.Drain = 50 * time.Millisecond })
	for _, method := range []string{"hang", "wait"} {
		say(t, h.dial(t), `{"jsonrpc":"2.0","id":1,"method":"test/`+method+`"}`)
		await(t, h.hooks.began, "the call")
	}
	h.stop()
	if err := await(t, h.hooks.ended, "the end of the call's context"); !errors.Is(err, ErrClosed) {
		t.Errorf("the cause is %v", err)
	}
	if err := h.ended(t); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Serve: %v", err)
	}
	close(h.hooks.release)
}

func TestServeListenerFails(t *testing.T) {
	t.Parallel()

	srv := must(New(Options{}))(t)
	good, bad := listen(t, "tcp", "127.0.0.1:0"), listen(t, "tcp", "127.0.0.1:0")
	_ = bad.Close()
	if err := srv.Serve(t.Context(), srv.Handler(), good, bad); !errors.Is(err, net.ErrClosed) {
		t.Errorf("got %v", err)
	}
	if _, err := good.Accept(); err == nil {
		t.Error("the other listener is still open")
	}
}

// TestSlowRequestsEnd: headers and bodies have to arrive in the time of the limits, at every handler.
func TestSlowRequestsEnd(t *testing.T) {
	t.Parallel()

	srv := must(New(Options{Limits: Limits{Header: time.Hour, Read: 2 * time.Hour}}))(t)
	l, built, done := listen(t, "tcp", "127.0.0.1:0"), make(chan *http.Server, 1), make(chan error, 1)
	ctx, stop := context.WithCancel(t.Context())
	go func() {
		done <- srv.Serve(ctx, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			hs, _ := r.Context().Value(http.ServerContextKey).(*http.Server)
			built <- hs
		}), l)
	}()
	_, _ = io.WriteString(dialPlain(t, "tcp", l.Addr().String()), "GET / HTTP/1.0\r\n\r\n")
	if hs := await(t, built, "the request"); hs.ReadHeaderTimeout != time.Hour || hs.ReadTimeout != 2*time.Hour {
		t.Errorf("headers have %s, messages %s", hs.ReadHeaderTimeout, hs.ReadTimeout)
	}
	stop()
	if err := await(t, done, "the end of Serve"); err != nil {
		t.Error(err)
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()

	call := func(context.Context, *Caller, none) (none, error) { return none{}, nil }
	good := Typed("m", ReadRight, "", call)
	tests := []struct {
		name string
		o    Options
		want string
	}{
		{"no name", Options{Methods: []Method{Typed("", ReadRight, "", call)}}, "no name"},
		{"no function", Options{Methods: []Method{{Name: "m"}}}, "no function"},
		{"twice", Options{Methods: []Method{good, good}}, `method "m": duplicate`},
		{"no schema", Options{Methods: []Method{{Name: "m", Call: good.Call}}}, "there is no schema"},
		{"unknown right", Options{Methods: []Method{Typed("m", "reed", "", call)}}, `unknown right "reed"`},
		{"notification twice", Options{Notifications: []Notification{TypedNotification[none]("n", ""), TypedNotification[none]("n", "")}}, `notification "n"`},
		{"notification without schema", Options{Notifications: []Notification{{Name: "n"}}}, "there is no schema"},
		{"host with a scheme", Options{Hosts: []string{"http://example.org"}}, `host "http://example.org"`},
		{"no host", Options{Hosts: []string{"good.example:1", ""}}, `host ""`},
		{"origin without a scheme", Options{Origins: []string{"example.org"}}, `origin "example.org"`},
		{"origin with a path", Options{Origins: []string{"https://good.example", "https://example.org/"}}, `origin "https://example.org/"`},
		{"bad token", Options{Tokens: []Token{{Name: "ann", SHA256: "x"}}}, `token "ann": sha256`},
	}
	for _, tt := range tests {
		_, err := New(tt.o)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want something about %q", tt.name, err, tt.want)
		}
	}
}
