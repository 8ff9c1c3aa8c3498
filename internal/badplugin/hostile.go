//go:build unix

package badplugin

import (
	"context"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/sdk"
	"github.com/grapnelhq/grapnel/sdk/serve"
)

// Hostile lists the behaviours of the mode "hostile": what a plugin does that means
// harm, where the modes of [Modes] are mistakes. The first argument of the mode is
// the behaviour, the others say what there is to attack: "canary=" a directory,
// "host=" a process, and so on.
func Hostile() []string { return slices.Sorted(maps.Keys(behaviours())) }

// behaviours are those of the mode "hostile".
func behaviours() map[string]func(*Program) error {
	all := map[string]func(*Program) error{}
	for _, part := range []map[string]func(*Program) error{
		handshakes(), http2Attacks(), frameAttacks(), describeAttacks(), answerAttacks(), hostCallAttacks(), processAttacks(), directoryAttacks(), reachAttacks(),
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

// hostile runs one behaviour.
func (p *Program) hostile() error {
	if len(p.Args) == 0 || behaviours()[p.Args[0]] == nil {
		return fmt.Errorf("no behaviour %q", p.Args)
	}
	return behaviours()[p.Args[0]](p)
}

// did reports what came of an attack: "done", "ok", "denied". A test waits for it.
func (p *Program) did(what string) { _, _ = fmt.Fprintln(p.stderr, "did "+what) }

// attempt reports whether an attack was possible.
func (p *Program) attempt(err error) {
	if err != nil {
		p.did("denied " + err.Error())
		return
	}
	p.did("ok")
}

// serveAttack serves one hook, "h", that attacks when it is called first, reports
// that, and answers.
func (p *Program) serveAttack(attack func(ctx context.Context, c *sdk.Call)) error {
	var once sync.Once
	return serve.Serve(p.attacker(func(ctx context.Context, _ *Program, c *sdk.Call) ([]phases.Contribution, error) {
		once.Do(func() { attack(ctx, c) })
		return text(section, 10)
	}))
}

// HostilePhase is the phase of the mode's hooks: one of the host's own that takes all
// kinds of contributions.
const HostilePhase = "x.hostile.all"

// attacker is a plugin with one hook, and a tool.
func (p *Program) attacker(h handler) *sdk.Plugin {
	return &sdk.Plugin{
		Name: "hostile", Version: "1.0.0",
		Hooks: []sdk.Hook{{
			Name: "h", Phase: HostilePhase, Kinds: harmlessKinds(),
			Any: func(ctx context.Context, c *sdk.Call, _ phases.Input) ([]phases.Contribution, error) {
				return h(ctx, p, c)
			},
		}},
		Tools: []sdk.Tool{{Tool: phases.Tool{Name: "job", Description: "does nothing"}, Call: func(context.Context, *sdk.ToolCall) (*phases.ToolResult, error) {
			return sdk.Text("done"), nil
		}}},
	}
}

// listen listens on the socket in the private directory.
func listen() (net.Listener, error) {
	return (&net.ListenConfig{}).Listen(context.Background(), "unix", socket())
}

// child is this program again, in another mode. The arguments stay, so that a test
// finds it by them.
func (p *Program) child(mode string, args ...string) *exec.Cmd {
	args = slices.Concat(p.Self[1:], []string{mode}, args, p.Args)
	cmd := exec.CommandContext(context.Background(), p.Self[0], args...) //nolint:gosec // itself
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	return cmd
}

// environWithout is the environment but for some variables.
func environWithout(names ...string) []string {
	return slices.DeleteFunc(os.Environ(), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.Contains(names, name)
	})
}
