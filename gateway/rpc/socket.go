package rpc

import (
	"cmp"
	"context"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// door is a listener with the sockets that came through it. Each door has limits
// of its own, so that peers of one cannot lock out those of another.
type door struct {
	net.Listener

	srv *Server

	mu      sync.Mutex
	sockets map[*socket]struct{}
	opened  uint64 // sockets so far
}

func newDoor(s *Server, l net.Listener) *door {
	return &door{Listener: l, srv: s, sockets: map[*socket]struct{}{}}
}

// socket is a connection of a peer. It is a stranger until a request of it is
// authenticated.
type socket struct {
	net.Conn

	door   *door
	peer   netip.Prefix // for limits per address; the zero value for a unix socket
	number uint64
	once   sync.Once
	memory *account

	// The door's lock guards these.
	known bool // a request was authenticated
	key   *key // by which token; nil for none
	busy  int  // handlers at work, and a WebSocket connection

	writeBy atomic.Pointer[time.Time]
	moved   atomic.Int64 // when the write under way began or went on, in Unix nanoseconds; 0 for none
}

// Accept implements net.Listener. A socket beyond a limit takes the place of the
// oldest one that can be spared: whoever fills the limit cannot lock others out.
func (d *door) Accept() (net.Conn, error) {
	for {
		conn, err := d.Listener.Accept()
		if err != nil {
			return nil, err
		}
		s := &socket{Conn: conn, door: d, peer: peerOf(conn.RemoteAddr()), memory: d.srv.quota.connection()}
		spared, ok := d.admit(s)
		if spared != nil {
			_ = spared.Close() // it loses its place either way
		}
		if ok {
			return s, nil
		}
		turnAway(conn)
	}
}

// peerOf is the address that a peer is counted by: of IPv6 the network, as a peer
// may have all of it.
func peerOf(addr net.Addr) netip.Prefix {
	tcp, ok := addr.(*net.TCPAddr)
	if !ok {
		return netip.Prefix{}
	}
	ip := tcp.AddrPort().Addr().Unmap()
	bits := ip.BitLen()
	if ip.Is6() && !ip.IsLoopback() {
		bits = 64
	}
	prefix, _ := ip.WithZone("").Prefix(bits) // it fits
	return prefix
}

// admit counts a socket, or says that there is no room. Another one may have to go
// for it.
func (d *door) admit(s *socket) (spared *socket, ok bool) {
	l := &d.srv.limits
	d.mu.Lock()
	defer d.mu.Unlock()
	strangers, same := 0, 0
	for other := range d.sockets {
		if other.known {
			continue
		}
		strangers++
		if other.peer == s.peer {
			same++
		}
	}
	switch {
	case s.peer.IsValid() && same >= (l.Unauthenticated+1)/2:
		spared = d.oldest(func(o *socket) bool { return !o.known && o.peer == s.peer })
	case strangers >= l.Unauthenticated:
		spared = d.oldest(func(o *socket) bool { return !o.known })
	case len(d.sockets) >= l.sockets():
		if spared = d.oldest(func(o *socket) bool { return o.busy == 0 }); spared == nil {
			return nil, false
		}
	}
	delete(d.sockets, spared)
	d.opened++
	s.number = d.opened
	d.sockets[s] = struct{}{}
	return spared, true
}

// oldest is the socket that has been open the longest, of those at which nothing is
// at work, else of all. The lock is held.
func (d *door) oldest(of func(*socket) bool) *socket {
	var found *socket
	for s := range d.sockets {
		if of(s) && (found == nil || s.busy < found.busy || s.busy == found.busy && s.number < found.number) {
			found = s
		}
	}
	return found
}

// authenticated notes that a request of the socket is of a token; nil for a caller
// who needs none. A token may have half of a door's sockets: beyond that the oldest
// of its idle ones goes. Without an idle one there is no room.
func (s *socket) authenticated(k *key) (ok bool) {
	if s == nil {
		return true
	}
	d := s.door
	d.mu.Lock()
	defer d.mu.Unlock()
	if k != nil && !s.known {
		same := func(o *socket) bool { return o.known && o.key != nil && o.key.token.Name == k.token.Name }
		n := 0
		for o := range d.sockets {
			if same(o) {
				n++
			}
		}
		if n >= (d.srv.limits.sockets()+1)/2 {
			spared := d.oldest(func(o *socket) bool { return same(o) && o.busy == 0 })
			if spared == nil {
				return false
			}
			delete(d.sockets, spared)
			_ = spared.Conn.Close() // nobody waits for anything there
		}
	}
	s.known, s.key = true, cmp.Or(s.key, k)
	return true
}

// work notes that something begins (1) or ends (-1) to be at work at the socket.
func (s *socket) work(n int) {
	if s == nil {
		return
	}
	s.door.mu.Lock()
	defer s.door.mu.Unlock()
	s.busy += n
}

// Close implements net.Conn.
func (s *socket) Close() error {
	s.once.Do(func() {
		s.door.mu.Lock()
		defer s.door.mu.Unlock()
		delete(s.door.sockets, s)
	})
	return s.Conn.Close()
}

// SetReadDeadline implements net.Conn. A stranger may be silent for a short time
// only, whatever net/http grants.
func (s *socket) SetReadDeadline(t time.Time) error {
	s.door.mu.Lock()
	known := s.known
	s.door.mu.Unlock()
	if most := time.Now().Add(s.door.srv.limits.UnauthenticatedIdle); !known && (t.IsZero() || t.After(most)) {
		t = most
	}
	return s.Conn.SetReadDeadline(t)
}

// SetWriteDeadline implements net.Conn.
func (s *socket) SetWriteDeadline(t time.Time) error {
	s.writeBy.Store(&t)
	return s.Conn.SetWriteDeadline(t)
}

// SetDeadline implements net.Conn.
func (s *socket) SetDeadline(t time.Time) error {
	s.writeBy.Store(&t)
	return s.Conn.SetDeadline(t)
}

// writePiece is how much a peer must read to make progress.
const writePiece = 16 << 10

// Write implements net.Conn. Each piece must be read within [Limits.Write], besides
// the deadline for everything.
func (s *socket) Write(p []byte) (written int, err error) {
	defer s.moved.Store(0)
	for {
		s.moved.Store(time.Now().UnixNano())
		piece := p[written:min(len(p), written+writePiece)]
		if len(p) > writePiece {
			by := time.Now().Add(s.door.srv.limits.Write)
			if whole := s.writeBy.Load(); whole != nil && !whole.IsZero() && whole.Before(by) {
				by = *whole
			}
			if err := s.Conn.SetWriteDeadline(by); err != nil {
				return written, err
			}
		}
		n, err := s.Conn.Write(piece)
		written += n
		if err != nil || written == len(p) {
			return written, err
		}
	}
}

// stalled is for how long the peer has not read; 0 where nothing is written.
func (s *socket) stalled() time.Duration {
	moved := s.moved.Load()
	if moved == 0 {
		return 0
	}
	return time.Since(time.Unix(0, moved))
}

// socketKey finds the socket in the context of a request.
type socketKey struct{}

// socketOf is the socket of a request; nil where [Server.Serve] does not serve.
func socketOf(r *http.Request) *socket {
	s, _ := r.Context().Value(socketKey{}).(*socket)
	return s
}

// track lets the sockets know when a handler is at work. A chunked request is the last
// one of its connection: it may have had a Content-Length too, which net/http drops,
// and a proxy that went by that would take the rest for another request.
func track(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(r.TransferEncoding) > 0 {
			w.Header().Set("Connection", "close")
		}
		s := socketOf(r)
		s.work(1)
		defer s.work(-1)
		next.ServeHTTP(w, r)
	})
}

// withSocket is [http.Server.ConnContext].
func withSocket(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, socketKey{}, conn)
}

// turnAway answers whatever a socket is about to ask.
func turnAway(conn net.Conn) {
	const answer = "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
	// A new socket has room for these few bytes, so this does not wait; if it fails,
	// closing says enough.
	if conn.SetWriteDeadline(time.Now().Add(time.Second)) == nil {
		_, _ = conn.Write([]byte(answer))
	}
	_ = conn.Close()
}
