package wire

import (
	"context"
	"io"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/types/known/emptypb"
)

// The two services of go-plugin that a host needs. Its broker is not among
// them: whoever opens the broker's stream keeps what the plugin sends on it.
const (
	stdioMethod    = "/plugin.GRPCStdio/StreamStdio"
	shutdownMethod = "/plugin.GRPCController/Shutdown"
)

// maxStdio bounds a message of the stdio stream. go-plugin sends 1 KiB at most.
const maxStdio = 64 << 10

// Fields and channels of plugin.StdioData.
const (
	stdioChannel = 1
	stdioData    = 2
	stdioStdout  = 1
	stdioStderr  = 2
)

// Stdio is the stream on which a go-plugin server sends what its program writes
// to os.Stdout and os.Stderr, which it has replaced by pipes. The program blocks
// once they are full, so somebody must read it.
type Stdio struct{ stream grpc.ClientStream }

// OpenStdio opens the stream, and thereby the connection: its error says why
// there is none. A server without the service is not an error. ctx bounds the
// stream too.
func OpenStdio(ctx context.Context, conn *ClientConn) (*Stdio, error) {
	stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, stdioMethod,
		grpc.ForceCodecV2(newCodec()), grpc.MaxCallRecvMsgSize(maxStdio))
	if err != nil {
		return nil, err
	}
	// An error of these comes back from RecvMsg.
	_ = stream.SendMsg(&emptypb.Empty{})
	_ = stream.CloseSend()
	return &Stdio{stream}, nil
}

// Copy writes what comes to stdout and stderr until the stream ends, for
// whatever reason. Errors of the writers are ignored.
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

// parseStdio reads a plugin.StdioData. The channel of a message that cannot be
// read is 0.
func parseStdio(message []byte) (channel uint64, data []byte) {
	for len(message) > 0 {
		num, typ, n := protowire.ConsumeTag(message)
		if n < 0 {
			return 0, nil
		}
		message = message[n:]
		switch {
		case num == stdioChannel && typ == protowire.VarintType:
			channel, n = protowire.ConsumeVarint(message)
		case num == stdioData && typ == protowire.BytesType:
			data, n = protowire.ConsumeBytes(message)
		default:
			n = protowire.ConsumeFieldValue(num, typ, message)
		}
		if n < 0 {
			return 0, nil
		}
		message = message[n:]
	}
	return channel, data
}

// Shutdown asks a go-plugin server to stop, and returns when it has answered or
// closed the connection, or when ctx ends.
func Shutdown(ctx context.Context, conn *ClientConn) {
	// The server stops before it answers: an error is the usual answer.
	_ = conn.Invoke(ctx, shutdownMethod, &emptypb.Empty{}, &emptypb.Empty{}, grpc.MaxCallRecvMsgSize(maxStdio))
}
