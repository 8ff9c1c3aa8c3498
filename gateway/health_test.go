package gateway

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/internal/rpc"
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
	first := must(http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.addr+"/readyz", nil))(t)
	client := s.client(t)
	var leaving, asking sync.WaitGroup
	leaving.Go(func() {
		if resp, err := client.Do(first); err == nil {
			_ = resp.Body.Close()
			t.Error("the first had its answer before there was one")
		}
	})
	<-entered
	leave()
	leaving.Wait()
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

// TestReadySaysNoPlace: who asks learns cause and hint, and no path.
func TestReadySaysNoPlace(t *testing.T) {
	t.Parallel()

	full := &store.Error{Code: store.CodeFull, Message: "/repo/grapnel.db is full", Hint: "free space", Err: errors.New("/repo")}
	s := serve(t, Options{Probe: func(context.Context) error { return full }})
	const want = `{"ready":false,"database":"full","engine":"none","hint":"free space"}`
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

// TestRebindingPage: a page that makes its name point at the gateway, or a page of
// another origin, learns nothing from any path.
func TestRebindingPage(t *testing.T) {
	t.Parallel()

	s := serve(t, Options{Secret: []byte("secret")})
	paths := []string{"/healthz", "/readyz", "/identity?nonce=0123456789ABCDEF", "/metrics", "/rpc", "/ws", "/nothing"}
	for _, path := range paths {
		for name, from := range map[string]struct{ host, origin string }{
			"rebinding":           {"evil.example", ""},
			"rebinding, own name": {"evil.example", "http://evil.example"},
			"another origin":      {"localhost", "http://evil.example"},
		} {
			if got, body := s.getAs(t, path, from.host, from.origin); got != http.StatusForbidden {
				t.Errorf("%s of %s: %d %s", name, path, got, body)
			}
		}
	}
	for _, path := range paths[:4] {
		if got, body := s.getAs(t, path, s.addr, "http://"+s.addr); got != http.StatusOK {
			t.Errorf("own page of %s: %d %s", path, got, body)
		}
	}
}

// TestProbesFromElsewhere: an orchestrator asks by the address of the pod, or by a
// name that the gateway has never heard; a page may not, and calls need their Host.
func TestProbesFromElsewhere(t *testing.T) {
	t.Parallel()

	s := serve(t, Options{Secret: []byte("secret"), Tokens: []rpc.Token{}})
	elsewhere := &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 7500}
	at := func(addr net.Addr, path, host, origin string) int {
		r := must(http.NewRequestWithContext(context.WithValue(t.Context(), http.LocalAddrContextKey, addr), http.MethodGet, "http://localhost"+path, nil))(t)
		if r.Host = host; origin != "" {
			r.Header.Set("Origin", origin)
		}
		w := httptest.NewRecorder()
		s.g.Handler().ServeHTTP(w, r)
		return w.Code
	}
	for _, path := range []string{"/healthz", "/readyz"} {
		for _, host := range []string{"192.0.2.1:7500", "grapnel.svc", ""} {
			if got := at(elsewhere, path, host, ""); got != http.StatusOK {
				t.Errorf("%s as %q: %d", path, host, got)
			}
		}
		if got := at(elsewhere, path, "grapnel.svc", "http://evil.example"); got != http.StatusForbidden {
			t.Errorf("%s by a page: %d", path, got)
		}
		for _, loopback := range []string{"127.0.0.1", "127.8.9.1", "::1", "::ffff:127.0.0.1"} {
			if got := at(&net.TCPAddr{IP: net.ParseIP(loopback)}, path, "grapnel.svc", ""); got != http.StatusForbidden {
				t.Errorf("%s at %s: %d", path, loopback, got)
			}
		}
	}
	for _, path := range []string{"/identity?nonce=0123456789ABCDEF", "/metrics", "/rpc"} {
		if got := at(elsewhere, path, "grapnel.svc", ""); got != http.StatusForbidden {
			t.Errorf("%s: %d", path, got)
		}
	}
	if got := at(elsewhere, "/metrics", "localhost", ""); got != http.StatusUnauthorized { // whatever it calls the gateway
		t.Errorf("/metrics without a token: %d", got)
	}
}

// getAs asks with a Host and an Origin, which may be empty.
func (s *served) getAs(t testing.TB, path, host, origin string) (int, string) {
	t.Helper()
	r := must(http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.addr+path, nil))(t)
	if r.Host = host; origin != "" {
		r.Header.Set("Origin", origin)
	}
	resp, err := s.client(t).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close() //nolint:errcheck // it was read
	return resp.StatusCode, string(must(io.ReadAll(resp.Body))(t))
}
