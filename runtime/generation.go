package runtime

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/internal/merge"
	"github.com/grapnelhq/grapnel/internal/plan"
	"github.com/grapnelhq/grapnel/internal/supervise"
	"github.com/grapnelhq/grapnel/phases"
)

// retireAfter is how long turns may go on with a configuration that was
// replaced.
const retireAfter = 60 * time.Second

// generation is one loaded configuration with its plugins and its plan.
type generation struct {
	number    uint64
	cfg       *config.Config
	instances []*instance
	byName    map[string]*instance
	// planned is replaced when a plugin describes itself for the first time after
	// the load.
	planned atomic.Pointer[planned]
	// planning makes plans one after the other: the last one knows most.
	planning sync.Mutex

	mu    sync.Mutex
	users int
	// retired is set when another generation is in force; idle is closed when
	// the last user has gone after that.
	retired bool
	idle    chan struct{}
}

// planned is a plan with what dispatch needs beside it.
type planned struct {
	plan        *plan.Plan
	diagnostics []phases.Diagnostic
	hooks       map[string]*hook
	// descriptions are those that the plan was made of.
	descriptions []*phases.Description
}

// hook is the runtime's side of one subscription.
type hook struct {
	in      *instance
	breaker *supervise.Breaker
	answers *answers
	tags    []string
	merge   merge.Hook
	see     []string
	// seesAll, seesPolicy and seesContext are grants looked up in advance.
	seesAll, seesPolicy, seesContext, seesMetadata bool
}

// load builds a generation: plugins started, waited for and planned. Those of
// prev whose declaration is the same are taken over.
func (e *Engine) load(ctx context.Context, cfg *config.Config, prev *generation) (*generation, error) {
	if err := e.checkDeclared(cfg); err != nil {
		return nil, err
	}
	e.mu.Lock()
	e.numbers++
	g := &generation{number: e.numbers, cfg: cfg, byName: map[string]*instance{}, idle: make(chan struct{})}
	e.mu.Unlock()
	var fresh []*instance
	for _, p := range cfg.Plugins {
		in := prev.keeps(p)
		if in == nil {
			var err error
			if in, err = e.newInstance(p, g.requires(p.Name)); err != nil {
				return nil, err // nothing has been started yet
			}
			fresh = append(fresh, in)
		}
		g.instances = append(g.instances, in)
		g.byName[p.Name] = in
	}
	for _, in := range fresh {
		in.run(e.life)
	}
	if err := e.settle(ctx, g, fresh); err != nil {
		stopAll(fresh)
		return nil, err
	}
	return g, nil
}

// checkDeclared refuses plugins that nobody knows how to start.
func (e *Engine) checkDeclared(cfg *config.Config) error {
	for i, p := range cfg.Plugins {
		_, inProcess := e.opts.InProcess[p.Name]
		_, builtin := e.opts.Builtins[p.Builtin]
		switch {
		case p.Builtin != "" && !builtin && !inProcess:
			return cfg.Errorf(fmt.Sprintf("plugins.%d.builtin", i), "unknown built-in plugin %q%s", p.Builtin, phases.DidYouMean(p.Builtin, keys(e.opts.Builtins)))
		case p.Builtin == "" && p.Command == "" && !inProcess:
			return cfg.Errorf(fmt.Sprintf("plugins.%d", i), "plugin %q has neither builtin nor command", p.Name)
		}
	}
	return nil
}

// keeps returns the instance of an unchanged declaration.
func (g *generation) keeps(p config.Plugin) *instance {
	if g == nil {
		return nil
	}
	in, ok := g.byName[p.Name]
	if !ok || !sameProcess(in.declared, p) {
		return nil
	}
	return in
}

// sameProcess reports whether a running process serves the new declaration as
// well: everything is the same but the subscriptions, which are the host's.
func sameProcess(a, b config.Plugin) bool {
	a.Subscriptions, b.Subscriptions = nil, nil
	return reflect.DeepEqual(a, b)
}

// requires reports whether a subscription of the plugin is required.
func (g *generation) requires(plugin string) bool {
	for _, b := range g.cfg.Budgets.Phases {
		if slices.ContainsFunc(b.Require, func(id string) bool { return strings.HasPrefix(id, plugin+".") }) {
			return true
		}
	}
	return false
}

// settle waits for the fresh plugins and plans. What the operator got wrong is
// an error; a plugin that is down is not.
func (e *Engine) settle(ctx context.Context, g *generation, fresh []*instance) error {
	for _, in := range fresh {
		if e.opts.WaitFor == WaitRequired && !g.requires(in.declared.Name) {
			continue
		}
		err := in.sup.Wait(ctx)
		if ctx.Err() != nil {
			return fmt.Errorf("waiting for the plugin %s: %w", in.declared.Name, context.Cause(ctx))
		}
		if rejected, ok := errors.AsType[*phases.ConfigError](err); ok {
			return g.cfg.ErrorAt(in.declared.Name, rejected)
		}
	}
	return e.replan(g)
}

// described is called when an instance has its first description. Generations
// that are in force already are planned anew.
func (e *Engine) described(in *instance) error {
	e.mu.Lock()
	generations := slices.Clone(e.generations)
	e.mu.Unlock()
	for _, g := range generations {
		if slices.Contains(g.instances, in) {
			if err := e.replan(g); err != nil {
				return phases.Errorf(phases.CauseInvalidReply, "its hooks do not fit the running plan: %w", err)
			}
		}
	}
	return nil
}

// replan builds the plan of what is described now. Breakers are kept.
func (e *Engine) replan(g *generation) error {
	g.planning.Lock()
	defer g.planning.Unlock()
	next := &planned{hooks: map[string]*hook{}}
	plugins := make([]plan.Plugin, len(g.cfg.Plugins))
	for i, p := range g.cfg.Plugins {
		d := g.instances[i].description()
		next.descriptions = append(next.descriptions, d)
		plugins[i] = plan.Plugin{Name: p.Name, Description: d, Grants: p.Grants, Overrides: p.Subscriptions, Command: p.Command != ""}
	}
	budgets := map[phases.Phase]plan.Budget{}
	for phase, b := range g.cfg.Budgets.Phases {
		budgets[phase] = plan.Budget{Time: b.Time.D(), Require: b.Require}
	}
	p, diagnostics, err := plan.Build(plugins, plan.Options{Table: e.table, Budgets: budgets})
	if err != nil {
		return locate(g.cfg, err)
	}
	next.plan, next.diagnostics = p, diagnostics
	old := g.planned.Load()
	for _, phase := range p.Phases() {
		for _, sub := range phase.Expected {
			next.hooks[sub.ID] = e.newHook(g, sub, old)
		}
	}
	g.planned.Store(next)
	return nil
}

// newHook prepares the runtime's side of a subscription.
func (e *Engine) newHook(g *generation, sub *plan.Subscription, old *planned) *hook {
	grants := sub.Grants
	h := &hook{
		in: g.byName[sub.Plugin],
		merge: merge.Hook{
			Subscription: sub.ID, Hook: sub.Name, Plugin: sub.Plugin, PluginVersion: sub.PluginVersion, Priority: sub.Priority,
			Kinds: sub.Kinds, Budget: sub.Budget, Grants: grants, Shadow: sub.Shadow, Visibility: sub.Visibility,
		},
		see:          grants.See,
		seesAll:      phases.Allows(grants.See, "*"),
		seesPolicy:   phases.Allows(grants.See, "policy"),
		seesContext:  phases.Allows(grants.See, "context"),
		seesMetadata: phases.Allows(grants.See, "metadata"),
	}
	if sub.Cache != nil {
		h.tags = sub.Cache.Tags
	}
	if old != nil && old.hooks[sub.ID] != nil {
		h.breaker, h.answers = old.hooks[sub.ID].breaker, old.hooks[sub.ID].answers
	} else {
		h.breaker, h.answers = supervise.NewBreaker(supervise.BreakerOptions{}), &answers{kept: recent[answer]{limit: maxAnswers}}
	}
	return h
}

// locate gives planner problems the places of the operator's file.
func locate(cfg *config.Config, err error) error {
	problems, ok := errors.AsType[*plan.Problems](err)
	if !ok {
		return err
	}
	var all []error
	for _, p := range problems.List {
		all = append(all, cfg.PlanError(p.Plugin, p.Field, p.Message))
	}
	return errors.Join(all...)
}

// rows is the plugins' part of the ledger.
func (g *generation) rows() []phases.PluginRow {
	rows := make([]phases.PluginRow, len(g.instances))
	for i, in := range g.instances {
		rows[i] = in.row(g.number)
	}
	return rows
}

// acquire returns the generation in force and keeps it until its leave is
// called, which the caller does exactly once. It fails on a closed engine.
func (e *Engine) acquire() (*generation, error) {
	if e.isClosed() {
		return nil, errClosed
	}
	return e.inForce(), nil
}

// inForce is acquire for work that goes on while the engine is being closed.
func (e *Engine) inForce() *generation {
	for {
		if g := e.current.Load(); g.enter() {
			return g
		}
	}
}

func (g *generation) enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.retired && g.users == 0 {
		return false
	}
	g.users++
	return true
}

func (g *generation) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.users--
	if g.retired && g.users == 0 {
		close(g.idle)
	}
}

// retire waits for the last turn of a generation, bounded, and stops the plugins
// that no other generation uses.
func (e *Engine) retire(g *generation) {
	g.mu.Lock()
	g.retired = true
	if g.users == 0 {
		close(g.idle)
	}
	g.mu.Unlock()
	timer := time.NewTimer(retireAfter)
	defer timer.Stop()
	select {
	case <-g.idle:
	case <-timer.C:
	case <-e.life.Done():
		return // Close stops all plugins
	}
	e.mu.Lock()
	e.generations = slices.DeleteFunc(e.generations, func(o *generation) bool { return o == g })
	kept := instancesOf(e.generations)
	e.mu.Unlock()
	for _, in := range g.instances {
		if !slices.Contains(kept, in) {
			in.shutdown()
		}
	}
}

// instancesOf lists the instances of several generations, each once.
func instancesOf(generations []*generation) []*instance {
	var all []*instance
	for _, g := range generations {
		for _, in := range g.instances {
			if !slices.Contains(all, in) {
				all = append(all, in)
			}
		}
	}
	return all
}

// stopAll stops instances that run, all at the same time.
func stopAll(ins []*instance) {
	var wait sync.WaitGroup
	for _, in := range ins {
		wait.Go(in.shutdown)
	}
	wait.Wait()
}

func keys[V any](m map[string]V) []string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}
