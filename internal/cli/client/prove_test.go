package client_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/grapnelhq/grapnel/internal/cli/client"
	"github.com/grapnelhq/grapnel/internal/rpc"
)

// TestImpostorGetsNothing: over a connection that is not proven not a byte is sent.
func TestImpostorGetsNothing(t *testing.T) {
	t.Parallel()

	var mu sync.Mutex
	var got []byte
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			running.Go(func() {
				buf := make([]byte, 1024)
				n, _ := conn.Read(buf)
				mu.Lock()
				defer mu.Unlock()
				got = append(got, buf[:n]...)
				_ = conn.Close()
			})
		}
	})
	refused := errors.New("it is another program")
	o := client.Options{Token: "secret", Prove: func(context.Context, net.Conn) error { return refused }}
	for _, scheme := range []string{"http://", "ws://"} {
		c, err := client.Dial(t.Context(), scheme+l.Addr().String(), o)
		if err == nil {
			err = c.Call(t.Context(), "status", nil, nil)
			_ = c.Close()
		}
		if !errors.Is(err, refused) {
			t.Errorf("%s: %v", scheme, err)
		}
	}
	_ = l.Close()
	running.Wait()
	if len(got) > 0 {
		t.Errorf("it got %q", got)
	}
	for _, scheme := range []string{"https://", "wss://"} {
		if _, err := client.Dial(t.Context(), scheme+"127.0.0.1:1", o); err == nil || !strings.Contains(err.Error(), "certificate") {
			t.Errorf("%s: %v", scheme, err)
		}
	}
}

// TestRedirectGetsNoToken: a token is not sent where a redirect leads.
func TestRedirectGetsNoToken(t *testing.T) {
	t.Parallel()

	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("%s %s with the token %q", r.Method, r.URL, r.Header.Get("Authorization"))
	}))
	defer other.Close()
	first := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	defer first.Close()
	for _, target := range []string{first.URL, strings.Replace(first.URL, "http", "ws", 1)} {
		c, err := client.Dial(t.Context(), target, client.Options{Token: "secret"})
		if err == nil {
			err = c.Call(t.Context(), "status", nil, nil)
			_ = c.Close()
		}
		if err == nil || client.HasCode(err, rpc.CodeUnauthorized) {
			t.Errorf("%s: %v", target, err)
		}
	}
}
