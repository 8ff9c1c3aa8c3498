package wire

import (
	"google.golang.org/grpc"
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

// DialOptions returns the options with which a host connects to a plugin whose
// frames are at most frame bytes long (DefaultFrame if 0, at most MaxFrame).
// They include transport credentials, without encryption: the socket lies in a
// private folder. Put them last.
func DialOptions(frame int) []DialOption {
	frame = frameLimit(frame)
	return []DialOption{
		grpc.WithTransportCredentials(newTapCredentials(frame)),
		grpc.WithStaticStreamWindowSize(window),
		grpc.WithStaticConnWindowSize(window),
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
