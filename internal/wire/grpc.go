package wire

import (
	"net"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
)

// Names of gRPC that other packages need in signatures; only this package
// imports it.
type (
	// ClientConn is a connection to a plugin process.
	ClientConn = grpc.ClientConn
	// Server is a plugin's server.
	Server = grpc.Server
	// DialOption is an option of a connection.
	DialOption = grpc.DialOption
	// ServerOption is an option of a server.
	ServerOption = grpc.ServerOption
)

// window is the flow-control window of streams and connections, in bytes. A
// fixed one switches off the estimation of bandwidth, whose pings cost as much
// as the calls, and one of this size asks for few updates.
const window = 1 << 20

// frameLimit applies default and bound to a limit of frames.
func frameLimit(frame int) int {
	if frame <= 0 {
		return DefaultFrame
	}
	return min(frame, MaxFrame)
}

// maxHeaders bounds the headers and trailers of a stream, in bytes as HTTP/2
// counts them. gRPC's default is 16 MiB.
const maxHeaders = 64 << 10

// DialOptions returns the options with which a host connects to a plugin whose
// frames are at most frame bytes long (DefaultFrame if 0, at most MaxFrame).
// They include transport credentials, without encryption: the socket lies in a
// private folder. Put them last.
func DialOptions(frame int) []DialOption { return dialOptions(frame, insecure.NewCredentials()) }

func dialOptions(frame int, creds credentials.TransportCredentials) []DialOption {
	frame = frameLimit(frame)
	return []DialOption{
		grpc.WithTransportCredentials(newTapCredentials(frame, creds)),
		grpc.WithStaticStreamWindowSize(window),
		grpc.WithStaticConnWindowSize(window),
		grpc.WithMaxHeaderListSize(maxHeaders),
		grpc.WithDisableRetry(),
		grpc.WithDisableServiceConfig(),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(frame), grpc.MaxCallSendMsgSize(frame)),
	}
}

// callOptions are the options of a session's stream.
func callOptions(frame int) []grpc.CallOption {
	return []grpc.CallOption{
		grpc.ForceCodecV2(newCodec()),
		grpc.MaxCallRecvMsgSize(frame),
		grpc.MaxCallSendMsgSize(frame),
	}
}

// ServerOptions returns the options of a plugin's server, which Register needs.
// frame is the longest frame that it takes, MaxFrame if 0: the host measures
// what it sends, and only the host knows the limit.
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

// AcceptOnly is an option of a server that looks at each connection before
// anything is read from it, and drops those for which check returns an error.
// It is for servers without TLS, which brings its own check.
func AcceptOnly(check func(net.Conn) error) ServerOption {
	return grpc.Creds(&checkedCredentials{insecure.NewCredentials(), check})
}

// checkedCredentials are the place where gRPC lets one look at a connection.
type checkedCredentials struct {
	credentials.TransportCredentials
	check func(net.Conn) error
}

// ServerHandshake implements credentials.TransportCredentials.
func (c *checkedCredentials) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	if err := c.check(raw); err != nil {
		return nil, nil, err
	}
	return c.TransportCredentials.ServerHandshake(raw)
}

// Clone implements credentials.TransportCredentials.
func (c *checkedCredentials) Clone() credentials.TransportCredentials {
	return &checkedCredentials{c.TransportCredentials.Clone(), c.check}
}
