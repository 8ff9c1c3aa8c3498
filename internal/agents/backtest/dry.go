package backtest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/internal/proc/sandbox"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

// Dryness says what a dry run allows.
type Dryness struct {
	// Net leaves plugins the network that they have.
	Net bool
	// Unconfined names plugins that run as they are declared.
	Unconfined []string
}

// NotRun is a plugin that takes no part in a dry run.
type NotRun struct {
	Plugin string `json:"plugin"`
	Why    string `json:"why"`
}

// owners are built-in plugins with effects that a sandbox does not undo. readers write nothing and use no network.
//
//nolint:gochecknoglobals // constants
var (
	owners = map[string]string{
		"memory": "it has a database of its own, which a dry run would change",
		"mcp":    "it starts servers, and judges no calls",
	}
	readers = []string{"agentsdoc", "cedar", "fileguard", "scripted", "skills"}
)

// Dry returns the configuration for a dry run: without plugins that can decide nothing, and with the others
// in a sandbox that lets them read what they may, write only to their private directory, and use no network. A plugin that the
// system cannot hold back is not in it, unless it is known to be harmless.
func Dry(cfg *config.Config, o Dryness) (*config.Config, []NotRun) {
	dry, without := *cfg, []NotRun{}
	dry.Plugins, dry.Manifest.KeepText, dry.Manifest.KeepInputs = nil, false, ""
	unreachable := sandbox.Probe().Check(sandbox.Policy{Net: sandbox.Net{All: o.Net}})
	for _, p := range cfg.Plugins {
		if why := keptOut(&p, o.Unconfined, unreachable); why != "" {
			without = append(without, NotRun{p.Name, why})
			continue
		}
		if !slices.Contains(o.Unconfined, p.Name) {
			confine(&p, o.Net, unreachable == nil)
		}
		dry.Plugins = append(dry.Plugins, p)
	}
	dry.Budgets.Phases = maps.Clone(cfg.Budgets.Phases)
	for phase, b := range dry.Budgets.Phases {
		b.Require = slices.DeleteFunc(slices.Clone(b.Require), func(id string) bool {
			return slices.ContainsFunc(without, func(n NotRun) bool { return strings.HasPrefix(id, n.Plugin+".") })
		})
		dry.Budgets.Phases[phase] = b
	}
	return &dry, without
}

// Judges reports whether a configuration has a plugin that may decide about calls, by its grants.
func Judges(cfg *config.Config) bool {
	return slices.ContainsFunc(cfg.Plugins, func(p config.Plugin) bool {
		return phases.Allows(p.Grants.Contribute, string(phases.KindDecision)) || phases.Allows(p.Grants.Contribute, string(phases.KindRewrite))
	})
}

// keptOut says why a plugin is not started; empty if it is.
func keptOut(p *config.Plugin, unconfined []string, unreachable error) string {
	decides := slices.ContainsFunc([]phases.Kind{phases.KindDecision, phases.KindRewrite, phases.KindPolicy, phases.KindPromptContext},
		func(k phases.Kind) bool { return phases.Allows(p.Grants.Contribute, string(k)) })
	switch {
	case !decides:
		return "it can decide nothing about calls, by its grants"
	case slices.Contains(unconfined, p.Name):
		return ""
	case owners[p.Builtin] != "":
		return owners[p.Builtin]
	case unreachable != nil && !slices.Contains(readers, p.Builtin):
		return fmt.Sprintf("nothing would keep it from writing and from the network (%v); --unconfined %s runs it nevertheless", unreachable, p.Name)
	}
	return ""
}

// confine takes writing and the network from a plugin.
func confine(p *config.Plugin, net, sandboxed bool) {
	p.Grants.Write = nil
	switch tier, _ := p.Tier(); {
	case !sandboxed:
		p.Sandbox, p.Grants.Read, p.Grants.Net = "", nil, nil
		return
	case tier == "T0":
		p.Sandbox, p.Grants.Read = "T1", []string{"*"}
		if net {
			p.Grants.Net = []string{"*"}
		}
	}
	if !net {
		p.Grants.Net = nil
	}
}

// Queue drops background work, and counts it: hooks that only observe, and jobs of plugins.
type Queue struct{ Dropped atomic.Int64 }

var _ runtime.Queue = (*Queue)(nil)

// Add implements [runtime.Queue].
func (q *Queue) Add(context.Context, runtime.Job) error { q.Dropped.Add(1); return nil }

// Serve implements [runtime.Queue].
func (*Queue) Serve(ctx context.Context, _ func(context.Context, runtime.Attempt) runtime.JobResult) error {
	<-ctx.Done()
	return context.Cause(ctx)
}

// Idle implements [runtime.Queue].
func (*Queue) Idle(context.Context) error { return nil }
