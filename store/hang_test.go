package store_test

import (
	"context"
	"errors"
	"net"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/store"
)

// proxy stands between a store and its server, and can stop forwarding without
// closing anything, as a network does that loses its packets.
type proxy struct {
	listener net.Listener
	target   string
	group    sync.WaitGroup
	// gate is read-locked for each piece that is forwarded.
	gate sync.RWMutex
}

// newProxy starts a proxy to a Unix socket. It ends with the test.
func newProxy(t *testing.T, target string) *proxy {
	t.Helper()
	var config net.ListenConfig
	l, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: l, target: target}
	p.group.Go(p.serve)
	t.Cleanup(func() {
		_ = l.Close()
		p.group.Wait() // the stores have closed their ends, and the gate is open
	})
	return p
}

func (p *proxy) serve() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := (&net.Dialer{}).DialContext(context.Background(), "unix", p.target)
		if err != nil {
			_ = client.Close()
			continue
		}
		p.group.Go(func() { p.forward(client, server) })
		p.group.Go(func() { p.forward(server, client) })
	}
}

func (p *proxy) forward(from, to net.Conn) {
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		p.gate.RLock()
		if n > 0 {
			_, err = to.Write(buffer[:n])
		}
		p.gate.RUnlock()
		if err != nil {
			_, _ = from.Close(), to.Close()
			return
		}
	}
}

// TestPostgresHangs has a connection over which nothing comes any more. What
// waits for it ends soon after its context, also where the connection was idle
// and where none was open, and it works again when packets do.
func TestPostgresHangs(t *testing.T) {
	t.Parallel()

	p := newProxy(t, shared.Postgres(t).Socket())
	dsn := throughProxy(t, shared.NewDSN(t), p)
	s := open(t, dsn, store.Options{MaxConns: 2})
	fillThread(t, s, "w", "t", 0, 2)

	p.gate.Lock()
	cause := errors.New("the turn is over")
	for range 3 { // with the open connections, and then with new ones
		ctx, cancel := contextWithCause(t, 150*time.Millisecond, cause)
		if err := s.Append(ctx, sample("w", "t", 2), nil); !errors.Is(err, cause) {
			t.Errorf("Append over a dead connection: %v", err)
		}
		if _, err := s.Last(ctx, "w", "t"); !errors.Is(err, cause) {
			t.Errorf("Last over a dead connection: %v", err)
		}
		cancel()
	}
	wantError(t, openQuickly(t, dsn), store.CodeUnreachable, "cannot be reached")
	p.gate.Unlock()

	// What was given up was not kept, or kept whole; the id says which.
	err := s.Append(t.Context(), sample("w", "t", 3), nil)
	if err != nil {
		t.Fatal(err)
	}
	n, err := s.Count(t.Context(), store.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	wantGood(t, s, n)
}

// openQuickly opens a store that waits for nobody, and returns the error.
func openQuickly(t *testing.T, dsn string) error {
	t.Helper()
	s, err := store.Open(t.Context(), dsn, store.Options{LockTimeout: 100 * time.Millisecond})
	if err == nil {
		_ = s.Close()
	}
	return err
}

// throughProxy is a DSN of the same database through the proxy.
func throughProxy(t *testing.T, dsn string, p *proxy) string {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	q.Del("host")
	u.Host, u.RawQuery = p.listener.Addr().String(), q.Encode()
	return u.String()
}
