package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/sdk"
	sdkserve "github.com/grapnelhq/grapnel/sdk/serve"
)

// hostile is the test binary as a plugin that means harm, where the modes of badplugin
// are mistakes. Its argument is the behaviour.
type hostile struct{ *badProgram }

// hostileModes is the mode "hostile" for badplugin.
func hostileModes() map[string]func(*badProgram) error {
	return map[string]func(*badProgram) error{"hostile": func(p *badProgram) error {
		if len(p.Args) == 0 || behaviours()[p.Args[0]] == nil {
			return fmt.Errorf("no behaviour %q", p.Args)
		}
		return behaviours()[p.Args[0]](&hostile{p})
	}}
}

// hostileBehaviours lists the behaviours.
func hostileBehaviours() []string { return slices.Sorted(maps.Keys(behaviours())) }

func behaviours() map[string]func(*hostile) error {
	all := map[string]func(*hostile) error{}
	for _, part := range []map[string]func(*hostile) error{
		handshakes(), http2Attacks(), frameAttacks(), describeAttacks(), answerAttacks(), hostCallAttacks(),
	} {
		for name, run := range part {
			if all[name] != nil {
				panic("two behaviours are called " + name)
			}
			all[name] = run
		}
	}
	return all
}

// did reports what came of an attack, most often "done". A test waits for it.
func (p *hostile) did(what string) { _, _ = fmt.Fprintln(p.Stderr, "did "+what) }

// serveAttack serves one hook, "h", that attacks when it is called first, reports
// that, and answers.
func (p *hostile) serveAttack(attack func(ctx context.Context, c *sdk.Call)) error {
	var once sync.Once
	return sdkserve.Serve(&sdk.Plugin{
		Name: "hostile", Version: "1.0.0",
		Hooks: []sdk.Hook{{
			Name: "h", Phase: hostilePhase, Kinds: harmlessKinds(),
			Any: func(ctx context.Context, c *sdk.Call, _ phases.Input) ([]phases.Contribution, error) {
				once.Do(func() { attack(ctx, c) })
				return sdk.Reply(&phases.PromptSection{SectionID: badSection, Content: strings.Repeat("x", 10)})
			},
		}},
		Tools: []sdk.Tool{{Tool: phases.Tool{Name: "job", Description: "does nothing"}, Call: func(context.Context, *sdk.ToolCall) (*phases.ToolResult, error) {
			return sdk.Text("done"), nil
		}}},
	})
}

// hostilePhase is the phase of the mode's hooks: one of the host's own that takes all
// kinds of contributions.
const hostilePhase = "x.hostile.all"

// handshakes are attacks on the start: what comes around a good line.
func handshakes() map[string]func(*hostile) error {
	return map[string]func(*hostile) error{
		"shake-twice":      (*hostile).shakeTwice,
		"shake-by-child":   (*hostile).shakeByChild,
		"shake-then-exec":  (*hostile).shakeThenExec,
		"shake-then-exit":  func(p *hostile) error { return p.shake(shaken) },
		"shake-no-newline": func(p *hostile) error { return errors.Join(p.shake(strings.Repeat("1|", 1<<20)), p.Block()) },
		"shake-and-flood":  (*hostile).shakeAndFlood,
	}
}

// shaken is the handshake of a socket that nobody listens on.
const shaken = "1|1|unix|/nowhere|grpc\n"

// shake writes to standard output and says so.
func (p *hostile) shake(text string) error {
	p.did("done")
	_, err := p.Stdout.WriteString(text)
	return err
}

// shakeTwice writes its handshake and another one, of another socket.
func (p *hostile) shakeTwice() error {
	if _, err := p.Stdout.WriteString("1|1|unix|" + socketPath() + "|grpc\n" + shaken); err != nil {
		return err
	}
	p.did("done")
	return p.Block()
}

// shakeByChild lets a child serve in its place, and waits.
func (p *hostile) shakeByChild() error {
	cmd := p.Child("good")
	cmd.Stdout, cmd.Stderr = p.Stdout, p.Stderr
	if err := cmd.Start(); err != nil {
		return err
	}
	p.did("done")
	return errors.Join(cmd.Wait(), p.Block())
}

// shakeThenExec becomes another program right after the handshake.
func (p *hostile) shakeThenExec() error {
	l, err := listenAt("unix", socketPath())
	if err != nil {
		return err
	}
	defer func() { _ = l.Close() }()
	if err := p.Handshake(1); err != nil {
		return err
	}
	p.did("done")
	return syscall.Exec(os.Args[0], []string{os.Args[0], asProgram, "sleeper"}, os.Environ())
}

// accepting shakes hands and hands each connection to serve, one after the other.
func (p *hostile) accepting(serve func(conn net.Conn) error) error {
	l, err := listenAt("unix", socketPath())
	if err != nil {
		return err
	}
	if err := p.Handshake(1); err != nil {
		return err
	}
	for first := true; ; first = false {
		conn, err := l.Accept()
		if err != nil {
			return errors.Join(err, p.Block())
		}
		if first {
			p.did("done")
		}
		_ = serve(conn)
		_ = conn.Close()
	}
}

// shakeAndFlood serves, and writes to standard output all the time.
func (p *hostile) shakeAndFlood() error {
	return p.serveAttack(func(context.Context, *sdk.Call) {
		chunk := strings.Repeat("1|1|unix|/x|grpc\n", 4000)
		for range 50 {
			_, _ = p.Stdout.WriteString(chunk)
		}
		p.did("done")
	})
}
