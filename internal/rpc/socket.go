package rpc

import (
	"cmp"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// listener wraps a listener of Serve. Each has its own limits, so that peers of one cannot lock out those of another.
type listener struct {
	net.Listener

	srv *Server

	mu      sync.Mutex
	sockets map[*socket]struct{}
	opened  uint64 // sockets so far
}

func newListener(s *Server, l net.Listener) *listener {
	return &listener{Listener: l, srv: s, sockets: map[*socket]struct{}{}}
}

type socket struct {
	net.Conn

	via    *listener
	peer   netip.Prefix // for limits per address; zero for a unix socket
	number uint64
	once   sync.Once
	memory *account

	// Under the listener's lock.
	known bool // a request was authenticated
	key   *key // its token's; nil for none
	busy  int  // handlers at work, and a WebSocket connection

	writeBy atomic.Pointer[time.Time]
	moved   atomic.Int64 // when the current write made progress, in Unix nanoseconds; 0 for none
}

// Accept implements net.Listener. A socket beyond a limit replaces the oldest idle one, so that filling the limit
// locks nobody out.
func (ln *listener) Accept() (net.Conn, error) {
	for {
		conn, err := ln.Listener.Accept()
		if err != nil {
			return nil, err
		}
		s := &socket{Conn: conn, via: ln, peer: peerOf(conn.RemoteAddr()), memory: ln.srv.quota.connection()}
		replaced, ok := ln.admit(s)
		if replaced != nil {
			_ = replaced.Close()
		}
		if ok {
			return s, nil
		}
		refuse(conn)
	}
}

// peerOf is the address that a peer is counted by; for IPv6 the network, all of which a peer may have.
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

// admit counts a socket and returns the one that it replaces, or false if there is none.
func (ln *listener) admit(s *socket) (replaced *socket, ok bool) {
	l := &ln.srv.limits
	ln.mu.Lock()
	defer ln.mu.Unlock()
	unknown, n := ln.oldest(func(o *socket) bool { return !o.known })
	samePeer, m := ln.oldest(func(o *socket) bool { return !o.known && o.peer == s.peer })
	switch {
	case s.peer.IsValid() && m >= (l.Unauthenticated+1)/2:
		replaced = samePeer
	case n >= l.Unauthenticated:
		replaced = unknown
	case len(ln.sockets) >= l.sockets():
		if replaced, _ = ln.oldest(func(o *socket) bool { return o.busy == 0 }); replaced == nil {
			return nil, false
		}
	}
	delete(ln.sockets, replaced)
	ln.opened++
	s.number = ln.opened
	ln.sockets[s] = struct{}{}
	return replaced, true
}

// oldest returns the oldest of some sockets, preferring idle ones, and their number. The lock is held.
func (ln *listener) oldest(of func(*socket) bool) (found *socket, n int) {
	for s := range ln.sockets {
		if !of(s) {
			continue
		}
		n++
		if found == nil || s.busy < found.busy || s.busy == found.busy && s.number < found.number {
			found = s
		}
	}
	return found, n
}

// authenticated notes an authenticated request; k is nil without tokens. A token may have half of a listener's
// sockets: beyond that its oldest idle one is closed, and if there is none it returns false.
func (s *socket) authenticated(k *key) (ok bool) {
	if s == nil {
		return true
	}
	ln := s.via
	ln.mu.Lock()
	defer ln.mu.Unlock()
	if k != nil && !s.known {
		same, n := ln.oldest(func(o *socket) bool { return o.known && o.key != nil && o.key.token.Name == k.token.Name })
		if n >= (ln.srv.limits.sockets()+1)/2 {
			if same.busy > 0 {
				return false
			}
			delete(ln.sockets, same)
			_ = same.Conn.Close()
		}
	}
	s.known, s.key = true, cmp.Or(s.key, k)
	return true
}

// work counts what is at work at the socket: 1 begins, -1 ends.
func (s *socket) work(n int) {
	if s == nil {
		return
	}
	s.via.mu.Lock()
	defer s.via.mu.Unlock()
	s.busy += n
}

func (s *socket) Close() error {
	s.once.Do(func() {
		s.via.mu.Lock()
		defer s.via.mu.Unlock()
		delete(s.via.sockets, s)
	})
	return s.Conn.Close()
}

func (s *socket) listener() *listener {
	if s == nil {
		return nil
	}
	return s.via
}

// SetReadDeadline limits the silence of a socket that is not authenticated, whatever net/http grants.
func (s *socket) SetReadDeadline(t time.Time) error {
	s.via.mu.Lock()
	known := s.known
	s.via.mu.Unlock()
	if most := time.Now().Add(s.via.srv.limits.UnauthenticatedIdle); !known && (t.IsZero() || t.After(most)) {
		t = most
	}
	return s.Conn.SetReadDeadline(t)
}

func (s *socket) SetWriteDeadline(t time.Time) error {
	s.writeBy.Store(&t)
	return s.Conn.SetWriteDeadline(t)
}

func (s *socket) SetDeadline(t time.Time) error {
	s.writeBy.Store(&t)
	return s.Conn.SetDeadline(t)
}

const writePiece = 16 << 10 // how much a peer must read to count as progress

// Write lets each piece take [Limits.Write], within the deadline for everything.
func (s *socket) Write(p []byte) (written int, err error) {
	defer s.moved.Store(0)
	for {
		s.moved.Store(time.Now().UnixNano())
		piece := p[written:min(len(p), written+writePiece)]
		if len(p) > writePiece {
			by := time.Now().Add(s.via.srv.limits.Write)
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

func (s *socket) stalled() time.Duration {
	moved := s.moved.Load()
	if moved == 0 {
		return 0
	}
	return time.Since(time.Unix(0, moved))
}

type socketKey struct{}

// socketOf is the socket of a request; nil outside of [Server.Serve].
func socketOf(r *http.Request) *socket {
	s, _ := r.Context().Value(socketKey{}).(*socket)
	return s
}

// track counts handlers at work. A chunked request ends its connection: net/http drops a Content-Length beside it,
// and a proxy that used that would take the rest for another request.
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

func refuse(conn net.Conn) {
	const answer = "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
	// A new socket buffers these few bytes.
	if conn.SetWriteDeadline(time.Now().Add(time.Second)) == nil {
		_, _ = conn.Write([]byte(answer))
	}
	_ = conn.Close()
}
