//go:build unix

package proc_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/hashicorp/go-plugin"
	"go.uber.org/goleak"

	"github.com/grapnelhq/grapnel/internal/proc"
	"github.com/grapnelhq/grapnel/internal/proc/sandbox"
	"github.com/grapnelhq/grapnel/internal/wire"
)

// modeArg makes the test binary behave as another program: see modes.
const modeArg = "-as-program"

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == modeArg {
		run, ok := modes()[os.Args[2]]
		if !ok {
			fmt.Fprintln(os.Stderr, "unknown mode")
			os.Exit(2)
		}
		run()
		os.Exit(0)
	}
	_ = flag.Set("test.parallel", "8") // most tests that run in parallel wait
	goleak.VerifyTestMain(m)
}

// modes are the programs that the test binary can be: plugins that behave
// well or badly, what plugins start, and a host.
func modes() map[string]func() {
	list := map[string]func(){
		"serve":      serve,
		"session":    func() { servePlugin(sessionPlugin{}) },
		"hang":       block,
		"sleeper":    func() { fmt.Println("up"); block() },
		"mute":       mute,
		"no-socket":  func() { fmt.Println("1|1|unix|" + socketPath() + "|grpc|"); block() },
		"noise":      func() { fmt.Println("\x1b[31mloading\x1b[0m model…"); serve() },
		"no-newline": func() { fmt.Print(strings.Repeat("x", 128<<10)); block() },
		"version":    func() { fmt.Println("1|99|unix|" + socketPath() + "|grpc|"); block() },
		"netrpc":     func() { fmt.Println("1|1|unix|" + socketPath() + "|netrpc"); block() },
		"far-away":   func() { fmt.Println("1|1|tcp|192.0.2.1:80|grpc|"); block() },
		"crash":      func() { fmt.Fprintln(os.Stderr, "out of \x1b[1mcheese"); os.Exit(3) },
		"panic":      func() { panic(errors.New("the end")) },
		"print":      func() { after(serve, printLate) },
		"logs":       func() { after(serve, writeLogs) },
		"children":   func() { startChildren(); serve() },
		"stubborn":   func() { signal.Ignore(syscall.SIGTERM); serve(); block() },
		"litter":     func() { litter(); serve() },
		"environ":    func() { after(serve, printEnviron) },
		"host":       host,
	}
	maps.Copy(list, linuxModes())
	return list
}

// block waits until the process is killed.
func block() {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGHUP)
	<-c
}

// serverPlugin is a go-plugin server without services of its own.
type serverPlugin struct {
	plugin.NetRPCUnsupportedPlugin
}

func (serverPlugin) GRPCServer(*plugin.GRPCBroker, *wire.Server) error { return nil }

func (serverPlugin) GRPCClient(context.Context, *plugin.GRPCBroker, *wire.ClientConn) (any, error) {
	return nil, errors.New("not a host")
}

// serve serves nothing until the host asks for the end.
func serve() { servePlugin(serverPlugin{}) }

// servePlugin serves p.
func servePlugin(p plugin.Plugin) {
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig: plugin.HandshakeConfig{
			ProtocolVersion: wire.ProtocolVersion, MagicCookieKey: wire.HandshakeCookieKey, MagicCookieValue: wire.HandshakeCookieValue,
		},
		Plugins: plugin.PluginSet{wire.PluginName: p},
		GRPCServer: func(o []wire.ServerOption) *wire.Server {
			return plugin.DefaultGRPCServer(append(o, wire.ServerOptions(0)...))
		},
	})
}

// after runs a server and, once a signal has asked for it, something beside
// it. The files are those of the process, which the server later replaces.
func after(run func(), then func(out, err *os.File)) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGUSR1)
	out, err := os.Stdout, os.Stderr
	go func() {
		<-c
		then(out, err)
		_, _ = fmt.Fprintln(err, "done")
	}()
	run()
}

// printLate writes to what os.Stdout and os.Stderr have become: go-plugin's
// own streams over the connection.
func printLate(_, _ *os.File) {
	_, _ = fmt.Fprint(os.Stdout, strings.Repeat("z", 128<<10))
	_, _ = fmt.Fprintln(os.Stderr, "late words")
}

func writeLogs(_, err *os.File) {
	_, _ = io.WriteString(err, `{"@level":"warn","@message":"a\u001b[2Jb\nc","@module":"m","@timestamp":"1999-01-01T00:00:00Z","plugin":"other","n":3}`+"\n")
}

func printEnviron(_, err *os.File) {
	for _, entry := range os.Environ() {
		_, _ = fmt.Fprintln(err, "env "+entry)
	}
	dir, _ := os.Getwd()
	_, _ = fmt.Fprintln(err, "dir "+dir)
	in, _ := os.Readlink("/proc/self/fd/0")
	_, _ = fmt.Fprintln(err, "stdin "+in)
	limits, _ := os.ReadFile("/proc/self/limits")
	for line := range strings.Lines(string(limits)) {
		if strings.HasPrefix(line, "Max core") {
			_, _ = fmt.Fprintln(err, strings.Join(strings.Fields(line), " "))
		}
	}
	comm, _ := os.ReadFile("/proc/self/comm")
	_, _ = fmt.Fprintln(err, "comm "+string(comm))
}

// socketPath is a path where a plugin may make its socket.
func socketPath() string { return filepath.Join(os.Getenv("PLUGIN_UNIX_SOCKET_DIR"), "s") }

// startChildren starts programs that outlive this one: one of its group, one
// in a session of its own, and one that has dropped the mark besides. All of
// them keep its standard error open.
func startChildren() {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	for i, attr := range []*syscall.SysProcAttr{nil, newSession(), newSession()} {
		cmd := exec.CommandContext(context.Background(), self, modeArg, "sleeper")
		cmd.Stderr, cmd.SysProcAttr = os.Stderr, attr
		if i == 2 && os.Args[len(os.Args)-1] == "no-mark" {
			cmd.Env = []string{"A=B"}
		}
		if err := cmd.Start(); err != nil {
			panic(err)
		}
		fmt.Fprintf(os.Stderr, "child %d\n", cmd.Process.Pid)
	}
}

// litter leaves a directory that cannot be entered.
func litter() {
	dir := filepath.Join(os.Getenv("TMPDIR"), "closed")
	_ = os.MkdirAll(filepath.Join(dir, "inner"), 0o700)
	_ = os.Chmod(dir, 0)
}

// host starts a plugin, prints its number, and blocks.
func host() {
	tier, err := sandbox.ParseTier(os.Args[4])
	if err != nil {
		panic(err)
	}
	s := specFor(os.Args[5])
	s.RuntimeDir, s.Sandbox.Tier, s.Sandbox.Policy.Read = os.Args[3], tier, []string{"/"}
	s.Log = func(l proc.LogLine) { fmt.Println(l.Message) }
	p, err := proc.Start(context.Background(), s)
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	fmt.Println("plugin", p.PID(), p.Mark())
	block()
}

// specFor is the spec of the test binary in one of its modes.
func specFor(mode string, args ...string) proc.Spec {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return proc.Spec{Name: "tester", Path: self, Args: append([]string{modeArg, mode}, args...)}
}

// newSession puts a child into a session of its own.
func newSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// mute listens and shakes hands, and never answers.
func mute() {
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "unix", socketPath())
	if err != nil {
		panic(err)
	}
	defer func() { _ = l.Close() }()
	fmt.Println("1|1|unix|" + socketPath() + "|grpc|")
	_ = os.Stdout.Sync()
	block()
}
