//go:build unix

package badplugin

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/grapnelhq/grapnel/internal/wire"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/sdk"
	"github.com/grapnelhq/grapnel/sdk/serve"
)

// Program is one run of the program.
type Program struct {
	Mode string
	Args []string
	Self []string                        // Self are program and arguments that start it again in the mode that follows
	Exit func(status int)                // Exit ends the process at once
	More map[string]func(*Program) error // More are modes of the caller's own
	// Stdout and Stderr are those of the process, which the sdk replaces. Run sets them.
	Stdout, Stderr *os.File
}

// Modes lists the modes.
func Modes() []string { return slices.Sorted(maps.Keys(modes())) }

// OverGRPC is an environment variable that keeps the program off the lane that its host offers.
const OverGRPC = "GRAPNEL_TEST_GRPC"

// KeepOffLane does what OverGRPC asks for.
func KeepOffLane() {
	if os.Getenv(OverGRPC) != "" {
		_ = os.Unsetenv(wire.LaneKey) // which cannot fail
	}
}

// Run runs the program and returns its exit status.
func (p Program) Run() int {
	KeepOffLane()
	all := modes()
	maps.Copy(all, p.More)
	run, ok := all[p.Mode]
	if !ok {
		_, _ = fmt.Fprintf(os.Stderr, "no mode %q\n", p.Mode)
		return 2
	}
	p.Stdout, p.Stderr = os.Stdout, os.Stderr
	if err := run(&p); err != nil {
		_, _ = fmt.Fprintln(p.Stderr, err)
		return 1
	}
	return 0
}

func modes() map[string]func(*Program) error {
	all := map[string]func(*Program) error{
		"sleeper":       (*Program).Block,
		"hang":          (*Program).Block,
		"mute":          func(p *Program) error { return p.listening(Socket()) },
		"elsewhere":     func(p *Program) error { return p.listening(p.Arg("socket")) },
		"no-socket":     func(p *Program) error { return errors.Join(p.Handshake(1), p.Block()) },
		"version":       func(p *Program) error { return errors.Join(p.Handshake(99), p.Block()) },
		"exit":          func(*Program) error { return errors.New("out of cheese") },
		"noise":         (*Program).noise,
		"dribble-start": (*Program).dribbleStart,
		"stubborn":      func(p *Program) error { return errors.Join(p.serve(stubborn), p.Block()) },
		"silent":        (*Program).silent,
		"two-hooks":     (*Program).twoHooks,
		"feature": func(*Program) error {
			return serve.Serve(&sdk.Plugin{Name: "bad", Version: "1.0.0", Requires: []string{"time_travel"}})
		},
		"herd":         (*Program).herd,
		"ghost":        (*Program).ghost,
		"memory-start": func(p *Program) error { return Keep(context.Background(), p.fillUp()) },
		"filler":       func(p *Program) error { return Keep(context.Background(), p.fillUp()) },
	}
	for name, h := range handlers() {
		all[name] = func(p *Program) error { return p.serve(h) }
	}
	for name, answer := range rawAnswers() {
		all[name] = func(p *Program) error { return p.serveRaw(answer) }
	}
	return all
}

// Block waits until the process is killed.
func (*Program) Block() error {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGHUP)
	<-c
	return nil
}

// Listen listens at an address.
func Listen(network, addr string) (net.Listener, error) {
	return (&net.ListenConfig{}).Listen(context.Background(), network, addr)
}

// Socket is a path where a plugin may make its socket.
func Socket() string { return filepath.Join(os.Getenv("PLUGIN_UNIX_SOCKET_DIR"), "s") }

// Handshake announces [Socket] with a version of the protocol.
func (p *Program) Handshake(version int) error {
	_, err := fmt.Fprintf(p.Stdout, "1|%d|unix|%s|grpc|\n", version, Socket())
	return err
}

// listening listens, announces a socket, which may be another one, and says nothing.
func (p *Program) listening(announced string) error {
	l, err := Listen("unix", Socket())
	if err != nil {
		return err
	}
	defer func() { _ = l.Close() }()
	_, err = fmt.Fprintf(p.Stdout, "1|1|unix|%s|grpc|\n", announced)
	return errors.Join(err, p.Block())
}

// noise writes to standard output what belongs on standard error.
func (p *Program) noise() error {
	_, err := p.Stdout.WriteString("\x1b[31mloading\x1b[0m the model\n")
	return errors.Join(err, p.serve(good))
}

// serve serves one hook of turn.pre_prompt_compile, "h".
func (p *Program) serve(h handler) error {
	return serve.Serve(&sdk.Plugin{
		Name: "bad", Version: "1.0.0",
		Hooks: []sdk.Hook{{
			Name: "h", Kinds: []phases.Kind{phases.KindPromptSection, phases.KindAudit}, Idempotent: slices.Contains(p.Args, "idempotent"),
			Phase: phases.PrePromptCompile, Any: p.counting(h),
		}, {
			Name: "tool", Phase: phases.ToolPreCall, Any: p.counting(good),
		}},
	})
}

// counting adds a byte per call to the file of the argument "count=", so that a test
// knows how often the hook was called, over all starts of the program.
func (p *Program) counting(h handler) sdk.Handler[phases.Input] {
	return func(ctx context.Context, c *sdk.Call, _ phases.Input) ([]phases.Contribution, error) {
		if path := p.Arg("count"); path != "" {
			if err := appendTo(path, "x"); err != nil {
				return nil, err
			}
		}
		return h(ctx, p, c)
	}
}

func appendTo(path, text string) error {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// Arg returns the value of an argument NAME=VALUE.
func (p *Program) Arg(name string) string {
	for _, a := range p.Args {
		if value, ok := strings.CutPrefix(a, name+"="); ok {
			return value
		}
	}
	return ""
}

// Child is this program again, in another mode. The arguments stay, so that a test finds it by them.
func (p *Program) Child(mode string, args ...string) *exec.Cmd {
	args = slices.Concat(p.Self[1:], []string{mode}, args, p.Args)
	cmd := exec.CommandContext(context.Background(), p.Self[0], args...) //nolint:gosec // itself
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	return cmd
}

// Apart is Child in a session of its own.
func (p *Program) Apart(mode string, args ...string) *exec.Cmd {
	cmd := p.Child(mode, args...)
	cmd.SysProcAttr.Setsid = true
	return cmd
}

// startChildren starts programs that outlive this one and keep its standard error
// open: one of its group, and one in a session of its own.
func (p *Program) startChildren() error {
	return errors.Join(p.startChild(p.Child("sleeper")), p.startChild(p.Apart("sleeper")))
}

// startChild starts a child that holds standard error, and reports its number there.
func (p *Program) startChild(cmd *exec.Cmd) error {
	cmd.Stderr = p.Stderr
	if err := cmd.Start(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(p.Stderr, "child %d\n", cmd.Process.Pid)
	return err
}
