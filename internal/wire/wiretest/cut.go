package wiretest

import (
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/peer"
)

// cutter puts a cutConn into each connection. Credentials are the place where
// gRPC lets one wrap it.
type cutter struct {
	credentials.TransportCredentials
}

func newCutter() credentials.TransportCredentials { return &cutter{insecure.NewCredentials()} }

// ServerHandshake implements credentials.TransportCredentials.
func (c *cutter) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn, info, err := c.TransportCredentials.ServerHandshake(raw)
	if err != nil {
		return nil, nil, err
	}
	cut := &cutConn{Conn: conn}
	return cut, cutInfo{info, cut}, nil
}

// Clone implements credentials.TransportCredentials.
func (c *cutter) Clone() credentials.TransportCredentials {
	return &cutter{c.TransportCredentials.Clone()}
}

// cutInfo carries the connection to its streams.
type cutInfo struct {
	credentials.AuthInfo
	conn *cutConn
}

// cutConn is a connection whose owner may vanish in the middle of a write, or
// write ever so slowly.
type cutConn struct {
	net.Conn
	armed atomic.Pointer[cut]
	// pause is that of Dribble in nanoseconds; 0 writes at once.
	pause atomic.Int64
}

type cut struct {
	left int
	then func()
	once sync.Once
}

// Write implements net.Conn. gRPC calls it from one goroutine.
func (c *cutConn) Write(p []byte) (int, error) {
	if pause := c.pause.Load(); pause > 0 {
		return c.dribble(p, time.Duration(pause))
	}
	a := c.armed.Load()
	if a == nil || len(p) <= a.left {
		if a != nil {
			a.left -= len(p)
		}
		return c.Conn.Write(p)
	}
	n, err := c.Conn.Write(p[:a.left])
	a.left = 0
	a.once.Do(a.then)
	return n, errors.Join(err, c.Close())
}

// CutAfter lets n more bytes out to the host, then calls then, which usually ends
// the process, and closes the connection.
func (s *Session) CutAfter(n int, then func()) {
	if p, ok := peer.FromContext(s.stream.Context()); ok {
		if info, ok := p.AuthInfo.(cutInfo); ok {
			info.conn.armed.Store(&cut{left: n, then: then})
		}
	}
}
