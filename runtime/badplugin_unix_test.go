//go:build unix

package runtime_test

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
	"sync/atomic"
	"syscall"

	"github.com/grapnelhq/grapnel/internal/wire"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/sdk"
	sdkserve "github.com/grapnelhq/grapnel/sdk/serve"
)

// badProgram is one run of a program that makes every mistake that plugins make, a mode at a time. docs/FAILURES.md is the
// table of mistakes, and TestRows has a case for each row; plugins that mean harm are TestHostile's. Its files are those of
// the process, which the sdk replaces.
type badProgram struct {
	Args           []string
	Stdout, Stderr *os.File

	crashes atomic.Int64 // counts the calls of crash
}

// overGRPC is an environment variable that keeps the program off the lane that its host offers.
const overGRPC = "GRAPNEL_TEST_GRPC"

// runBad runs the program and returns its exit status.
func runBad(mode string, args []string) int {
	if os.Getenv(overGRPC) != "" {
		_ = os.Unsetenv(wire.LaneKey) // which cannot fail
	}
	all := badModes()
	maps.Copy(all, ownModes())
	maps.Copy(all, hostileModes())
	run, ok := all[mode]
	if !ok {
		_, _ = fmt.Fprintf(os.Stderr, "no mode %q\n", mode)
		return 2
	}
	p := &badProgram{Args: args, Stdout: os.Stdout, Stderr: os.Stderr}
	if err := run(p); err != nil {
		_, _ = fmt.Fprintln(p.Stderr, err)
		return 1
	}
	return 0
}

func badModes() map[string]func(*badProgram) error {
	all := map[string]func(*badProgram) error{
		"sleeper":       (*badProgram).Block,
		"hang":          (*badProgram).Block,
		"mute":          func(p *badProgram) error { return p.listening(socketPath()) },
		"elsewhere":     func(p *badProgram) error { return p.listening(p.Arg("socket")) },
		"no-socket":     func(p *badProgram) error { return errors.Join(p.Handshake(1), p.Block()) },
		"version":       func(p *badProgram) error { return errors.Join(p.Handshake(99), p.Block()) },
		"exit":          func(*badProgram) error { return errors.New("out of cheese") },
		"noise":         (*badProgram).noise,
		"dribble-start": (*badProgram).dribbleStart,
		"stubborn":      func(p *badProgram) error { return errors.Join(p.serve(stubborn), p.Block()) },
		"silent":        (*badProgram).silent,
		"two-hooks":     (*badProgram).twoHooks,
		"feature": func(*badProgram) error {
			return sdkserve.Serve(&sdk.Plugin{Name: "bad", Version: "1.0.0", Requires: []string{"time_travel"}})
		},
	}
	for name, h := range badHandlers() {
		all[name] = func(p *badProgram) error { return p.serve(h) }
	}
	for name, answer := range rawAnswers() {
		all[name] = func(p *badProgram) error { return p.serveRaw(answer) }
	}
	return all
}

// Block waits until the process is killed.
func (*badProgram) Block() error {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGHUP)
	<-c
	return nil
}

// listenAt listens at an address.
func listenAt(network, addr string) (net.Listener, error) {
	return (&net.ListenConfig{}).Listen(context.Background(), network, addr)
}

// socketPath is a path where a plugin may make its socket.
func socketPath() string { return filepath.Join(os.Getenv("PLUGIN_UNIX_SOCKET_DIR"), "s") }

// Handshake announces [socketPath] with a version of the protocol.
func (p *badProgram) Handshake(version int) error {
	_, err := fmt.Fprintf(p.Stdout, "1|%d|unix|%s|grpc|\n", version, socketPath())
	return err
}

// listening listens, announces a socket, which may be another one, and says nothing.
func (p *badProgram) listening(announced string) error {
	l, err := listenAt("unix", socketPath())
	if err != nil {
		return err
	}
	defer func() { _ = l.Close() }()
	_, err = fmt.Fprintf(p.Stdout, "1|1|unix|%s|grpc|\n", announced)
	return errors.Join(err, p.Block())
}

// noise writes to standard output what belongs on standard error.
func (p *badProgram) noise() error {
	_, err := p.Stdout.WriteString("\x1b[31mloading\x1b[0m the model\n")
	return errors.Join(err, p.serve(good))
}

// serve serves one hook of turn.pre_prompt_compile, "h".
func (p *badProgram) serve(h badHandler) error {
	handler := func(h badHandler) sdk.Handler[phases.Input] {
		return func(ctx context.Context, c *sdk.Call, _ phases.Input) ([]phases.Contribution, error) {
			return h(ctx, p, c)
		}
	}
	return sdkserve.Serve(&sdk.Plugin{
		Name: "bad", Version: "1.0.0",
		Hooks: []sdk.Hook{{
			Name: "h", Kinds: []phases.Kind{phases.KindPromptSection, phases.KindAudit},
			Phase: phases.PrePromptCompile, Any: handler(h),
		}, {
			Name: "tool", Phase: phases.ToolPreCall, Any: handler(good),
		}},
	})
}

// Arg returns the value of an argument NAME=VALUE.
func (p *badProgram) Arg(name string) string {
	for _, a := range p.Args {
		if value, ok := strings.CutPrefix(a, name+"="); ok {
			return value
		}
	}
	return ""
}

// startChildren starts programs that outlive this one and keep its standard error
// open: one of its group, and one in a session of its own. The arguments stay, so that a test finds them by these.
func (p *badProgram) startChildren() error {
	for _, apart := range []bool{false, true} {
		cmd := exec.CommandContext(context.Background(), os.Args[0], slices.Concat([]string{asProgram, "sleeper"}, p.Args)...)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: apart}
		cmd.Stderr = p.Stderr
		if err := cmd.Start(); err != nil {
			return err
		}
		if _, err := fmt.Fprintf(p.Stderr, "child %d\n", cmd.Process.Pid); err != nil {
			return err
		}
	}
	return nil
}
