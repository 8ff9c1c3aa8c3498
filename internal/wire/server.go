package wire

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
)

// NewServer returns a server with the given options; those of ServerOptions
// must be among them. It exists so that who serves a plugin need not import
// gRPC.
func NewServer(opts ...ServerOption) *Server { return grpc.NewServer(opts...) }

// Connect returns a connection to a plugin that listens on a unix socket, with
// frames of at most frame bytes (see DialOptions). It is for hosts that did not
// start the plugin as a process, such as test kits. Nothing is dialled before
// the first session.
func Connect(socket string, frame int) (*ClientConn, error) {
	dial := func(ctx context.Context, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", socket)
	}
	return newClient(dial, DialOptions(frame))
}

// errLost is the error of every connection but the first.
var errLost = errors.New("the connection to the plugin is lost")

// longestStart bounds how long a plugin may take between accepting a connection
// and speaking HTTP/2. It is far beyond any start deadline, which is the host's.
const longestStart = time.Hour

// ConnectOver returns a gRPC connection over raw, for a host that has checked
// who is at the other end: once raw is lost, no other is dialled. With secure
// set it is encrypted. Frames have at most frame bytes, as in DialOptions. The
// caller closes both.
func ConnectOver(raw net.Conn, frame int, secure *tls.Config) (*ClientConn, error) {
	var used atomic.Bool
	dial := func(context.Context, string) (net.Conn, error) {
		if used.Swap(true) {
			return nil, errLost
		}
		return raw, nil
	}
	creds := insecure.NewCredentials()
	if secure != nil {
		creds = credentials.NewTLS(secure)
	}
	// gRPC closes connections that are slow to begin, and idle ones, because it
	// can make others.
	return newClient(dial, append(dialOptions(frame, creds), grpc.WithIdleTimeout(0),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: backoff.DefaultConfig, MinConnectTimeout: longestStart})))
}

func newClient(dial func(context.Context, string) (net.Conn, error), options []DialOption) (*ClientConn, error) {
	return grpc.NewClient("passthrough:///plugin", append([]DialOption{grpc.WithContextDialer(dial)}, options...)...)
}
