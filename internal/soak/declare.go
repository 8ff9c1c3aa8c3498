//go:build linux

package soak

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/phases"
)

// The hooks that the plugins have: one of the prompt, one that may deny a call of
// a tool. Some modes have the first only.
const (
	hookPrompt = "h"
	hookTool   = "tool"
)

// modes are those of package badplugin that a run uses: all that serve more than
// a call without filling the machine.
func modes() []mode {
	var all []mode
	for _, name := range []string{"noise", "crash", "deaf", "slow", "stop", "stubborn", "orphans", "big", "long", "taken"} {
		all = append(all, mode{name, true})
	}
	for _, name := range []string{
		"exit", "hang", "mute", "no-socket", "version", "double", "late", "wrong-id", "stale", "garbage", "empty", "huge", "half", "not-utf8", "hang-up", "raw-good",
	} {
		all = append(all, mode{name, false})
	}
	return all
}

// mode is a mode of package badplugin.
type mode struct {
	name string
	both bool // it has both hooks
}

// isBad reports whether the plugin of a number is one of the third that
// misbehaves.
func isBad(i int) bool { return i%3 == 2 }

// pluginName is the name of the plugin of a number, by which it is known whether
// it is good.
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

func newDeclarer(o Options) *declarer {
	d := &declarer{rng: rand.New(rand.NewPCG(o.Seed, 1)), self: o.Self}
	for i := range o.Plugins {
		d.plugins = append(d.plugins, d.good(i, 0))
	}
	return d
}

// calm makes all plugins good ones. Those that are stay as they are, and so do
// their processes.
func (d *declarer) calm() *config.Config {
	for i := range d.plugins {
		if isBad(i) {
			d.plugins[i] = d.good(i, 0)
		}
	}
	return d.config()
}

// next replaces half of the bad plugins, or all where they are good for the time
// being, and now and then a good one.
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

// refused is a configuration that cannot be put in force.
func (d *declarer) refused() *config.Config {
	cfg := d.config()
	cfg.Plugins = append(cfg.Plugins, cfg.Plugins[0])
	return cfg
}

// config is a configuration in which only the bad ones have little time.
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
	// phaseTime is more than the hooks need on a busy machine; goodTime is the
	// good ones', badTime that of those that will not answer.
	phaseTime = 20 * time.Second
	goodTime  = 10 * time.Second
	badTime   = 50 * time.Millisecond
	// badStart is enough for most starts; a reload waits for those that never end.
	badStart = time.Second
)

// good is a plugin that does as it should; another round is another declaration.
func (d *declarer) good(i int, round uint32) config.Plugin {
	p := d.plugin(i, goodTime, true, "good", fmt.Sprintf("round=%d", round))
	p.Limits.Start = phases.Duration(goodTime)
	return p
}

// bad draws a plugin that misbehaves: each second one at random, others always in
// the same way.
func (d *declarer) bad(i int) config.Plugin {
	seed := strconv.FormatUint(d.rng.Uint64(), 10)
	if d.rng.IntN(2) == 0 {
		return d.plugin(i, badTime, true, modeRandom, seed)
	}
	all := modes()
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
