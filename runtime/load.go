package runtime

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/internal/supervise"
	"github.com/grapnelhq/grapnel/phases"
)

// load builds a generation: plugins started, waited for and planned. Those of
// prev whose declaration is the same are taken over. On error everything of prev
// is as it was.
func (e *Engine) load(ctx context.Context, cfg *config.Config, prev *generation) (*generation, error) {
	if err := e.checkDeclared(cfg); err != nil {
		return nil, err
	}
	if err := e.checkConfined(cfg); err != nil {
		return nil, err
	}
	e.mu.Lock()
	e.numbers++
	g := &generation{number: e.numbers, cfg: cfg, byName: map[string]*instance{}, idle: make(chan struct{})}
	e.mu.Unlock()
	fresh, err := e.populate(g, prev)
	if err != nil {
		return nil, err
	}
	e.tally.know(g, &planned{}) // starts fail before there is a plan
	parked := prev.exclusive(fresh)
	if err := e.begin(ctx, g, fresh, parked); err != nil {
		for _, in := range parked {
			in.entrance.open()
		}
		return nil, err
	}
	return g, nil
}

// populate fills a generation with instances and returns those that are new; they
// are not started yet.
func (e *Engine) populate(g, prev *generation) (fresh []*instance, err error) {
	for _, p := range g.cfg.Plugins {
		in := prev.keeps(p)
		if in == nil {
			if in, err = e.newInstance(p, g.requires(p.Name)); err != nil {
				return nil, err
			}
			fresh = append(fresh, in)
		}
		g.instances = append(g.instances, in)
		g.byName[p.Name] = in
	}
	return fresh, nil
}

// begin makes room for the fresh plugins, starts them and settles the
// generation. On error they are stopped.
func (e *Engine) begin(ctx context.Context, g *generation, fresh, parked []*instance) error {
	for _, in := range parked {
		if err := in.park(ctx); err != nil {
			return err
		}
	}
	e.startAll(g, fresh)
	if err := e.settle(ctx, g, fresh); err != nil {
		stopAll(fresh)
		return err
	}
	return nil
}

// startAll starts plugins, required ones first: they take the first slots of the
// gate.
func (e *Engine) startAll(g *generation, fresh []*instance) {
	var required, optional []*instance
	for _, in := range fresh {
		if g.requires(in.declared.Name) {
			required = append(required, in)
		} else {
			optional = append(optional, in)
		}
	}
	for _, in := range required {
		in.run(e.life)
	}
	for _, in := range required {
		select {
		case <-in.entrance.asked:
		case <-in.done:
		}
	}
	for _, in := range optional {
		in.run(e.life)
	}
}

// checkDeclared refuses plugins that nobody knows how to start.
func (e *Engine) checkDeclared(cfg *config.Config) error {
	for _, p := range cfg.Plugins {
		_, inProcess := e.opts.InProcess[p.Name]
		_, builtin := e.opts.Builtins[p.Builtin]
		switch {
		case p.Builtin != "" && !builtin && !inProcess:
			return cfg.PlanError(p.Name, "builtin", fmt.Sprintf("unknown built-in plugin %q%s", p.Builtin, phases.DidYouMean(p.Builtin, keys(e.opts.Builtins))))
		case p.Builtin == "" && p.Command == "" && !inProcess:
			return cfg.PlanError(p.Name, "", "it has neither builtin nor command")
		}
	}
	return nil
}

// keeps returns the instance of an unchanged declaration. One in quarantine is not
// kept: a reload is one of the ways out of it.
func (g *generation) keeps(p config.Plugin) *instance {
	if g == nil {
		return nil
	}
	in, ok := g.byName[p.Name]
	if !ok || !sameProcess(in.declared, p) || in.sup.Status().State == supervise.StateQuarantined {
		return nil
	}
	return in
}

// exclusive returns the predecessors that must not run beside their successors.
func (g *generation) exclusive(fresh []*instance) []*instance {
	var old []*instance
	if g == nil {
		return nil
	}
	for _, in := range fresh {
		if p := g.byName[in.declared.Name]; p != nil && in.declared.Reload == reloadExclusive {
			old = append(old, p)
		}
	}
	return old
}

// reloadExclusive is the word of the configuration for plugins of which no two
// processes may run.
const reloadExclusive = "exclusive"

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

// ErrNotUp is the error of a Reload that was refused because a plugin which is up did
// not come up with its new declaration. The same reload may go well later.
var ErrNotUp = errors.New("a plugin that is up does not come up with its new declaration")

// notUpError is ErrNotUp with its place in the operator's file.
type notUpError struct{ error }

// Is implements the interface of errors.Is.
func (notUpError) Is(target error) bool { return target == ErrNotUp }

// Unwrap returns the placed error.
func (e notUpError) Unwrap() error { return e.error }

// hasHooks reports whether the plan has hooks that a plugin described.
func (g *generation) hasHooks(plugin string) bool {
	in, ok := g.byName[plugin]
	if !ok {
		return false
	}
	d := in.description()
	return d != nil && len(d.Hooks) > 0
}

// settle waits for the fresh plugins and plans. What the operator got wrong is
// an error; a plugin that is down is not, unless it would take the place of one that
// is up, whose guards would be gone. A reload waits for all of them, as what
// is in force serves meanwhile: hooks that are not known yet, guards among them,
// would be missing else.
func (e *Engine) settle(ctx context.Context, g *generation, fresh []*instance) error {
	first := e.current.Load() == nil
	for _, in := range fresh {
		if first && e.opts.WaitFor == WaitRequired && !g.requires(in.declared.Name) {
			continue
		}
		err := in.sup.Wait(ctx)
		if ctx.Err() != nil {
			return fmt.Errorf("waiting for the plugin %s: %w", in.declared.Name, context.Cause(ctx))
		}
		if rejected, ok := errors.AsType[*phases.ConfigError](err); ok {
			return g.cfg.ErrorAt(in.declared.Name, rejected)
		}
		if err != nil && !first && e.current.Load().hasHooks(in.declared.Name) {
			return notUpError{g.cfg.PlanError(in.declared.Name, "name", fmt.Sprintf("the plugin %s, which is up, does not come up with this configuration: %v", in.declared.Name, err))}
		}
	}
	descriptions := make([]*phases.Description, len(g.instances))
	for i, in := range g.instances {
		descriptions[i] = in.description()
	}
	return e.replan(g, descriptions, make([]*phases.Description, len(g.instances)))
}

func keys[V any](m map[string]V) []string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}
