// Package serve runs an [sdk.Plugin] as a process:
//
//	func main() { serve.Main(plugin) }
//
// It is the only package that links hashicorp/go-plugin and gRPC for plugin authors: tests of a plugin, and hosts
// that run it in process, do not need it.
//
// A host that ships plugins in its own program calls [Builtins] first thing in main: started again as one of them, the
// program serves that plugin.
//
// If a host asks for the transport stdio, it gets that, without go-plugin and gRPC.
//
// The host logs what the plugin writes to standard error under the plugin's name; JSON lines in the form of hclog
// keep their level and fields. Standard output belongs to the handshake: print nothing before Main. The host always
// reads both, with limits.
//
// Stability: experimental until 1.0.
package serve

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"

	"github.com/grapnelhq/grapnel/internal/proc/peer"
	"github.com/grapnelhq/grapnel/internal/wire"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/sdk"
)

// ErrNotStartedByHost is returned when the program was started by hand.
var ErrNotStartedByHost = errors.New("this program is a Grapnel plugin: a host starts it; declare it under plugins in grapnel.yaml, or try it with: grapnel plugin run")

// gcPercent lets the heap grow to 8 MiB instead of 4 before a collection: a plugin holds little and answers often. An
// operator can set GOGC in the plugin's environment.
const gcPercent = 200

// Main serves the plugin until the host ends it, and exits: with 0, or with 2 and a message if the program was
// started by hand, or the plugin's literal has a mistake or cannot be closed.
func Main(p *sdk.Plugin) {
	if err := Serve(p); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	os.Exit(0)
}

// closeTime bounds OnClose. It is less than a host waits for the process.
const closeTime = time.Second

// Serve is like Main but returns, for programs that are more than a plugin. Call it at most once a process; it replaces
// os.Stdout by a stream to the host.
func Serve(p *sdk.Plugin) error {
	if !StartedByHost() {
		return ErrNotStartedByHost
	}
	if err := p.Validate(); err != nil {
		return err
	}
	if os.Getenv(wire.TransportKey) == wire.TransportStdio {
		return errors.Join(serveLines(p), closed(p))
	}
	lane, err := openLane()
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v; calls go over gRPC alone. What the host starts should leave the descriptor to the plugin.\n", wire.LaneKey, err)
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig: plugin.HandshakeConfig{
			ProtocolVersion:  wire.ProtocolVersion,
			MagicCookieKey:   wire.HandshakeCookieKey,
			MagicCookieValue: wire.HandshakeCookieValue,
		},
		Plugins: plugin.PluginSet{wire.PluginName: &served{handler: &direct{Handler: p, stderr: os.Stderr}, lane: lane}},
		GRPCServer: func(opts []wire.ServerOption) *wire.Server {
			if os.Getenv(clientCertKey) == "" {
				opts = append(opts, wire.AcceptOnly(newHostCheck(os.Getenv)))
			}
			return wire.NewServer(append(opts, wire.ServerOptions(wire.MaxFrame)...)...)
		},
		Logger: hclog.New(&hclog.LoggerOptions{Name: p.Name, Level: hclog.Warn, Output: os.Stderr, JSONFormat: true}),
	})
	return closed(p)
}

// serveLines speaks on standard input and output. What the program prints goes to standard error.
func serveLines(p *sdk.Plugin) error {
	out := os.Stdout
	os.Stdout = os.Stderr
	return wire.ServeLines(context.Background(), os.Stdin, out, p)
}

func closed(p *sdk.Plugin) error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	return p.Close(ctx)
}

// StartedByHost reports whether a host started this program as a plugin.
func StartedByHost() bool {
	return os.Getenv(wire.HandshakeCookieKey) == wire.HandshakeCookieValue
}

// clientCertKey is the variable by which a host asks for mutual TLS.
const clientCertKey = "PLUGIN_CLIENT_CERT"

// markKey is the variable that names the host: PID.START.NAMESPACE, a slash, and more.
const markKey = "GRAPNEL_MARK"

// newHostCheck returns a check that admits only the host. A host in this namespace must be that very process;
// otherwise the user decides.
func newHostCheck(getenv func(string) string) func(net.Conn) error {
	host, known := hostOf(getenv(markKey))
	return func(conn net.Conn) error {
		if _, ok := conn.(*net.UnixConn); !ok {
			return nil // a loopback address: the system does not say who connects
		}
		c, err := peer.Of(conn)
		switch {
		case errors.Is(err, peer.ErrUnsupported):
			return nil // the socket's directory is open to this user alone
		case err != nil:
			return err
		case known && c.PID != host:
			return fmt.Errorf("process %d connects, which is not the host", c.PID)
		case !peer.Trusted(c.UID):
			return fmt.Errorf("user %d connects", c.UID)
		}
		return nil
	}
}

// hostOf returns the process number in a mark of this process's namespace.
func hostOf(mark string) (pid int, ok bool) {
	identity, _, _ := strings.Cut(mark, "/")
	parts := strings.Split(identity, ".")
	own, err := os.Readlink("/proc/self/ns/pid")
	if err != nil || len(parts) != 3 || own != "pid:["+parts[2]+"]" {
		return 0, false
	}
	pid, err = strconv.Atoi(parts[0])
	return pid, err == nil && pid > 0
}

type served struct {
	plugin.NetRPCUnsupportedPlugin
	handler wire.Handler
	lane    net.Conn
}

// direct puts os.Stderr back, which go-plugin replaces by a stream: a process that ends at once would lose its last
// words in it. go-plugin has replaced it before it accepts a connection.
type direct struct {
	wire.Handler
	stderr, stream *os.File
	once           sync.Once
}

func (d *direct) Describe(ctx context.Context) (*phases.Description, error) {
	d.once.Do(func() {
		d.stream = os.Stderr // kept: go-plugin spins when its stream ends
		os.Stderr = d.stderr
	})
	return d.Handler.Describe(ctx)
}

// openLane returns the plugin's end of the lane that the host has announced; nil if it has not.
func openLane() (net.Conn, error) {
	value, ok := os.LookupEnv(wire.LaneKey)
	if !ok {
		return nil, nil //nolint:nilnil // there need not be one
	}
	fd, err := strconv.Atoi(value)
	if err != nil {
		return nil, err
	}
	return wire.LaneOf(fd)
}

var _ plugin.GRPCPlugin = (*served)(nil)

func (s *served) GRPCServer(_ *plugin.GRPCBroker, server *wire.Server) error {
	wire.Register(server, s.handler, s.lane)
	return nil
}

func (s *served) GRPCClient(context.Context, *plugin.GRPCBroker, *wire.ClientConn) (any, error) {
	return nil, errors.New("serve: not a client")
}
