package rpc

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"
)

const helloRequest = "GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n"

// whoRequest is a call of test/who with a token; none for an empty one.
func whoRequest(token string) string {
	const body = `{"jsonrpc":"2.0","id":1,"method":"test/who"}`
	return postHead(token, len(body)) + body
}

// plainConn is a connection that a test writes by hand.
type plainConn struct {
	net.Conn

	r *bufio.Reader
}

func dialPlain(t *testing.T, network, addr string) *plainConn {
	t.Helper()
	conn := must((&net.Dialer{}).DialContext(t.Context(), network, addr))(t)
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	return &plainConn{conn, bufio.NewReader(conn)}
}

// ask sends a request and returns the status and the body of the answer; the error
// is why there is none.
func (c *plainConn) ask(request string) (status int, body string, err error) {
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		return 0, "", err
	}
	if _, err := io.WriteString(c, request); err != nil {
		return 0, "", err
	}
	resp, err := http.ReadResponse(c.r, nil)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close() //nolint:errcheck // it was read
	text, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text), err
}

// mustAsk fails the test where the call is not answered by its caller's name.
func (c *plainConn) mustAsk(t *testing.T, token, want string) {
	t.Helper()
	if _, body, err := c.ask(whoRequest(token)); err != nil || !strings.Contains(body, `"result":"`+want+`"`) {
		t.Errorf("%s got %s, %v", want, body, err)
	}
}

// closed waits until the server has closed the connection.
func (c *plainConn) closed(t *testing.T) {
	t.Helper()
	if rest, err := io.ReadAll(c.r); err != nil && strings.Contains(err.Error(), "timeout") {
		t.Errorf("it stays open: %v behind %q", err, rest)
	}
}

func withTokens(o *Options) {
	o.Tokens = []Token{{Name: "ann", SHA256: sum("a")}, {Name: "bob", SHA256: sum("b")}}
}

// TestSilentConnectionsLockNobodyOut: a flood of connections without a token costs
// only their own kind, the oldest first.
func TestSilentConnectionsLockNobodyOut(t *testing.T) {
	t.Parallel()

	for name, first := range map[string]string{"silent": "", "half a header": "GET / HT", "keep-alive": helloRequest} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			h := start(t, withTokens, func(o *Options) { o.Limits.Connections, o.Limits.Unauthenticated = 16, 8 })
			known := dialPlain(t, "tcp", h.addr)
			known.mustAsk(t, "a", "ann")
			hostile := make([]*plainConn, 60)
			for i := range hostile {
				network, addr := "tcp", h.addr
				if i%2 == 1 {
					network, addr = "unix", h.unix
				}
				hostile[i] = dialPlain(t, network, addr)
				must(io.WriteString(hostile[i], first))(t)
				dialPlain(t, "tcp", h.addr).mustAsk(t, "b", "bob")
				dialPlain(t, "unix", h.unix).mustAsk(t, "b", "bob")
			}
			hostile[0].closed(t)
			hostile[1].closed(t)
			known.mustAsk(t, "a", "ann")
		})
	}
}

// TestFullListenerEvictsIdle: who has a token may have half of a listener's sockets;
// its idle ones make room for what it opens, and never those of others.
func TestFullListenerEvictsIdle(t *testing.T) {
	t.Parallel()

	h := start(t, withTokens, func(o *Options) { o.Limits.Connections = 8 }) // 10 sockets, 5 of a token
	bob := dialPlain(t, "tcp", h.addr)
	bob.mustAsk(t, "b", "bob")
	var anns []*plainConn
	for range 20 {
		anns = append(anns, dialPlain(t, "tcp", h.addr))
		anns[len(anns)-1].mustAsk(t, "a", "ann")
	}
	anns[0].closed(t)
	bob.mustAsk(t, "b", "bob")
}

// TestTokenWithBusyConnections: a token all of whose sockets are at work gets no
// further one, and others do.
func TestTokenWithBusyConnections(t *testing.T) {
	t.Parallel()

	h := start(t, withTokens, func(o *Options) { o.Limits.Connections = 8 })
	for range 5 {
		const body = `{"jsonrpc":"2.0","id":1,"method":"test/hang"}`
		must(io.WriteString(dialPlain(t, "tcp", h.addr), postHead("a", len(body))+body))(t)
		await(t, h.hooks.began, "the call")
	}
	if _, body, err := dialPlain(t, "tcp", h.addr).ask(whoRequest("a")); err != nil || !strings.Contains(body, CodeOverloaded) {
		t.Errorf("a sixth connection of the token got %s, %v", body, err)
	}
	dialPlain(t, "tcp", h.addr).mustAsk(t, "b", "bob")
}

// TestTokenWithWebSockets: a token may have half of a listener's connections, and each
// listener has its own.
func TestTokenWithWebSockets(t *testing.T) {
	t.Parallel()

	h := start(t, withTokens, func(o *Options) { o.Limits.Connections = 4 })
	upgrade := func(network, addr, token string) int {
		status, _, err := dialPlain(t, network, addr).ask(strings.Replace(upgradeRequest, "Host:", "Authorization: Bearer "+token+"\r\nHost:", 1))
		if err != nil && status == 0 {
			t.Fatal(err)
		}
		return status
	}
	for i, step := range []struct {
		network, token string
		want           int
	}{
		{"tcp", "a", 101},
		{"tcp", "a", 101},
		{"tcp", "a", 503},  // half of them
		{"unix", "a", 503}, // over all listeners
		{"tcp", "b", 101},
		{"tcp", "b", 101},
		{"tcp", "b", 503},
	} {
		addr := map[string]string{"tcp": h.addr, "unix": h.unix}[step.network]
		if got := upgrade(step.network, addr, step.token); got != step.want {
			t.Errorf("step %d: got %d, want %d", i, got, step.want)
		}
	}
	if err := h.srv.SetTokens([]Token{{Name: "ann", SHA256: sum("a")}, {Name: "bob", SHA256: sum("b")}, {Name: "carl", SHA256: sum("c")}}); err != nil {
		t.Fatal(err)
	}
	if got := upgrade("tcp", h.addr, "c"); got != 503 {
		t.Errorf("a full listener got %d", got)
	}
	if got := upgrade("unix", h.unix, "c"); got != 101 {
		t.Errorf("the other listener got %d", got)
	}
}

// TestUnauthenticatedIdle: a socket without a token is closed soon, whatever it does;
// one with a token stays.
func TestUnauthenticatedIdle(t *testing.T) {
	t.Parallel()

	h := start(t, withTokens, func(o *Options) {
		o.Limits.Header, o.Limits.UnauthenticatedIdle = 200*time.Millisecond, 200*time.Millisecond
	})
	known := dialPlain(t, "tcp", h.addr)
	known.mustAsk(t, "a", "ann")
	var unknown []*plainConn
	for name, sent := range map[string]string{
		"nothing":             "",
		"a byte":              "G",
		"half a header":       "GET /ws HTTP/1.1\r\nHost: localhost\r\n",
		"a whole request":     helloRequest,
		"a wrong token":       whoRequest("x"),
		"a body never sent":   "POST /rpc HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n",
		"a body of no length": "POST /rpc HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n1",
		"expecting":           "POST /rpc HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 100\r\n\r\n",
	} {
		for _, network := range []string{"tcp", "unix"} {
			c := dialPlain(t, network, map[string]string{"tcp": h.addr, "unix": h.unix}[network])
			if _, err := io.WriteString(c, sent); err != nil {
				t.Fatal(name, err)
			}
			unknown = append(unknown, c)
		}
	}
	for _, c := range unknown {
		c.closed(t)
	}
	known.mustAsk(t, "a", "ann")
	// A byte at a time does not stretch it.
	slow := dialPlain(t, "tcp", h.addr)
	began := time.Now()
	for {
		if _, err := io.WriteString(slow, "X"); err != nil {
			break
		}
		if time.Since(began) > patience {
			t.Fatal("a header of one byte at a time is read for good")
		}
	}
	known.mustAsk(t, "a", "ann")
}

// TestWriteNeedsProgress: a peer that reads keeps its connection, one that stops in
// the middle loses it, however much time there is for the whole.
func TestWriteNeedsProgress(t *testing.T) {
	t.Parallel()

	srv := must(New(Options{Limits: Limits{Write: 50 * time.Millisecond}}))(t)
	t.Cleanup(func() { srv.stop(ErrClosed) })
	const length = 5*writePiece + 7
	write := func(read func(peer net.Conn)) (int, error) {
		ours, peer := net.Pipe()
		s := &socket{Conn: ours, via: newListener(srv, nil)}
		t.Cleanup(func() { _, _ = s.Close(), peer.Close() })
		if err := s.SetWriteDeadline(time.Now().Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
		go read(peer)
		return s.Write(make([]byte, length))
	}
	if n, err := write(func(peer net.Conn) { _, _ = io.Copy(io.Discard, peer) }); n != length || err != nil {
		t.Errorf("who reads everything got %d bytes, %v", n, err)
	}
	n, err := write(func(peer net.Conn) { _, _ = io.ReadFull(peer, make([]byte, 2*writePiece+100)) })
	if n < 2*writePiece || n >= length || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("who stops reading got %d bytes, %v", n, err)
	}
}
