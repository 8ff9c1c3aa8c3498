//go:build unix

package badplugin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/sdk"
	"github.com/grapnelhq/grapnel/sdk/serve"
)

// Program is one run of the program.
type Program struct {
	// Mode is what it does wrong; Args are the mode's own.
	Mode string
	Args []string
	// Self are program and arguments that start it again in the mode that
	// follows.
	Self []string
	// Exit ends the process at once.
	Exit func(status int)

	// stdout and stderr are those of the process: the sdk replaces os.Stdout and
	// os.Stderr.
	stdout, stderr *os.File
}

// Modes lists the modes.
func Modes() []string {
	var names []string
	for name := range modes() {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Run runs the program and returns its exit status.
func (p Program) Run() int {
	run, ok := modes()[p.Mode]
	if !ok {
		_, _ = fmt.Fprintf(os.Stderr, "no mode %q\n", p.Mode)
		return 2
	}
	p.stdout, p.stderr = os.Stdout, os.Stderr
	if err := run(&p); err != nil {
		_, _ = fmt.Fprintln(p.stderr, err)
		return 1
	}
	return 0
}

// modes are the ways to be bad.
func modes() map[string]func(*Program) error {
	all := map[string]func(*Program) error{
		"sleeper":   block,
		"hang":      block,
		"mute":      (*Program).mute,
		"no-socket": (*Program).noSocket,
		"noise":     (*Program).noise,
		"version":   (*Program).otherVersion,
		"exit":      func(*Program) error { return errors.New("out of cheese") },
	}
	for _, part := range []map[string]handler{handlers(), wordHandlers(), greedyHandlers()} {
		for name, h := range part {
			all[name] = func(p *Program) error { return p.serve(h) }
		}
	}
	for _, part := range []map[string]rawAnswer{rawAnswers(), wordAnswers()} {
		for name, answer := range part {
			all[name] = func(p *Program) error { return p.serveRaw(answer) }
		}
	}
	maps.Copy(all, wholes())
	maps.Copy(all, starts())
	maps.Copy(all, greedyModes())
	all["stubborn"] = func(p *Program) error { return errors.Join(p.serve(stubborn), block(p)) }
	all["leaky"] = (*Program).leaky
	all["silent"] = (*Program).silent
	all["feature"] = (*Program).feature
	all["two-hooks"] = (*Program).twoHooks
	all["tools"] = (*Program).tools
	all["elsewhere"] = (*Program).elsewhere
	all["dribble-start"] = (*Program).dribbleStart
	all["hostile"] = (*Program).hostile
	return all
}

// block waits until the process is killed.
func block(*Program) error {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGHUP)
	<-c
	return nil
}

// socket is a path where a plugin may make its socket.
func socket() string { return filepath.Join(os.Getenv("PLUGIN_UNIX_SOCKET_DIR"), "s") }

func (p *Program) handshake(version int) error {
	_, err := fmt.Fprintf(p.stdout, "1|%d|unix|%s|grpc|\n", version, socket())
	return err
}

// mute shakes hands, listens, and says nothing.
func (p *Program) mute() error {
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "unix", socket())
	if err != nil {
		return err
	}
	defer func() { _ = l.Close() }()
	if err := p.handshake(1); err != nil {
		return err
	}
	return block(p)
}

// noSocket names a socket that is not there.
func (p *Program) noSocket() error {
	if err := p.handshake(1); err != nil {
		return err
	}
	return block(p)
}

// noise writes to standard output what belongs on standard error.
func (p *Program) noise() error {
	if _, err := io.WriteString(p.stdout, "\x1b[31mloading\x1b[0m the model\n"); err != nil {
		return err
	}
	return p.serve(good)
}

func (p *Program) otherVersion() error {
	if err := p.handshake(99); err != nil {
		return err
	}
	return block(p)
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

// feature needs what no host has.
func (p *Program) feature() error {
	return serve.Serve(&sdk.Plugin{Name: "bad", Version: "1.0.0", Requires: []string{"time_travel"}})
}

// counting adds a byte to the file that the arguments name by "count=", so that a
// test knows how often the hook was called, over all starts of the program.
func (p *Program) counting(h handler) sdk.Handler[phases.Input] {
	return func(ctx context.Context, c *sdk.Call, _ phases.Input) ([]phases.Contribution, error) {
		if path := p.arg("count"); path != "" {
			f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
			if err != nil {
				return nil, err
			}
			if _, err := f.WriteString("x"); err != nil {
				return nil, errors.Join(err, f.Close())
			}
			if err := f.Close(); err != nil {
				return nil, err
			}
		}
		return h(ctx, p, c)
	}
}

// arg returns the value of an argument NAME=VALUE.
func (p *Program) arg(name string) string {
	for _, a := range p.Args {
		if value, ok := strings.CutPrefix(a, name+"="); ok {
			return value
		}
	}
	return ""
}

// startChildren starts programs that outlive this one and keep its standard error
// open: one of its group, and one in a session of its own.
func (p *Program) startChildren(ctx context.Context) error {
	for _, session := range []bool{false, true} {
		cmd := exec.CommandContext(context.WithoutCancel(ctx), p.Self[0], append(p.Self[1:len(p.Self):len(p.Self)], "sleeper")...) //nolint:gosec // itself
		cmd.Stderr, cmd.SysProcAttr = p.stderr, &syscall.SysProcAttr{Setsid: session}
		if err := cmd.Start(); err != nil {
			return err
		}
		if _, err := fmt.Fprintf(p.stderr, "child %d\n", cmd.Process.Pid); err != nil {
			return err
		}
	}
	return nil
}
