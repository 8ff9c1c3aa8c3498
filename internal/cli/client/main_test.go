package client_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/grapnelhq/grapnel/internal/cli/client"
	"github.com/grapnelhq/grapnel/internal/rpc"
)

// TestMain finds goroutines that are left; those of net/http linger for half a second.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("net/http.(*conn).closeWriteAndWait"))
}

// patience is how long a test waits for something that must happen.
const patience = 20 * time.Second

// served is a gateway's transport with methods for tests.
type served struct {
	*rpc.Server

	http, ws, unix string // targets
	conns          chan *rpc.Conn
	began, ended   chan struct{} // of calls of hang
	release        chan struct{} // lets calls of hang end
}

type echo struct {
	Text string `json:"text,omitempty"`
	N    int    `json:"n,omitempty"`
}

type none struct{}

// serve starts a server, which the test's end stops.
func serve(t testing.TB, tokens ...rpc.Token) *served {
	t.Helper()
	s := &served{
		conns: make(chan *rpc.Conn, 10), began: make(chan struct{}, 100), ended: make(chan struct{}, 100), release: make(chan struct{}),
	}
	methods := []rpc.Method{
		rpc.Typed("test/echo", rpc.NoRight, "", func(_ context.Context, _ *rpc.Caller, p echo) (echo, error) { return p, nil }),
		rpc.Typed("test/conflict", rpc.NoRight, "", func(context.Context, *rpc.Caller, none) (none, error) {
			return none{}, &rpc.Error{Code: rpc.CodeConflict, Message: "another version", Data: map[string]any{"actual_version": 7}}
		}),
		rpc.Typed("test/hang", rpc.NoRight, "", func(ctx context.Context, _ *rpc.Caller, _ none) (none, error) {
			s.began <- struct{}{}
			select {
			case <-ctx.Done():
			case <-s.release:
			}
			s.ended <- struct{}{}
			return none{}, ctx.Err()
		}),
		rpc.Typed("test/watch", rpc.NoRight, "", func(_ context.Context, c *rpc.Caller, _ none) (none, error) {
			s.conns <- c.Conn
			return none{}, nil
		}),
	}
	var err error
	if s.Server, err = rpc.New(rpc.Options{Methods: methods, Tokens: tokens}); err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "client") //nolint:usetesting // the path of a unix socket must be short
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "s")
	var lc net.ListenConfig
	tcp, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	sock, err := lc.Listen(t.Context(), "unix", path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, s.Handler(), tcp, sock) }()
	t.Cleanup(func() {
		cancel()
		if err := await(t, done, "the end of the server"); err != nil {
			t.Error(err)
		}
		_ = os.RemoveAll(dir)
	})
	addr := tcp.Addr().String()
	s.http, s.ws, s.unix = "http://"+addr, "ws://"+addr, "unix:"+path
	return s
}

// dial connects; the test's end closes.
func dial(t testing.TB, target string, o client.Options) *client.Client {
	t.Helper()
	c, err := client.Dial(t.Context(), target, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// await receives from a channel, or fails the test.
func await[T any](t testing.TB, from <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(patience):
		t.Fatalf("waited in vain for %s", what)
		panic("unreachable")
	}
}

// token is one that a secret lets in.
func token(name, secret string) rpc.Token {
	sum := sha256.Sum256([]byte(secret))
	return rpc.Token{Name: name, SHA256: hex.EncodeToString(sum[:]), Rights: rpc.Rights(), Workspaces: []string{rpc.EveryWorkspace}}
}

// refusal is the gateway's error that an error is, or wraps.
func refusal(t testing.TB, err error) *client.Error {
	t.Helper()
	e, ok := errors.AsType[*client.Error](err)
	if !ok {
		t.Fatalf("got %v, want an error of the gateway", err)
	}
	return e
}
