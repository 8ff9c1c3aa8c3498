package rpc

import (
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/google/go-cmp/cmp"
)

// untilQuota waits until a condition holds of what messages take.
func (h *harness) untilQuota(t *testing.T, what string, holds func(q *quota) bool) {
	t.Helper()
	q := h.srv.quota
	for deadline := time.Now().Add(patience); ; {
		q.mu.Lock()
		ok := holds(q)
		q.mu.Unlock()
		if ok {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for %s", what)
		}
		runtime.Gosched() // others need the processor
	}
}

// postHead is the header of a POST with a token; none for an empty one.
func postHead(token string, length int) string {
	if token != "" {
		token = "Authorization: Bearer " + token + "\r\n"
	}
	return "POST /rpc HTTP/1.1\r\nHost: localhost\r\n" + token + "Content-Type: application/json\r\nContent-Length: " + itoa(length) + "\r\n\r\n"
}

// revocations are what makes a token of every right that is bound to w another one.
func revocations() (ann Token, changes map[string][]Token) {
	ann = Token{Name: "ann", SHA256: sum("a"), Rights: Rights(), Workspaces: []string{"w"}}
	bob := Token{Name: "bob", SHA256: sum("b")}
	return ann, map[string][]Token{
		"gone":             {bob},
		"open":             nil,
		"another secret":   {bob, {Name: "ann", SHA256: sum("x"), Rights: ann.Rights, Workspaces: ann.Workspaces}},
		"fewer rights":     {bob, {Name: "ann", SHA256: ann.SHA256, Rights: []Right{ReadRight}, Workspaces: ann.Workspaces}},
		"other workspaces": {bob, {Name: "ann", SHA256: ann.SHA256, Rights: ann.Rights, Workspaces: []string{"v"}}},
	}
}

// onlyRefused fails the test where one of the calls so far was done, but for those of
// a method that had begun before.
func (h *harness) onlyRefused(t *testing.T, n int, but string) {
	t.Helper()
	for range n {
		if c := await(t, h.calls, "the calls"); c.code == "" && c.method != but {
			t.Errorf("%s was done for a token that is gone", c.method)
		}
	}
}

const revokedCall = "-32003 unauthorized"

// TestRevokedTokenInBody: a body whose last byte comes behind the end of its token does
// nothing, over HTTP and over WebSocket.
func TestRevokedTokenInBody(t *testing.T) {
	t.Parallel()

	ann, changes := revocations()
	body := batchOf(3, `{"jsonrpc":"2.0","id":1,"method":"test/admin"}`)
	for name, tokens := range changes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			h := start(t, func(o *Options) { o.Tokens = []Token{ann} })
			conn := dialPlain(t, "tcp", h.addr)
			must(io.WriteString(conn, postHead("a", len(body))+body[:len(body)-1]))(t)
			h.untilQuota(t, "the body", func(q *quota) bool { return q.process.used == int64(len(body)-1) })
			if err := h.srv.SetTokens(tokens); err != nil {
				t.Fatal(err)
			}
			_, _ = io.WriteString(conn, body[len(body)-1:]) // it may be closed
			resp, err := http.ReadResponse(conn.r, nil)
			if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			if diff := cmp.Diff(summaries(t, string(text)), []string{"null " + revokedCall}); diff != "" || err != nil || !resp.Close {
				t.Errorf("answer (-got +want), %v, close %v:\n%s", err, resp.Close, diff)
			}
			conn.closed(t)
			h.onlyRefused(t, 1, "")
		})
	}
}

// TestRevokedTokenInBatch: of a batch, what has not begun when its token goes is not
// done.
func TestRevokedTokenInBatch(t *testing.T) {
	t.Parallel()

	ann, changes := revocations()
	batch := "[" + `{"jsonrpc":"2.0","id":1,"method":"test/wait"},{"jsonrpc":"2.0","method":"test/admin"},{"jsonrpc":"2.0","id":2,"method":"test/admin"}` + "]"
	for name, tokens := range changes {
		t.Run("http "+name, func(t *testing.T) {
			t.Parallel()

			h := start(t, func(o *Options) { o.Tokens = []Token{ann} })
			conn := dialPlain(t, "tcp", h.addr)
			must(io.WriteString(conn, postHead("a", len(batch))+batch))(t)
			await(t, h.hooks.began, "the first call")
			if err := h.srv.SetTokens(tokens); err != nil {
				t.Fatal(err)
			}
			close(h.hooks.release)
			_, text, err := conn.ask("")
			if diff := cmp.Diff(summaries(t, text), []string{`1 "waited"`, "2 " + revokedCall}); diff != "" || err != nil {
				t.Errorf("answer (-got +want), %v:\n%s", err, diff)
			}
			conn.closed(t)
			h.onlyRefused(t, 3, "test/wait")
		})
		t.Run("websocket "+name, func(t *testing.T) {
			t.Parallel()

			h := start(t, func(o *Options) { o.Tokens = []Token{ann} })
			ws := h.dial(t, func(o *websocket.DialOptions) { o.Subprotocols = []string{subprotocol + "a"} })
			say(t, ws, batch)
			await(t, h.hooks.began, "the first call")
			if err := h.srv.SetTokens(tokens); err != nil {
				t.Fatal(err)
			}
			close(h.hooks.release)
			h.onlyRefused(t, 3, "test/wait")
			if ce := hearClose(t, ws); ce.Code != websocket.StatusPolicyViolation {
				t.Errorf("closed with %v", ce)
			}
		})
	}
}

// TestRevokedTokenWaitsForMemory: a call that waits for its share does not begin when
// it gets it behind the end of its token.
func TestRevokedTokenWaitsForMemory(t *testing.T) {
	t.Parallel()

	h := start(t, func(o *Options) {
		o.Tokens = []Token{{Name: "ann", SHA256: sum("a"), Rights: Rights()}}
		o.Limits.Admission = time.Hour
	})
	other := h.srv.quota.lease(nil, h.srv.quota.connection(), nil)
	other.accounts = other.accounts[:1] // the process's alone
	if bad := other.set(t.Context(), 128<<20-1000); bad != nil {
		t.Fatal(bad)
	}
	const body = `{"jsonrpc":"2.0","id":1,"method":"test/admin"}`
	conn := dialPlain(t, "tcp", h.addr)
	must(io.WriteString(conn, postHead("a", len(body))+body))(t)
	h.untilQuota(t, "the call to wait", func(q *quota) bool { return len(q.waiting) == 1 })
	if err := h.srv.SetTokens([]Token{}); err != nil {
		t.Fatal(err)
	}
	other.release()
	if _, text, err := conn.ask(""); err != nil || !strings.Contains(text, CodeUnauthorized) {
		t.Errorf("it got %s, %v", text, err)
	}
	h.onlyRefused(t, 1, "")
}

// TestRevokedTokenOnIdleConnection: a connection grants nothing by what it was let in
// with before, and a proxy's goes on for tokens that stay.
func TestRevokedTokenOnIdleConnection(t *testing.T) {
	t.Parallel()

	h := start(t, withTokens)
	both := dialPlain(t, "tcp", h.addr) // a proxy's
	both.mustAsk(t, "a", "ann")
	both.mustAsk(t, "b", "bob")
	if err := h.srv.SetTokens([]Token{{Name: "bob", SHA256: sum("b")}}); err != nil {
		t.Fatal(err)
	}
	if _, body, err := both.ask(whoRequest("a")); err != nil || !strings.Contains(body, CodeUnauthorized) {
		t.Errorf("the token that is gone got %s, %v", body, err)
	}
	both.mustAsk(t, "b", "bob")
}
