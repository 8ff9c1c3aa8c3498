package proc

import (
	"context"
	"errors"
	"io"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"github.com/hashicorp/go-plugin/runner"

	"github.com/grapnelhq/grapnel/internal/wire"
	"github.com/grapnelhq/grapnel/phases"
)

// socketPoll is how often a socket is looked for that a plugin has named but
// not yet made.
const socketPoll = 5 * time.Millisecond

// goRunner is the runner that go-plugin drives in place of its own. It shows
// go-plugin a standard output of one line and an empty standard error, and
// lets it see the end of the process only after its own start is over.
type goRunner struct {
	start   func() error
	child   *child
	name    string
	output  *io.PipeReader
	ready   <-chan struct{} // closed when go-plugin's start is over
	waiting func(what, words string)
	// checkPeer returns the address under which to dial a unix socket.
	checkPeer func(addr string) (dial string, err error)
}

var _ runner.Runner = (*goRunner)(nil)

// Start starts the process.
func (r *goRunner) Start(context.Context) error { return r.start() }

// Wait returns after the end of the process. go-plugin gives up its connection
// then, so it must not happen while it is still making it: the connection
// would be lost without being closed.
func (r *goRunner) Wait(context.Context) error {
	<-r.child.exited
	<-r.ready
	return nil
}

// Kill kills the group. It does not wait.
func (r *goRunner) Kill(context.Context) error {
	if r.ID() != "" {
		r.child.signal(syscall.SIGKILL)
	}
	return nil
}

// ID returns the process number, "" before the start.
func (r *goRunner) ID() string {
	pid := r.child.processID()
	if pid == 0 {
		return ""
	}
	return strconv.Itoa(pid)
}

// Stdout returns the handshake line and then nothing until the end.
func (r *goRunner) Stdout() io.ReadCloser { return r.output }

// Stderr returns nothing: the child's is read elsewhere.
func (r *goRunner) Stderr() io.ReadCloser { return io.NopCloser(strings.NewReader("")) }

// Name returns the plugin's name.
func (r *goRunner) Name() string { return r.name }

// Diagnose adds nothing: our own errors say more.
func (r *goRunner) Diagnose(context.Context) string { return "" }

// HostToPlugin returns addresses unchanged: both sides share a machine.
func (r *goRunner) HostToPlugin(network, addr string) (string, string, error) {
	return network, addr, nil
}

// PluginToHost checks the address of the handshake and waits until somebody
// listens there, since go-plugin takes a missing socket for a good one.
func (r *goRunner) PluginToHost(network, addr string) (string, string, error) {
	if err := checkAddress(network, addr); err != nil {
		return "", "", err
	}
	r.waiting("the socket of the handshake is not there", "socket "+clean(addr, noiseShown))
	if network == "unix" {
		dial, err := r.checkPeer(addr)
		return network, dial, err
	}
	r.waiting("nothing answers on its address", network+" "+clean(addr, noiseShown))
	return network, addr, nil
}

// errGaveUp says that a start was given up, for a reason known elsewhere.
var errGaveUp = errors.New("start given up")

// connPlugin is the one entry in go-plugin's set: it hands out the connection
// itself.
type connPlugin struct {
	plugin.NetRPCUnsupportedPlugin
}

var _ plugin.GRPCPlugin = connPlugin{}

// GRPCServer is the plugin's side, which a host does not have.
func (connPlugin) GRPCServer(*plugin.GRPCBroker, *wire.Server) error {
	return errors.New("a host does not serve")
}

// GRPCClient returns the connection.
func (connPlugin) GRPCClient(_ context.Context, _ *plugin.GRPCBroker, conn *wire.ClientConn) (any, error) {
	return conn, nil
}

// clientConfig configures go-plugin for one process.
func (p *Process) clientConfig(ctx context.Context) *plugin.ClientConfig {
	return &plugin.ClientConfig{
		HandshakeConfig: plugin.HandshakeConfig{
			ProtocolVersion:  wire.ProtocolVersion,
			MagicCookieKey:   wire.HandshakeCookieKey,
			MagicCookieValue: wire.HandshakeCookieValue,
		},
		Plugins:          plugin.PluginSet{wire.PluginName: connPlugin{}},
		AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC},
		SkipHostEnv:      true,
		AutoMTLS:         p.spec.MutualTLS,
		Logger:           hclog.NewNullLogger(),
		// Ours is the deadline that counts; this one must not come first.
		StartTimeout:     remaining(ctx) + KillTime,
		SyncStdout:       p.child.stdout,
		SyncStderr:       p.stdio,
		GRPCDialOptions:  wire.DialOptions(p.spec.Frame),
		UnixSocketConfig: &plugin.UnixSocketConfig{TempDir: p.folder.path},
		RunnerFunc: func(_ hclog.Logger, cmd *exec.Cmd, _ string) (runner.Runner, error) {
			return &goRunner{
				start: func() error { return p.spawn(ctx, cmd.Env) },
				child: p.child, name: p.spec.Name, output: p.output,
				ready: p.connected, waiting: p.setWaiting,
				checkPeer: func(addr string) (dial string, err error) {
					dial, p.closeSocket, err = p.checkPeer(ctx, addr)
					return dial, err
				},
			}, nil
		},
	}
}

// unconnected is the error of a connection that go-plugin could not make. Its words
// may quote the plugin's.
func unconnected(err error) *phases.Error {
	return &phases.Error{Code: phases.CauseInternal, Message: "the plugin cannot be connected to", Detail: err.Error(), Err: err}
}

// dial lets go-plugin start the process, read the handshake and connect, and
// waits until the connection is up.
func (p *Process) dial(ctx context.Context) error {
	if _, err := p.client.Start(); err != nil {
		return err
	}
	if p.spec.MutualTLS { // its certificates are made by the start
		p.config.GRPCDialOptions = wire.TLSDialOptions(p.spec.Frame, p.config.TLSConfig)
	}
	protocol, err := p.client.Client()
	if err != nil {
		// Its Kill would try again, and lose that connection too.
		p.client = nil
		return unconnected(err)
	}
	p.closeProtocol = sync.OnceFunc(func() { closeQuietly(protocol) })
	raw, err := protocol.Dispense(wire.PluginName)
	if err != nil {
		return unconnected(err)
	}
	conn, ok := raw.(*wire.ClientConn)
	if !ok {
		return phases.Errorf(phases.CauseInternal, "go-plugin returned a %T instead of the connection", raw)
	}
	p.conn = conn
	return awaitReady(ctx, conn)
}

// awaitReady waits until the connection is up. A plugin that named its socket
// before it listened is dialled again soon; gRPC itself would wait a second.
func awaitReady(ctx context.Context, conn *wire.ClientConn) error {
	for {
		state := conn.GetState()
		switch state.String() {
		case "READY":
			return nil
		case "IDLE":
			conn.Connect()
		case "TRANSIENT_FAILURE":
			select {
			case <-ctx.Done():
				return errGaveUp
			case <-time.After(socketPoll):
				conn.ResetConnectBackoff()
			}
		}
		if !conn.WaitForStateChange(ctx, state) {
			return errGaveUp
		}
	}
}

// remaining returns the time until a context's deadline, which it must have.
func remaining(ctx context.Context) time.Duration {
	deadline, _ := ctx.Deadline()
	return max(0, time.Until(deadline))
}
