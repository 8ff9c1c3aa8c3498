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

// Names of gRPC that other packages need in signatures.
type (
	// ClientConn is a connection to a plugin process.
	ClientConn = grpc.ClientConn
	// Server is a plugin's server.
	Server = grpc.Server
	// ServerOption is an option of a server.
	ServerOption = grpc.ServerOption
)

const (
	serviceName   = "grapnel.plugin.v1.Plugin"
	sessionName   = "Session"
	sessionMethod = "/" + serviceName + "/" + sessionName
)

func serviceDesc() grpc.ServiceDesc {
	return grpc.ServiceDesc{
		ServiceName: serviceName,
		HandlerType: (*any)(nil),
		Streams: []grpc.StreamDesc{{
			StreamName:    sessionName,
			Handler:       func(srv any, stream grpc.ServerStream) error { return srv.(*service).serve(stream) }, //nolint:forcetypeassert // Register passes it
			ServerStreams: true,
			ClientStreams: true,
		}},
	}
}

// window is the flow-control window of streams and connections in bytes. A fixed one switches off bandwidth
// estimation, whose pings cost as much as the calls.
const window = 1 << 20

func frameLimit(frame int) int {
	if frame <= 0 {
		return DefaultFrame
	}
	return min(frame, MaxFrame)
}

// maxHeaders bounds the headers and trailers of a stream in bytes. gRPC's default is 16 MiB.
const maxHeaders = 64 << 10

// DialOptions returns the options with which a host connects to a plugin whose frames are at most frame bytes long
// (DefaultFrame if 0, at most MaxFrame). Put them last. Without secure the connection is plaintext: the socket is in a
// private directory.
func DialOptions(frame int, secure *tls.Config) []grpc.DialOption {
	frame = frameLimit(frame)
	creds := insecure.NewCredentials()
	if secure != nil {
		creds = credentials.NewTLS(secure)
	}
	return []grpc.DialOption{
		grpc.WithTransportCredentials(&tapCredentials{creds, frame}),
		grpc.WithStaticStreamWindowSize(window),
		grpc.WithStaticConnWindowSize(window),
		grpc.WithMaxHeaderListSize(maxHeaders),
		grpc.WithDisableRetry(),
		grpc.WithDisableServiceConfig(),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(frame), grpc.MaxCallSendMsgSize(frame)),
	}
}

// ServerOptions returns the options of a plugin's server, which Register needs. frame is the longest frame that it
// accepts, MaxFrame if 0: only the host knows the limit, and measures what it sends.
func ServerOptions(frame int) []ServerOption {
	if frame <= 0 || frame > MaxFrame {
		frame = MaxFrame
	}
	return []ServerOption{
		grpc.ForceServerCodecV2(newCodec()),
		grpc.StaticStreamWindowSize(window),
		grpc.StaticConnWindowSize(window),
		grpc.MaxRecvMsgSize(frame),
		grpc.MaxSendMsgSize(MaxFrame),
	}
}

// AcceptOnly makes a server without TLS check each connection before anything is read from it.
func AcceptOnly(check func(net.Conn) error) ServerOption {
	return grpc.Creds(&checkedCredentials{insecure.NewCredentials(), check})
}

type checkedCredentials struct {
	credentials.TransportCredentials
	check func(net.Conn) error
}

func (c *checkedCredentials) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	if err := c.check(raw); err != nil {
		return nil, nil, err
	}
	return c.TransportCredentials.ServerHandshake(raw)
}

func (c *checkedCredentials) Clone() credentials.TransportCredentials {
	return &checkedCredentials{c.TransportCredentials.Clone(), c.check}
}

// NewServer returns a server with these options, which must include those of ServerOptions.
func NewServer(opts ...ServerOption) *Server { return grpc.NewServer(opts...) }

// Connect returns a connection to a plugin on a unix socket, with frames as in DialOptions, for hosts that did not
// start the plugin, such as test kits. It dials with the first session.
func Connect(socket string, frame int) (*ClientConn, error) {
	dial := func(ctx context.Context, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", socket)
	}
	return newClient(dial, DialOptions(frame, nil))
}

var errLost = errors.New("the connection to the plugin is lost")

// longestStart bounds the time from accepting a connection to speaking HTTP/2; the host's start deadline is far
// shorter.
const longestStart = time.Hour

// ConnectOver returns a gRPC connection over raw, for a host that has checked the peer: it never dials again. With
// secure set it is encrypted. Frames are as in DialOptions. The caller closes both.
func ConnectOver(raw net.Conn, frame int, secure *tls.Config) (*ClientConn, error) {
	var used atomic.Bool
	dial := func(context.Context, string) (net.Conn, error) {
		if used.Swap(true) {
			return nil, errLost
		}
		return raw, nil
	}
	// gRPC would close slow and idle connections, because it can usually make others.
	return newClient(dial, append(DialOptions(frame, secure), grpc.WithIdleTimeout(0),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: backoff.DefaultConfig, MinConnectTimeout: longestStart})))
}

func newClient(dial func(context.Context, string) (net.Conn, error), options []grpc.DialOption) (*ClientConn, error) {
	return grpc.NewClient("passthrough:///plugin", append([]grpc.DialOption{grpc.WithContextDialer(dial)}, options...)...)
}
