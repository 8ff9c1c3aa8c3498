package rpc

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// checkReleased fails where a message of a server that has stopped still holds memory.
func (h *harness) checkReleased(t *testing.T) {
	t.Helper()
	q := h.srv.quota
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.process.used != 0 || q.process.arriving.used != 0 || len(q.leases) != 0 || len(q.waiting) != 0 {
		t.Errorf("%d bytes of %d messages were not given back, %d wait", q.process.used, len(q.leases), len(q.waiting))
	}
}

// newTestQuota is one of 1,000 bytes: 500 for a token, 250 for a connection.
func newTestQuota(t *testing.T, admission time.Duration) *quota {
	t.Helper()
	srv := must(New(Options{Limits: Limits{Memory: 1000, Body: 1, Admission: admission}}))(t)
	t.Cleanup(func() { srv.stop(ErrClosed) })
	return srv.quota
}

// TestQuotaShares: nobody gets more than a share, and who is refused learns which.
func TestQuotaShares(t *testing.T) {
	t.Parallel()

	q := newTestQuota(t, time.Millisecond)
	ann, bob := &key{memory: q.token()}, &key{memory: q.token()}
	one := q.connection()
	steps := []struct {
		key  *key
		conn *account
		want int64
		full string // the share that is full; empty for none
	}{
		{ann, one, 200, ""},
		{ann, one, 51, "connection"},
		{ann, one, 50, ""},
		{ann, q.connection(), 250, ""},
		{ann, q.connection(), 1, "token"},
		{bob, q.connection(), 250, ""},
		{bob, q.connection(), 200, ""},
		{nil, q.connection(), 51, "process"},
		{nil, q.connection(), 50, ""},
		{bob, q.connection(), 1001, "process"},
	}
	var leases []*lease
	for i, s := range steps {
		l := q.lease(s.key, s.conn, nil)
		leases = append(leases, l)
		bad := l.set(t.Context(), s.want)
		switch {
		case bad == nil && s.full != "":
			t.Errorf("step %d was granted", i)
		case bad != nil && (bad.Code != CodeOverloaded || bad.Data["share"] != s.full):
			t.Errorf("step %d was refused: %v, %v", i, bad, bad.Data)
		}
	}
	for _, l := range leases {
		l.release()
	}
	if q.process.used != 0 || ann.memory.used != 0 || bob.memory.used != 0 || one.used != 0 {
		t.Error("not everything was given back")
	}
}

// TestQuotaWaits: what is released goes to those who wait and whom it fits, and a
// caller who goes away while waiting takes nothing.
func TestQuotaWaits(t *testing.T) {
	t.Parallel()

	q := newTestQuota(t, time.Hour)
	conn := q.connection()
	first := q.lease(nil, conn, nil)
	if bad := first.set(t.Context(), 200); bad != nil {
		t.Fatal(bad)
	}
	ask := func(ctx context.Context, n int64) (*lease, chan *Error) {
		l, got := q.lease(nil, conn, nil), make(chan *Error, 1)
		go func() { got <- l.set(ctx, n) }()
		for !func() bool { // until it waits
			q.mu.Lock()
			defer q.mu.Unlock()
			return len(q.waiting) > 0 && q.waiting[len(q.waiting)-1].lease == l
		}() {
			if t.Context().Err() != nil {
				t.Fatal("it never waits")
			}
		}
		return l, got
	}
	leaving, leave := context.WithCancel(t.Context())
	_, gone := ask(leaving, 100)
	_, large := ask(t.Context(), 250)
	small, granted := ask(t.Context(), 60)
	leave()
	if bad := await(t, gone, "the one who went away"); bad == nil || bad.Code != CodeUnavailable {
		t.Errorf("the one who went away got %v", bad)
	}
	if bad := first.set(t.Context(), 190); bad != nil {
		t.Error(bad)
	}
	if bad := await(t, granted, "the small one"); bad != nil {
		t.Errorf("the small one was refused: %v", bad)
	}
	first.release()
	small.release()
	if bad := await(t, large, "the large one"); bad != nil {
		t.Errorf("the large one was refused: %v", bad)
	}
}

// unread calls test/big over a connection that is not read, as often as told.
func (h *harness) unread(t *testing.T, network, addr string, n int) net.Conn {
	t.Helper()
	conn := dialPlain(t, network, addr)
	body := `{"jsonrpc":"2.0","id":1,"method":"test/big","params":{"text":"","count":8000000}}`
	must(io.WriteString(conn, strings.Repeat(postHead("", len(body))+body, n)))(t)
	return conn
}

// TestUnreadAnswersAreEvicted: answers that nobody reads hold memory only until
// somebody else needs it.
func TestUnreadAnswersAreEvicted(t *testing.T) {
	t.Parallel()

	h := start(t, func(o *Options) {
		o.Limits.Memory, o.Limits.Admission = 32<<20, patience
		o.Limits.Write = 2500 * time.Millisecond // evicted after half a second
	})
	clients, calls := 4, 1
	if long() {
		clients, calls = 12, 5
	}
	var conns []net.Conn
	for range clients / 2 { // 8 MB each: with the honest calls more than there is
		conns = append(conns, h.unread(t, "tcp", h.addr, 2), h.unread(t, "unix", h.unix, 2))
	}
	h.untilQuota(t, "the unread answers", func(q *quota) bool { return q.process.used > 24<<20 })
	for range calls {
		if _, body := h.post(t, `{"jsonrpc":"2.0","id":1,"method":"test/big","params":{"text":"","count":8000000}}`); len(body) < 8_000_000 {
			t.Errorf("an honest client got %.300s", body)
		}
	}
	for _, conn := range conns {
		_ = conn.Close() // some were evicted
	}
	h.stop()
	if err := h.ended(t); err != nil {
		t.Error(err)
	}
	h.checkReleased(t)
}

// TestBatchBehindFullShare: what a batch finds no memory for is refused, each call by
// itself, and what was done before is answered.
func TestBatchBehindFullShare(t *testing.T) {
	t.Parallel()

	h := start(t, func(o *Options) {
		o.Limits.Memory, o.Limits.Body, o.Limits.Admission = 4<<20, 1<<20, time.Millisecond
		o.Limits.Answer = 2 << 20
	})
	call := func(id, count string) string {
		return `{"jsonrpc":"2.0","id":` + id + `,"method":"test/big","params":{"text":"","count":` + count + `}}`
	}
	_, body := h.post(t, "["+strings.Join([]string{call("1", "3"), call("2", "1500000"), call("3", "1"), `{"jsonrpc":"2.0","method":"test/who"}`, call("4", "1")}, ",")+"]")
	want := []string{`1 "xxx"`, "2 -32004 overloaded", "3 -32004 overloaded", "4 -32004 overloaded"}
	if diff := cmp.Diff(summaries(t, body), want); diff != "" {
		t.Errorf("responses (-got +want):\n%s", diff)
	}
	var answers []struct {
		Error *struct {
			Data struct {
				Share string `json:"share"`
				Retry int    `json:"retry_after_ms"`
			} `json:"data"`
		} `json:"error"`
	}
	if err := json.Unmarshal([]byte(body), &answers); err != nil || answers[1].Error.Data.Share != "connection" || answers[1].Error.Data.Retry == 0 {
		t.Errorf("%v: no share and no time in %s", err, body)
	}
}

// TestEchoesAreBounded: neither an id nor a message makes an answer long.
func TestEchoesAreBounded(t *testing.T) {
	t.Parallel()

	h := start(t, func(o *Options) {
		o.Methods = append(o.Methods, Typed("test/echo_error", NoRight, "Fails with its text.", func(_ context.Context, _ *Caller, p echoed) (none, error) {
			return none{}, &Error{Code: CodeInvalid, Message: p.Text, Data: map[string]any{"text": p.Text}}
		}))
	})
	long := strings.Repeat("x", 1<<20)
	for text, want := range map[string]string{
		`{"jsonrpc":"2.0","id":"` + long + `","method":"test/who"}`:                                   "null -32600 invalid_request",
		`{"jsonrpc":"2.0","id":` + strings.Repeat("9", 1<<20) + `,"method":"test/who"}`:               "null -32600 invalid_request",
		`{"jsonrpc":"2.0","id":1,"method":"` + long + `"}`:                                            "1 -32601 unknown_method",
		`{"jsonrpc":"2.0","id":1,"method":"test/echo_error","params":{"text":"` + long + `"}}`:        "1 -32602 invalid_params",
		`{"jsonrpc":"2.0","id":1,"method":"test/who","params":{"` + long + `":1}}`:                    "1 -32602 invalid_params",
		`{"jsonrpc":"2.0","id":1,"method":"test/who","` + long + `":1}`:                               "1 -32600 invalid_request",
		`{"jsonrpc":"2.0","id":1,"method":"test/echo","params":{"text":"","count":` + long[:1] + `}}`: "null -32700 parse_error",
	} {
		if _, body := h.post(t, text); summaries(t, body)[0] != want || len(body) > 2*maxError {
			t.Errorf("%.60s… got %d bytes: %.200s", text, len(body), body)
		}
	}
}

// TestAdmitGoesByAddress: who needs a token is decided by where the peer is, and by
// nothing that it says.
func TestAdmitGoesByAddress(t *testing.T) {
	t.Parallel()

	h := start(t, func(o *Options) {
		o.Tokens = []Token{{Name: "ann", SHA256: sum("a"), Rights: []Right{ReadRight}}, {Name: "bob", SHA256: sum("b"), Rights: []Right{WriteRight}}}
	})
	handler := h.srv.Guard(h.srv.Admit(ReadRight, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })))
	for _, tt := range []struct {
		name, remote, host string
		headers            map[string]string
		want               int
	}{
		{"this machine", "127.0.0.1:1", "localhost", nil, 200},
		{"this machine, IPv6", "[::1]:1", "[::1]", nil, 200},
		{"this machine, another host", "127.0.0.1:1", "evil.example", nil, 403},
		{"this machine, a page", "127.0.0.1:1", "localhost", map[string]string{"Origin": "http://evil.example"}, 403},
		{"elsewhere, calls itself local", "192.0.2.1:1", "localhost", nil, 401},
		{"elsewhere, calls itself loopback", "192.0.2.1:1", "127.0.0.1", nil, 401},
		{"elsewhere, says that it was forwarded", "192.0.2.1:1", "localhost", map[string]string{"X-Forwarded-For": "127.0.0.1", "Forwarded": "for=127.0.0.1", "X-Real-Ip": "127.0.0.1"}, 401},
		{"elsewhere, wrong token", "192.0.2.1:1", "localhost", map[string]string{"Authorization": "Bearer x"}, 401},
		{"elsewhere, without the right", "192.0.2.1:1", "localhost", map[string]string{"Authorization": "Bearer b"}, 401},
		{"elsewhere, with it", "192.0.2.1:1", "localhost", map[string]string{"Authorization": "Bearer a"}, 200},
		{"mapped", "[::ffff:192.0.2.1]:1", "localhost", nil, 401},
		{"no address", "", "localhost", nil, 401},
	} {
		w := httptest.NewRecorder()
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+tt.host+"/metrics", nil)
		r.RemoteAddr = tt.remote
		for name, value := range tt.headers {
			r.Header.Set(name, value)
		}
		if handler.ServeHTTP(w, r); w.Code != tt.want {
			t.Errorf("%s: got %d, want %d", tt.name, w.Code, tt.want)
		}
	}
}
