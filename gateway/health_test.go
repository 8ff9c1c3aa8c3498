package gateway

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/store"
)

// TestReadyFlood: however many ask whether the gateway is ready, the database is asked
// once a second; and one who goes away does not spoil the answer of the others.
func TestReadyFlood(t *testing.T) {
	t.Parallel()

	var now, probes atomic.Int64
	entered, release := make(chan struct{}), make(chan struct{})
	s := serve(t, Options{
		Now: func() time.Time { return time.Unix(now.Load(), 0) },
		Probe: func(ctx context.Context) error {
			if probes.Add(1) == 1 {
				close(entered)
				<-release
			}
			return ctx.Err()
		},
	})
	ctx, leave := context.WithCancel(t.Context())
	first, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.addr+"/readyz", nil)
	if err != nil {
		t.Fatal(err)
	}
	client := s.client(t, false)
	var asking sync.WaitGroup
	asking.Go(func() {
		if resp, err := client.Do(first); err == nil {
			_ = resp.Body.Close()
			t.Error("the first had its answer before there was one")
		}
	})
	<-entered
	leave()
	for range 100 {
		asking.Go(func() {
			if got, body := s.get(t, "/readyz", ""); got != http.StatusOK {
				t.Errorf("%d %s", got, body)
			}
		})
	}
	close(release)
	asking.Wait()
	if n := probes.Load(); n != 1 {
		t.Errorf("the database was asked %d times", n)
	}
	now.Add(1)
	if _, body := s.get(t, "/metrics", ""); !strings.Contains(body, "\ngrapnel_gateway_ready 1\n") {
		t.Error("the metric does not say that it is ready")
	}
	if n := probes.Load(); n != 2 {
		t.Errorf("a second later it was asked %d times in all", n)
	}
}

// TestReadySaysNoPlace: who asks learns cause and remedy, and no path.
func TestReadySaysNoPlace(t *testing.T) {
	t.Parallel()

	full := &store.Error{Code: store.CodeFull, Message: "/repo/grapnel.db is full", Remedy: "free space", Err: errors.New("/repo")}
	s := serve(t, Options{Probe: func(context.Context) error { return full }})
	const want = `{"ready":false,"database":"full","engine":"none","remedy":"free space"}`
	if got, body := s.get(t, "/readyz", ""); got != http.StatusServiceUnavailable || strings.TrimSpace(body) != want {
		t.Errorf("%d %s", got, body)
	}
	if _, body := s.get(t, "/metrics", ""); !strings.Contains(body, "\ngrapnel_gateway_ready 0\n") {
		t.Error("the metric says that it is ready")
	}
}

// TestIdentity: a gateway proves itself for the address at which it was asked, and
// signs nothing that is not a nonce.
func TestIdentity(t *testing.T) {
	t.Parallel()

	const nonce = "0123456789ABCDEF"
	s := serve(t, Options{Secret: []byte("secret")})
	if got, body := s.get(t, "/identity?nonce="+nonce, ""); got != http.StatusOK || body != Proof([]byte("secret"), nonce, s.addr) {
		t.Errorf("%d %s", got, body)
	}
	for _, bad := range []string{"", "short", strings.Repeat("x", 65), nonce + "%00127.0.0.1:1", nonce + "-"} {
		if got, body := s.get(t, "/identity?nonce="+bad, ""); got != http.StatusBadRequest {
			t.Errorf("%q: %d %s", bad, got, body)
		}
	}
	proofs := map[string]bool{}
	_, port, _ := net.SplitHostPort(s.addr)
	for _, proof := range []string{
		Proof([]byte("secret"), nonce, s.addr), Proof([]byte("other"), nonce, s.addr), Proof([]byte("secret"), nonce+"1", s.addr),
		Proof([]byte("secret"), nonce, "127.0.0.2:"+port), Proof([]byte("secret"), nonce+s.addr, ""),
	} {
		proofs[proof] = true
	}
	if len(proofs) != 5 {
		t.Errorf("%d different proofs", len(proofs))
	}
	if got, _ := serve(t, Options{}).get(t, "/identity?nonce="+nonce, ""); got != http.StatusNotFound {
		t.Errorf("without a secret: %d", got)
	}
}
