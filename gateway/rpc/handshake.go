package rpc

import (
	"bufio"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/coder/websocket"
)

// serveWebSocket opens a connection. It ends with the handshake, so that the
// connection does not hold what an HTTP request needs.
func (s *Server) serveWebSocket(w http.ResponseWriter, r *http.Request) {
	k, bad := s.authenticate(r)
	if bad != nil {
		w.Header().Set("WWW-Authenticate", "Bearer")
		deny(w, http.StatusUnauthorized, bad)
		return
	}
	if bad := s.reserve(); bad != nil {
		w.Header().Set("Retry-After", "1")
		deny(w, http.StatusServiceUnavailable, bad)
		return
	}
	defer s.wg.Done()
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(s.limits.Write))
	tap := &hijackTap{ResponseWriter: w}
	ws, err := websocket.Accept(tap, r, &websocket.AcceptOptions{
		Subprotocols:       []string{plainSubprotocol, offered(r)},
		InsecureSkipVerify: true, // Guard has looked at the Origin
	})
	if err != nil {
		s.log.Debug("a handshake failed", slog.Any("error", err))
		s.leave(nil)
		return
	}
	ws.SetReadLimit(-1)                  // receive counts, and says what the limit is
	s.adopt(ws, tap.conn, k, isLocal(r)) //nolint:contextcheck // it outlives the request
}

// reserve makes room for a connection, whose end is leave. The caller holds the
// server until it calls Done of wg.
func (s *Server) reserve() *Error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.draining:
		return Errorf(CodeUnavailable, "the gateway is stopping")
	case s.open >= s.limits.Connections:
		return Errorf(CodeUnavailable, "there are %d connections already", s.open)
	}
	s.wg.Add(1)
	s.open++
	s.tellOpen()
	return nil
}

// tellOpen tells the observer, in the order in which it happened.
func (s *Server) tellOpen() {
	if s.onConn != nil {
		s.onConn(s.open)
	}
}

// leave gives the room of a connection back; nil for one that never opened.
func (s *Server) leave(c *Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
	s.open--
	s.tellOpen()
}

// adopt starts a connection's goroutines, for which wg waits.
func (s *Server) adopt(ws *websocket.Conn, nc net.Conn, k *key, local bool) {
	c := newConn(s, ws, nc, k, local)
	s.mu.Lock()
	s.conns[c] = struct{}{}
	if s.draining {
		c.depart()
	}
	// Tokens may have changed since the handshake, and SetTokens did not see this
	// connection then.
	c.checkKey(s.tokens.Load())
	s.mu.Unlock()
	s.wg.Go(c.read)
	s.wg.Go(func() {
		defer s.leave(c)
		c.write()
	})
}

// depart ends a connection when what is in flight is answered.
func (c *Conn) depart() {
	c.close(websocket.StatusGoingAway, "the gateway is stopping", true)
}

// hijackTap notes the connection that is taken over.
type hijackTap struct {
	http.ResponseWriter

	conn net.Conn
}

// Hijack implements http.Hijacker.
func (t *hijackTap) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(t.ResponseWriter).Hijack()
	t.conn = conn
	return conn, rw, err
}
