package rpc

import (
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
	"weak"

	"github.com/coder/websocket"
	"github.com/google/go-cmp/cmp"
)

// TestLostConnectionIsFreed: nothing of a connection stays in memory whose client
// went away without a word. The WebSocket has a finalizer and points at itself.
func TestLostConnectionIsFreed(t *testing.T) {
	t.Parallel()

	h := start(t)
	ws, kept := h.rawWatch(t)
	if err := ws.Close(); err != nil {
		t.Fatal(err)
	}
	h.awaitOpen(t, 0)
	for deadline := time.Now().Add(patience); kept.Value() != nil; {
		if time.Now().After(deadline) {
			t.Fatal("the WebSocket of a lost connection is still there")
		}
		runtime.GC()
	}
}

// rawWatch opens a connection that can be cut, and returns both of its ends; of
// the gateway's only what does not keep it.
func (h *harness) rawWatch(t *testing.T) (net.Conn, weak.Pointer[websocket.Conn]) {
	t.Helper()
	conn := h.rawSocket(t, 0)
	h.awaitOpen(t, 1)
	text := `{"jsonrpc":"2.0","method":"test/watch"}`
	must(conn.Write(frame(len(text), text)))(t)
	return conn, weak.Make(await(t, h.hooks.conn, "the connection").ws)
}

// TestAnswerLimit: no request and no batch makes an answer of any size.
func TestAnswerLimit(t *testing.T) {
	t.Parallel()

	h := start(t, func(o *Options) { o.Limits.Answer = 1000 })
	big := func(count string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"test/big","params":{"text":"","count":` + count + `}}`
	}
	if _, body := h.post(t, big("998")); !strings.Contains(body, strings.Repeat("x", 998)) {
		t.Errorf("as long as it may be: %s", body)
	}
	const refused = "1 -32602 too_large"
	if _, body := h.post(t, big("999")); !slices.Equal(summaries(t, body), []string{refused}) {
		t.Errorf("one byte more: %s", body)
	}
	_, body := h.post(t, "["+strings.Join([]string{big("600"), big("1"), big("600"), big("1"), big("1")}, ",")+"]")
	got := summaries(t, body)
	if want := []string{`1 "x"`, refused, refused}; len(got) != 5 || len(got[2]) < 600 || !slices.Equal([]string{got[1], got[3], got[4]}, want) {
		t.Errorf("a batch: %s", got)
	}
}

func TestRateLimit(t *testing.T) {
	t.Parallel()

	clock := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	h := start(t, func(o *Options) {
		o.Tokens = []Token{{Name: "ann", SHA256: sum("a")}, {Name: "bob", SHA256: sum("b")}}
		o.Limits.Rate = 3
		o.Now = func() time.Time { return clock }
	})
	// The handler by itself, with a peer from elsewhere.
	call := func(remote, secret string, n int) []string {
		w := httptest.NewRecorder()
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost/rpc", strings.NewReader(batchOf(n, `{"jsonrpc":"2.0","id":1,"method":"test/who"}`)))
		r.RemoteAddr = remote
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Authorization", "Bearer "+secret)
		h.srv.Handler().ServeHTTP(w, r)
		return summaries(t, w.Body.String())
	}
	const far, near, refused = "192.0.2.1:1000", "127.0.0.1:1000", "1 -32004 unavailable"
	steps := []struct {
		name    string
		before  func()
		got     func() []string
		want    []string
		refusal bool
	}{
		{name: "within", got: func() []string { return call(far, "a", 2) }, want: []string{`1 "ann"`, `1 "ann"`}},
		{name: "over, in the middle of a batch", got: func() []string { return call(far, "a", 3) }, want: []string{`1 "ann"`, refused, refused}},
		{name: "another token", got: func() []string { return call(far, "b", 1) }, want: []string{`1 "bob"`}},
		{name: "on the own machine", got: func() []string { return call(near, "a", 5) }, want: []string{`1 "ann"`, `1 "ann"`, `1 "ann"`, `1 "ann"`, `1 "ann"`}},
		{
			name: "a reload gives no fresh calls", want: []string{refused},
			before: func() {
				if err := h.srv.SetTokens([]Token{{Name: "ann", SHA256: sum("a2")}}); err != nil {
					t.Fatal(err)
				}
			},
			got: func() []string { return call(far, "a2", 1) },
		},
		{
			name: "a second later", want: []string{`1 "ann"`, `1 "ann"`, `1 "ann"`, refused},
			before: func() { clock = clock.Add(time.Second) },
			got:    func() []string { return call(far, "a2", 4) },
		},
	}
	for _, step := range steps { // one after the other: they use up what there is
		if step.before != nil {
			step.before()
		}
		if diff := cmp.Diff(step.got(), step.want); diff != "" {
			t.Errorf("%s (-got +want):\n%s", step.name, diff)
		}
	}
}

// Without tokens, a peer from elsewhere is not let in.
func TestOpenIsLocal(t *testing.T) {
	t.Parallel()

	h := start(t)
	w := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost/rpc", strings.NewReader("{}"))
	r.RemoteAddr = "192.0.2.1:1000"
	r.Header.Set("Content-Type", "application/json")
	h.srv.Handler().ServeHTTP(w, r)
	if diff := cmp.Diff(summaries(t, w.Body.String()), []string{"null -32003 unauthorized"}); diff != "" {
		t.Errorf("answer (-got +want):\n%s", diff)
	}
}
