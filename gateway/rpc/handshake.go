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
	at := seatOf(r, k)
	if bad := s.reserve(at); bad != nil {
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
		s.leave(at, nil)
		return
	}
	ws.SetReadLimit(-1) // receive counts, and says what the limit is
	c := newConn(s, ws, tap.conn, k, isLocal(r))
	c.seat, c.socket = at, socketOf(r)
	c.socket.work(1) // it is never idle as sockets of HTTP are
	s.adopt(c)       //nolint:contextcheck // it outlives the request
}

// seat is what connections are counted by: the listener, and the token's name.
type seat struct {
	door  *door // nil where [Server.Serve] does not serve
	token string
}

func seatOf(r *http.Request, k *key) seat {
	var at seat
	if s := socketOf(r); s != nil {
		at.door = s.door
	}
	if k != nil {
		at.token = k.token.Name
	}
	return at
}

// reserve makes room for a connection, whose end is leave. The caller holds the
// server until it calls Done of wg.
func (s *Server) reserve(at seat) *Error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.draining {
		return Errorf(CodeUnavailable, "the gateway is stopping")
	}
	door, token := 0, 0
	for other, n := range s.open {
		if other.door == at.door {
			door += n
		}
		if other.token == at.token {
			token += n
		}
	}
	switch {
	case door >= s.limits.Connections:
		return Errorf(CodeUnavailable, "there are %d connections already", door)
	case at.token != "" && token >= (s.limits.Connections+1)/2:
		return Errorf(CodeUnavailable, "there are %d connections of the token %q already", token, at.token)
	}
	s.wg.Add(1)
	s.open[at]++
	s.tellOpen()
	return nil
}

// tellOpen tells the observer, in the order in which it happened.
func (s *Server) tellOpen() {
	if s.onConn == nil {
		return
	}
	open := 0
	for _, n := range s.open {
		open += n
	}
	s.onConn(open)
}

// leave gives the room of a connection back; c is nil for one that never opened.
func (s *Server) leave(at seat, c *Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
	if s.open[at]--; s.open[at] == 0 {
		delete(s.open, at)
	}
	s.tellOpen()
}

// adopt starts a connection's goroutines, for which wg waits.
func (s *Server) adopt(c *Conn) {
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
		defer s.leave(c.seat, c)
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
