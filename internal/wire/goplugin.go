package wire

import (
	"context"
	"io"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/types/known/emptypb"
)

// What go-plugin's handshake needs on both sides: part of the wire contract, for plugins in other languages too.
const (
	CoreVersion = 1 // the version of go-plugin's handshake line
	// ProtocolVersion is the version of the contract, in the handshake line and in Hello. It changes with the proto
	// package's major version.
	ProtocolVersion = 1
	Transport       = "grpc" // the transport in the handshake line
	// TransportKey is the environment variable that names the binding. A plugin that does not find it speaks gRPC.
	TransportKey = "GRAPNEL_TRANSPORT"
	// TransportStdio is the other binding: frames as JSON, one a line, on standard input and output.
	TransportStdio = "stdio"
	// HandshakeCookieKey and HandshakeCookieValue are the environment variable that tells a program it was started as
	// a plugin.
	HandshakeCookieKey   = "GRAPNEL_PLUGIN"
	HandshakeCookieValue = "2f6a0c1e9d4b4b7c8f0e5a73d1c96b28"
	PluginName           = "grapnel" // the one name in go-plugin's plugin set
)

// Bounds of a frame (one gRPC message) in bytes.
const (
	DefaultFrame = 4 << 20  // the limit unless the operator sets one
	MaxFrame     = 16 << 20 // the largest limit that an operator may set
)

// The two services of go-plugin that a host needs. Its broker is unused: it keeps whatever the plugin sends on it.
const (
	stdioMethod    = "/plugin.GRPCStdio/StreamStdio"
	shutdownMethod = "/plugin.GRPCController/Shutdown"
)

// maxStdio bounds a message of the stdio stream. go-plugin sends 1 KiB at most.
const maxStdio = 64 << 10

const (
	stdioChannel = 1
	stdioData    = 2
	stdioStdout  = 1
	stdioStderr  = 2
)

// Stdio is the stream on which a go-plugin server sends what its program writes to os.Stdout and os.Stderr. It must
// be read, or the program blocks once the pipes are full.
type Stdio struct{ stream grpc.ClientStream }

// OpenStdio opens the stream, and thereby the connection: its error says why that failed. A server without the
// service is not an error. ctx bounds the stream too.
func OpenStdio(ctx context.Context, conn *ClientConn) (*Stdio, error) {
	stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, stdioMethod,
		grpc.ForceCodecV2(newCodec()), grpc.MaxCallRecvMsgSize(maxStdio))
	if err != nil {
		return nil, err
	}
	// Errors of these come back from RecvMsg.
	_ = stream.SendMsg(&emptypb.Empty{})
	_ = stream.CloseSend()
	return &Stdio{stream}, nil
}

// Copy writes to stdout and stderr until the stream ends. Errors of the writers are ignored.
func (s *Stdio) Copy(stdout, stderr io.Writer) {
	for {
		var in incoming
		if err := s.stream.RecvMsg(&in); err != nil {
			return
		}
		if in.buffer == nil {
			continue
		}
		switch channel, data := parseStdio(in.buffer.ReadOnlyData()); channel {
		case stdioStdout:
			_, _ = stdout.Write(data)
		case stdioStderr:
			_, _ = stderr.Write(data)
		}
		in.free()
	}
}

// parseStdio reads a plugin.StdioData; the channel of an unreadable one is 0.
func parseStdio(message []byte) (channel uint64, data []byte) {
	ok := eachField(message, func(num protowire.Number, typ protowire.Type, rest []byte) (n int) {
		switch {
		case num == stdioChannel && typ == protowire.VarintType:
			channel, n = protowire.ConsumeVarint(rest)
		case num == stdioData && typ == protowire.BytesType:
			data, n = protowire.ConsumeBytes(rest)
		default:
			n = protowire.ConsumeFieldValue(num, typ, rest)
		}
		return n
	})
	if !ok {
		return 0, nil
	}
	return channel, data
}

// Shutdown asks a go-plugin server to stop, and waits for the answer, the end of the connection, or of ctx.
func Shutdown(ctx context.Context, conn *ClientConn) {
	// The server stops before it answers: an error is normal.
	_ = conn.Invoke(ctx, shutdownMethod, &emptypb.Empty{}, &emptypb.Empty{}, grpc.MaxCallRecvMsgSize(maxStdio))
}
