package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/internal/cli/client"
	"github.com/grapnelhq/grapnel/internal/rpc"
)

// everyWay runs a test over all three ways to a server.
func everyWay(t *testing.T, test func(t *testing.T, s *served, c *client.Client)) {
	t.Helper()
	ways := map[string]func(*served) string{
		"http": func(s *served) string { return s.http },
		"ws":   func(s *served) string { return s.ws },
		"unix": func(s *served) string { return s.unix },
	}
	for name, target := range ways {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			s := serve(t)
			test(t, s, dial(t, target(s), client.Options{}))
		})
	}
}

func TestCall(t *testing.T) {
	t.Parallel()

	deep := json.RawMessage(`{"text":` + strings.Repeat("[", 40) + strings.Repeat("]", 40) + `}`)
	tests := []struct {
		name, method string
		params       any
		want         echo
		wantErr      *client.Error
	}{
		{name: "result", method: "test/echo", params: echo{Text: "<é & \u2028>"}, want: echo{Text: "<é & \u2028>"}},
		{name: "no params", method: "test/echo"},
		{name: "data", method: "test/conflict", wantErr: &client.Error{
			Number: -32001, Code: "version_conflict", Message: "another version", Data: json.RawMessage(`{"actual_version":7,"code":"version_conflict"}`),
		}},
		{name: "unknown method", method: "test/eco", wantErr: &client.Error{
			Number: -32601, Code: "unknown_method", Message: `there is no method "test/eco" (did you mean "test/echo"?)`, Data: json.RawMessage(`{"code":"unknown_method"}`),
		}},
		{name: "params that are no object", method: "test/echo", params: "x", wantErr: &client.Error{
			Number: -32600, Code: "invalid_request", Message: "params: they must be an object", Data: json.RawMessage(`{"code":"invalid_request"}`),
		}},
		{name: "an error without an id", method: "test/echo", params: deep, wantErr: &client.Error{
			Number: -32600, Code: "invalid_request", Message: "the message is nested more than 32 deep", Data: json.RawMessage(`{"code":"invalid_request"}`),
		}},
		{name: "invalid UTF-8", method: "test/echo", params: map[string]any{"x": []any{"a", echo{Text: "\xff"}}}, wantErr: &client.Error{
			Number: -32602, Code: "invalid_params", Message: "params: a string is not valid UTF-8", Data: json.RawMessage(`{"code":"invalid_params"}`),
		}},
	}
	everyWay(t, func(t *testing.T, _ *served, c *client.Client) {
		t.Helper()
		for _, tt := range tests { // one after the other: none may harm the next
			var got echo
			err := c.Call(t.Context(), tt.method, tt.params, &got)
			if tt.wantErr == nil && err != nil {
				t.Errorf("%s: %v", tt.name, err)
			}
			if tt.wantErr != nil {
				if diff := cmp.Diff(refusal(t, err), tt.wantErr); diff != "" {
					t.Errorf("%s: error (-got +want):\n%s", tt.name, diff)
				}
			}
			if diff := cmp.Diff(got, tt.want); diff != "" {
				t.Errorf("%s: result (-got +want):\n%s", tt.name, diff)
			}
		}
		if err := c.Call(t.Context(), "test/echo", echo{Text: "x"}, nil); err != nil {
			t.Errorf("without a result: %v", err)
		}
		var wrong int
		if err := c.Call(t.Context(), "test/echo", echo{}, &wrong); err == nil || errors.Is(err, client.ErrLost) {
			t.Errorf("a result of another type: %v", err)
		}
		if err := c.Call(t.Context(), "test/echo", func() {}, nil); err == nil {
			t.Error("params that do not encode were sent")
		}
	})
}

func TestCallContext(t *testing.T) {
	t.Parallel()

	everyWay(t, func(t *testing.T, s *served, c *client.Client) {
		t.Helper()
		ctx, cancel := context.WithCancel(t.Context())
		failed := make(chan error, 1)
		go func() { failed <- c.Call(ctx, "test/hang", nil, nil) }()
		await(t, s.began, "the call")
		cancel()
		if err := await(t, failed, "the end of the call"); !errors.Is(err, context.Canceled) || errors.Is(err, client.ErrLost) {
			t.Errorf("got %v", err)
		}
		if err := c.Call(ctx, "test/echo", nil, nil); !errors.Is(err, context.Canceled) {
			t.Errorf("with a context that has ended: %v", err)
		}
		close(s.release)
		await(t, s.ended, "the end of the method") // its late answer harms nobody
		if err := c.Call(t.Context(), "test/echo", nil, nil); err != nil {
			t.Errorf("the next call: %v", err)
		}
	})
}

func TestClose(t *testing.T) {
	t.Parallel()

	everyWay(t, func(t *testing.T, _ *served, c *client.Client) {
		t.Helper()
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if err := c.Close(); err != nil {
			t.Errorf("again: %v", err)
		}
		await(t, c.Done(), "the client's end")
		if err := c.Err(); err != nil {
			t.Errorf("Err says %v", err)
		}
		if err := c.Call(t.Context(), "test/echo", nil, nil); !errors.Is(err, client.ErrLost) {
			t.Errorf("a call behind the end: %v", err)
		}
	})
}

// A gateway that closes the connection says why.
func TestLost(t *testing.T) {
	t.Parallel()

	s := serve(t, token("ann", "secret"))
	c := dial(t, s.ws, client.Options{Token: "secret"})
	failed := make(chan error, 1)
	go func() { failed <- c.Call(t.Context(), "test/hang", nil, nil) }()
	await(t, s.began, "the call")
	if err := s.SetTokens([]rpc.Token{}); err != nil {
		t.Fatal(err)
	}
	await(t, c.Done(), "the connection's end")
	for what, err := range map[string]error{"the call": await(t, failed, "the end of the call"), "Err": c.Err(), "the next call": c.Call(t.Context(), "test/echo", nil, nil)} {
		if !errors.Is(err, client.ErrLost) || !strings.Contains(err.Error(), "the token is no longer valid") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := c.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
}

func TestTokens(t *testing.T) {
	t.Parallel()

	s := serve(t, token("ann", "secret"))
	for _, target := range []string{s.http, s.ws, s.unix} {
		for _, secret := range []string{"", "wrong", "secret"} {
			c, err := client.Dial(t.Context(), target, client.Options{Token: secret})
			if err == nil {
				err = c.Call(t.Context(), "test/echo", nil, nil)
				_ = c.Close()
			}
			if secret == "secret" {
				if err != nil {
					t.Errorf("%s with the token: %v", target, err)
				}
			} else if !client.HasCode(err, "unauthorized") {
				t.Errorf("%s with the token %q: %v", target, secret, err)
			}
		}
	}
}

func TestDialRefuses(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name, target string
		o            client.Options
		want         string
	}{
		{"nothing", "", client.Options{}, "it has no host"},
		{"only a host", "localhost:80", client.Options{}, "it has no host"},
		{"another scheme", "ftp://localhost", client.Options{}, "a target is http://"},
		{"no URL", "http://[::1", client.Options{}, "missing ']'"},
		{"notifications over HTTP", "http://localhost", client.Options{OnNotification: func(string, json.RawMessage) {}}, "no notifications over HTTP"},
		{"nobody there", "unix:/nowhere/at/all", client.Options{}, "no such file"},
	}
	for _, tt := range tests {
		_, err := client.Dial(t.Context(), tt.target, tt.o)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want something about %q", tt.name, err, tt.want)
		}
	}
}

// What answers and is no gateway, is no answer.
func TestNoGateway(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name   string
		answer string
		status int
	}{
		{"a page", "<html>", 200},
		{"a page that is not there", "not found", 404},
		{"nothing", "", 204},
		{"other JSON", `{"hello":1}`, 200},
		{"the answer to another call", `{"jsonrpc":"2.0","id":99,"result":{}}`, 200},
		{"a result without an id", `{"jsonrpc":"2.0","id":null,"result":{}}`, 200},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(tt.status)
				_, _ = fmt.Fprint(w, tt.answer)
			}))
			defer srv.Close()
			c := dial(t, srv.URL, client.Options{})
			if err := c.Call(t.Context(), "test/echo", nil, nil); !errors.Is(err, client.ErrLost) {
				t.Errorf("by POST: %v", err)
			}
			_ = c.Close()
			if _, err := client.Dial(t.Context(), strings.Replace(srv.URL, "http", "ws", 1), client.Options{}); !errors.Is(err, client.ErrLost) {
				t.Errorf("by WebSocket: %v", err)
			}
		})
	}
}

func TestOnNotification(t *testing.T) {
	t.Parallel()

	s := serve(t)
	for _, target := range []string{s.ws, s.unix} {
		var c *client.Client
		got := make(chan string, 1000)
		ready := make(chan struct{})
		c = dial(t, target, client.Options{OnNotification: func(method string, params json.RawMessage) {
			<-ready
			// It may call.
			if err := c.Call(context.Background(), "test/echo", nil, nil); err != nil {
				t.Error(err)
			}
			got <- method + string(params)
		}})
		close(ready)
		if err := c.Call(t.Context(), "test/watch", nil, nil); err != nil {
			t.Fatal(err)
		}
		conn := await(t, s.conns, "the connection")
		for i := range 200 {
			conn.Notify("", "test/said", i)
		}
		for i := range 200 {
			if note, want := await(t, got, "the notification"), "test/said"+strconv.Itoa(i); note != want {
				t.Fatalf("got %s, want %s", note, want)
			}
		}
	}
}

// Who does not keep up is told so, instead of holding everything up.
func TestOnNotificationTooSlow(t *testing.T) {
	t.Parallel()

	s := serve(t)
	block := make(chan struct{})
	c := dial(t, s.ws, client.Options{OnNotification: func(string, json.RawMessage) { <-block }})
	if err := c.Call(t.Context(), "test/watch", nil, nil); err != nil {
		t.Fatal(err)
	}
	conn := await(t, s.conns, "the connection")
	for i := range 1000 {
		conn.Notify("", "test/said", i)
		if i%100 == 99 { // let the server write what it has
			_ = c.Call(t.Context(), "test/echo", nil, nil)
		}
	}
	await(t, c.Done(), "the connection's end")
	if err := c.Err(); !errors.Is(err, client.ErrLost) || !strings.Contains(err.Error(), "too slow") {
		t.Errorf("got %v", err)
	}
	close(block)
}
