//go:build linux

package runtime_test

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

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/sdk"
	sdkserve "github.com/grapnelhq/grapnel/sdk/serve"
)

// modeRandom is a plugin that is good most of the time. The other modes are badProgram's.
const modeRandom = "random"

// randomly is the mode "random", whose argument is its seed.
func randomly(bad *badProgram) error {
	var seed uint64
	if len(bad.Args) > 0 {
		seed, _ = strconv.ParseUint(bad.Args[0], 10, 64) // any number will do
	}
	p := &rogue{
		// With the seed alone a start that draws its end would draw it each time.
		rng:    rand.New(rand.NewPCG(seed, uint64(os.Getpid()))),
		stderr: bad.Stderr,
	}
	if mode := p.start(); mode != "" {
		return badModes()[mode](bad)
	}
	return sdkserve.Serve(p.plugin())
}

// rogue is a plugin that misbehaves now and then.
type rogue struct {
	mu     sync.Mutex
	rng    *rand.Rand
	leaked [][]byte
	files  []*os.File

	stderr *os.File
}

// start draws what goes wrong before the plugin serves: a mode of badProgram, or "".
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

// handle answers, or does one of the faults first or instead.
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

// faults are what goes wrong in a call. One that returns nil is followed by the answer.
func (p *rogue) faults() []func(context.Context) error {
	deaf := func(context.Context) error { select {} }
	panics := func(context.Context) error { panic("a bug") }
	fail := func(context.Context) error { return errors.New("it did not work") }
	return []func(context.Context) error{
		p.crash, deaf, p.slow, p.slow, p.spin, p.flood, p.leak, p.leak, p.leak, panics, fail, fail, p.stop,
	}
}

func (p *rogue) crash(context.Context) error {
	_, _ = fmt.Fprintln(p.stderr, "last words")
	os.Exit(3)
	return errors.New("the process lives")
}

func (p *rogue) slow(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

// spin wastes time without looking at its context.
func (p *rogue) spin(context.Context) error {
	for end := time.Now().Add(20 * time.Millisecond); time.Now().Before(end); {
		p.draw(2)
	}
	return nil
}

func (p *rogue) flood(context.Context) error {
	_, err := p.stderr.WriteString(strings.Repeat(strings.Repeat("y", 99)+"\n", 3000))
	return err
}

// leak leaks memory, a descriptor and a goroutine.
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

// stop stops the whole process, rarely: it costs three health checks.
func (p *rogue) stop(ctx context.Context) error {
	if p.draw(4) > 0 {
		return p.slow(ctx)
	}
	if err := syscall.Kill(os.Getpid(), syscall.SIGSTOP); err != nil {
		return err
	}
	return p.slow(ctx)
}

// The plugins' hooks; some modes have the first only.
const (
	hookPrompt = "h"
	hookTool   = "tool"
)

// soakModes are badProgram's that serve more than a call without filling the machine.
func soakModes() []soakMode {
	var all []soakMode
	for _, name := range []string{"noise", "crash", "deaf", "slow", "stop", "stubborn", "orphans", "big", "long", "taken"} {
		all = append(all, soakMode{name, true})
	}
	for _, name := range []string{
		"exit", "hang", "mute", "no-socket", "version", "double", "late", "wrong-id", "stale", "garbage", "empty", "huge", "half", "not-utf8", "hang-up", "raw-good",
	} {
		all = append(all, soakMode{name, false})
	}
	return all
}

// soakMode is a mode of badProgram.
type soakMode struct {
	name string
	both bool // it has both hooks
}

// isBad reports whether plugin i is one of the third that misbehaves.
func isBad(i int) bool { return i%3 == 2 }

// pluginName says whether plugin i is good.
func pluginName(i int) string {
	if isBad(i) {
		return fmt.Sprintf("bad%02d", i)
	}
	return fmt.Sprintf("good%02d", i)
}

// declarer draws configurations, each from the one before.
type declarer struct {
	rng     *rand.Rand
	self    []string
	plugins []config.Plugin
}

func newDeclarer(o soakOptions) *declarer {
	d := &declarer{rng: rand.New(rand.NewPCG(o.seed, 1)), self: o.self}
	for i := range o.plugins {
		d.plugins = append(d.plugins, d.good(i, 0))
	}
	return d
}

// calm makes all plugins good; those that are keep their processes.
func (d *declarer) calm() *config.Config {
	for i := range d.plugins {
		if isBad(i) {
			d.plugins[i] = d.good(i, 0)
		}
	}
	return d.config()
}

// next replaces half of the bad plugins, all that are good for now, and rarely a good one.
func (d *declarer) next() *config.Config {
	for i := range d.plugins {
		switch {
		case !isBad(i):
			if d.rng.IntN(4*len(d.plugins)) == 0 {
				d.plugins[i] = d.good(i, d.rng.Uint32())
			}
		case d.plugins[i].Args[len(d.self)-1] == "good" || d.rng.IntN(2) == 0:
			d.plugins[i] = d.bad(i)
		}
	}
	return d.config()
}

// refused is a configuration that New and Reload refuse.
func (d *declarer) refused() *config.Config {
	cfg := d.config()
	cfg.Plugins = append(cfg.Plugins, cfg.Plugins[0])
	return cfg
}

// config is a configuration in which only the bad plugins have little time.
func (d *declarer) config() *config.Config {
	cfg := &config.Config{Version: 1, Plugins: append([]config.Plugin(nil), d.plugins...)}
	cfg.Budgets.Turn.Time = phases.Duration(2 * phaseTime)
	cfg.Budgets.Phases = map[phases.Phase]config.PhaseBudget{}
	for _, p := range []phases.Phase{phases.PrePromptCompile, phases.ToolPreCall} {
		cfg.Budgets.Phases[p] = config.PhaseBudget{Time: phases.Duration(phaseTime)}
	}
	return cfg
}

const (
	phaseTime = 20 * time.Second // more than the hooks need on a busy machine
	goodTime  = 10 * time.Second
	badTime   = 50 * time.Millisecond
	badStart  = time.Second // enough for most starts; a reload waits for the others
)

// good declares a good plugin; another round is another declaration.
func (d *declarer) good(i int, round uint32) config.Plugin {
	p := d.plugin(i, goodTime, true, "good", fmt.Sprintf("round=%d", round))
	p.Limits.Start = phases.Duration(goodTime)
	return p
}

// bad draws a plugin that misbehaves: half at random, half always in the same way.
func (d *declarer) bad(i int) config.Plugin {
	seed := strconv.FormatUint(d.rng.Uint64(), 10)
	if d.rng.IntN(2) == 0 {
		return d.plugin(i, badTime, true, modeRandom, seed)
	}
	all := soakModes()
	m := all[d.rng.IntN(len(all))]
	return d.plugin(i, badTime, m.both, m.name, "seed="+seed)
}

// plugin declares a process of this program.
func (d *declarer) plugin(i int, timeout time.Duration, both bool, args ...string) config.Plugin {
	all := []string{"*"}
	name := pluginName(i)
	p := config.Plugin{
		Name: name, Command: d.self[0], Path: d.self[0], Args: append(append([]string(nil), d.self[1:]...), args...), UnsafePath: true,
		Grants:        phases.Grants{Contribute: all, Sections: all, Policies: all, See: all},
		Limits:        config.Limits{Start: phases.Duration(badStart), Memory: 512 << 20},
		Subscriptions: map[string]phases.Override{},
	}
	if i%2 == 1 { // half of the good, and half of the bad
		p.Env.Set = map[string]config.Secret{overGRPC: {Value: "1"}}
	}
	o := phases.Override{Timeout: new(phases.Duration(timeout)), OnFailure: &phases.OnFailure{Default: phases.BestEffort}}
	if isBad(i) {
		o.Priority = new(-1) // who takes another's section loses it
	}
	p.Subscriptions[name+"."+hookPrompt] = o
	if both {
		p.Subscriptions[name+"."+hookTool] = o
	}
	return p
}
