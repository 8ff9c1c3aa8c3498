//go:build linux

package soak

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/grapnelhq/grapnel/internal/badplugin"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/sdk"
	"github.com/grapnelhq/grapnel/sdk/serve"
)

// modeRandom is a plugin that is good most of the time. The other modes are those
// of package badplugin.
const modeRandom = "random"

// Plugin is the program of all plugins of a run. The arguments are those behind
// self, which starts it: a mode, and for the random one its seed. It returns the
// exit status; exit ends the process at once.
func Plugin(self, args []string, exit func(status int)) int {
	if len(args) == 0 {
		return 2
	}
	if args[0] != modeRandom {
		return badplugin.Program{Mode: args[0], Args: args[1:], Self: self, Exit: exit}.Run()
	}
	var seed uint64
	if len(args) > 1 {
		seed, _ = strconv.ParseUint(args[1], 10, 64) // any number will do
	}
	p := &rogue{
		// A start that drew its end from the seed alone would draw it each time.
		rng:    rand.New(rand.NewPCG(seed, uint64(os.Getpid()))), //nolint:gosec // a process id is no negative number
		stderr: os.Stderr, exit: exit,
	}
	if mode := p.start(); mode != "" {
		return badplugin.Program{Mode: mode, Self: self, Exit: exit}.Run()
	}
	if err := serve.Serve(p.plugin()); err != nil {
		_, _ = fmt.Fprintln(p.stderr, err)
		return 1
	}
	return 0
}

// rogue is a plugin that does now and then what it should not.
type rogue struct {
	mu  sync.Mutex
	rng *rand.Rand
	// leaked is what it never gives back.
	leaked [][]byte
	files  []*os.File

	stderr *os.File
	exit   func(status int)
}

// start draws what goes wrong before the plugin serves: a mode of package
// badplugin, "" for nothing.
func (p *rogue) start() string {
	switch n := p.draw(100); {
	case n < 8:
		return "exit"
	case n < 10:
		return "hang"
	case n < 12:
		return "noise"
	}
	return ""
}

// draw returns a random number below n.
func (p *rogue) draw(n int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.rng.IntN(n)
}

func (p *rogue) plugin() *sdk.Plugin {
	return &sdk.Plugin{
		Name: "rogue", Version: "1.0.0",
		Hooks: []sdk.Hook{{
			Name: hookPrompt, Phase: phases.PrePromptCompile, Kinds: []phases.Kind{phases.KindPromptSection}, Any: p.handle,
		}, {
			Name: hookTool, Phase: phases.ToolPreCall, Kinds: []phases.Kind{phases.KindDecision}, Any: p.handle,
		}},
	}
}

// oneIn is how many calls go well for one that does not.
const oneIn = 40

// handle answers as it should, or does one of the faults first or instead.
func (p *rogue) handle(ctx context.Context, c *sdk.Call, _ phases.Input) ([]phases.Contribution, error) {
	if p.draw(oneIn) == 0 {
		faults := p.faults()
		if err := faults[p.draw(len(faults))](ctx); err != nil {
			return nil, err
		}
	}
	if c.Phase == phases.ToolPreCall {
		if p.draw(4) == 0 {
			return sdk.Reply(&phases.Decision{Verdict: phases.VerdictDeny, Reason: "not on this day"})
		}
		return nil, nil
	}
	name, _, _ := strings.Cut(c.Subscription, ".")
	chars := 40
	switch p.draw(4 * oneIn) {
	case 0:
		chars = 30_000 // is cut
	case 1:
		chars = 5 << 20 // more than a frame
	case 2:
		return sdk.Reply(&phases.PromptSection{SectionID: "good00", Title: "another's", Content: "taken"})
	case 3:
		return sdk.Reply(&phases.Policy{Key: "undeclared", Value: json.RawMessage("[")})
	}
	return sdk.Reply(&phases.PromptSection{SectionID: name, Title: name, Content: strings.Repeat("x", chars)})
}

// faults are what goes wrong in a call. One that returns nil is followed by the
// answer.
func (p *rogue) faults() []func(context.Context) error {
	return []func(context.Context) error{
		p.crash, p.deaf, p.slow, p.slow, p.spin, p.flood, p.leak, p.leak, p.leak, p.panics, p.fail, p.fail, p.stop,
	}
}

func (p *rogue) crash(context.Context) error {
	_, _ = fmt.Fprintln(p.stderr, "last words")
	p.exit(3)
	return errors.New("the process lives")
}

// deaf never answers.
func (p *rogue) deaf(context.Context) error { select {} }

// slow answers when its time is over.
func (p *rogue) slow(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

// spin works for nothing, and does not look at its context.
func (p *rogue) spin(context.Context) error {
	for end := time.Now().Add(20 * time.Millisecond); time.Now().Before(end); {
		p.draw(2)
	}
	return nil
}

// flood logs more lines than anybody wants.
func (p *rogue) flood(context.Context) error {
	_, err := p.stderr.WriteString(strings.Repeat(strings.Repeat("y", 99)+"\n", 3000))
	return err
}

// leak keeps memory, a descriptor and a goroutine for ever.
func (p *rogue) leak(context.Context) error {
	f, err := os.Open(os.DevNull)
	if err != nil {
		return err
	}
	p.mu.Lock()
	p.leaked = append(p.leaked, []byte(strings.Repeat("z", 256<<10)))
	p.files = append(p.files, f)
	p.mu.Unlock()
	go func() { select {} }()
	return nil
}

func (p *rogue) panics(context.Context) error { panic("a bug") }

func (p *rogue) fail(context.Context) error { return errors.New("it did not work") }

// stop stops the whole process, now and then: it costs three health checks.
func (p *rogue) stop(ctx context.Context) error {
	if p.draw(4) > 0 {
		return p.slow(ctx)
	}
	if err := syscall.Kill(os.Getpid(), syscall.SIGSTOP); err != nil {
		return err
	}
	return p.slow(ctx)
}
