package wire

import (
	"context"
	"net"

	"google.golang.org/grpc"
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
	dial := grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", socket)
	})
	return grpc.NewClient("passthrough:///plugin", append([]DialOption{dial}, DialOptions(frame)...)...)
}
