package runtime

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/grapnelhq/grapnel/compiler"
	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/internal/engine/pool"
	"github.com/grapnelhq/grapnel/internal/engine/supervise"
	"github.com/grapnelhq/grapnel/internal/engine/turnstate"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
)

// load builds a generation: plugins started, waited for and planned. Those of prev with the same declaration are
// taken over. On error prev is as it was.
func (e *Engine) load(ctx context.Context, cfg *config.Config, prev *generation) (*generation, error) {
	if err := e.pool.Check(cfg); err != nil {
		return nil, err
	}
	e.mu.Lock()
	e.numbers++
	g := &generation{number: e.numbers, cfg: cfg, byName: map[string]*pool.Instance{}, pool: e.pool, idle: make(chan struct{})}
	e.mu.Unlock()
	var err error
	g.key = []byte(cfg.Manifest.FingerprintKey.Value)
	if g.head, g.grants, err = turnstate.Origin(cfg, manifest.Head{CompilerVersion: compiler.Version, Generation: g.number, Build: e.opts.Build}); err != nil {
		return nil, err
	}
	fresh := e.populate(g, prev)
	e.expect(g, &planned{}) // starts fail before there is a plan
	parked := prev.exclusive(fresh)
	if err := e.begin(ctx, g, fresh, parked); err != nil {
		for _, in := range parked {
			in.Unpark()
		}
		return nil, err
	}
	return g, nil
}

// populate fills a generation with instances and returns the new ones, which are not started yet.
func (e *Engine) populate(g, prev *generation) (fresh []*pool.Instance) {
	for _, p := range g.cfg.Plugins {
		in := prev.keeps(p)
		if in == nil {
			in = e.pool.Instance(p, g.requires(p.Name), e.awaits(g, p.Name))
			fresh = append(fresh, in)
		}
		g.instances = append(g.instances, in)
		g.byName[p.Name] = in
	}
	return fresh
}

// begin parks the exclusive predecessors, starts the fresh plugins, required ones first, and settles the generation.
// On error they are stopped.
func (e *Engine) begin(ctx context.Context, g *generation, fresh, parked []*pool.Instance) error {
	for _, in := range parked {
		if err := in.Park(ctx); err != nil {
			return err
		}
	}
	var required, optional []*pool.Instance
	for _, in := range fresh {
		if g.requires(in.Declared.Name) {
			required = append(required, in)
		} else {
			optional = append(optional, in)
		}
	}
	e.pool.Start(e.life, required, optional)
	if err := e.settle(ctx, g, fresh); err != nil {
		e.pool.Stop(fresh...)
		return err
	}
	return nil
}

// awaits reports whether settle waits for a fresh plugin.
func (e *Engine) awaits(g *generation, plugin string) bool {
	return e.current.Load() != nil || e.opts.WaitFor != WaitRequired || g.requires(plugin)
}

// settle waits for the fresh plugins and plans. What the operator got wrong is an error; a plugin that is down is
// not, unless it would replace one that is up, whose guards would be gone, or a required hook of a first start. A reload waits for all of them: hooks that
// are not known yet would be missing.
func (e *Engine) settle(ctx context.Context, g *generation, fresh []*pool.Instance) error {
	first := e.current.Load() == nil
	var refused []error
	for _, in := range fresh {
		if !e.awaits(g, in.Declared.Name) {
			continue
		}
		err := in.Wait(ctx)
		if ctx.Err() != nil {
			return fmt.Errorf("waiting for the plugin %s: %w", in.Declared.Name, context.Cause(ctx))
		}
		if rejected, ok := errors.AsType[*phases.ConfigError](err); ok {
			refused = append(refused, g.cfg.ErrorAt(in.Declared.Name, rejected))
			continue
		}
		if err != nil && !first && e.current.Load().hasHooks(in.Declared.Name) {
			return notUpError{g.cfg.PlanError(in.Declared.Name, "name", fmt.Sprintf("the plugin %s, which is up, does not come up with this configuration: %v", in.Declared.Name, err), nil)}
		}
		if id := g.required(in.Declared.Name); err != nil && first && id != "" && !e.opts.AllowRequiredDown {
			return g.cfg.PlanError(in.Declared.Name, "name", id+" is required (budgets.phases), and "+in.Unavailable().Message+"; Options.AllowRequiredDown starts without it", nil)
		}
	}
	if len(refused) > 0 {
		return errors.Join(refused...)
	}
	descriptions := make([]*phases.Description, len(g.instances))
	for i, in := range g.instances {
		descriptions[i] = in.Description()
	}
	return e.replan(g, descriptions, make([]*phases.Description, len(g.instances)))
}

// retireAfter is how long turns may go on with a replaced configuration.
const retireAfter = 60 * time.Second

// retire waits for the last turn of a generation, bounded, and stops the plugins that no other generation uses.
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
	g.dropped.Store(true)
	e.mu.Lock()
	e.inUse = slices.DeleteFunc(e.inUse, func(o *generation) bool { return o == g })
	kept := instancesOf(e.inUse)
	e.mu.Unlock()
	e.forgetStats(e.generationsInUse())
	e.pool.Stop(slices.DeleteFunc(slices.Clone(g.instances), func(in *pool.Instance) bool { return slices.Contains(kept, in) })...)
}

func instancesOf(generations []*generation) []*pool.Instance {
	var all []*pool.Instance
	for _, g := range generations {
		for _, in := range g.instances {
			if !slices.Contains(all, in) {
				all = append(all, in)
			}
		}
	}
	return all
}

// keeps returns the instance of an unchanged declaration, unless it is in quarantine: a reload is one of the ways out
// of it.
func (g *generation) keeps(p config.Plugin) *pool.Instance {
	if g == nil {
		return nil
	}
	in, ok := g.byName[p.Name]
	if !ok || in.Status().State == supervise.StateQuarantined {
		return nil
	}
	was := in.Declared
	was.Subscriptions, p.Subscriptions = nil, nil // they are the host's
	was.OnFailure, p.OnFailure = "", ""           // so is this
	if !reflect.DeepEqual(was, p) {
		return nil
	}
	return in
}

// exclusive returns the predecessors that must not run beside their successors.
func (g *generation) exclusive(fresh []*pool.Instance) []*pool.Instance {
	var old []*pool.Instance
	if g == nil {
		return nil
	}
	for _, in := range fresh {
		if p := g.byName[in.Declared.Name]; p != nil && in.Declared.Reload == pool.ReloadExclusive {
			old = append(old, p)
		}
	}
	return old
}

func (g *generation) requires(plugin string) bool { return g.required(plugin) != "" }

// required is a hook of a plugin that some phase requires; empty if there is none.
func (g *generation) required(plugin string) string {
	for _, b := range g.cfg.Budgets.Phases {
		if i := slices.IndexFunc(b.Require, func(id string) bool { return strings.HasPrefix(id, plugin+".") }); i >= 0 {
			return b.Require[i]
		}
	}
	return ""
}

// ErrNotUp is the error of a refused Reload: a plugin that is up did not come up with its new declaration. The same
// reload may succeed later.
var ErrNotUp = errors.New("a plugin that is up does not come up with its new declaration")

// notUpError is ErrNotUp with its place in the operator's file.
type notUpError struct{ error }

// Is implements the interface of errors.Is.
func (notUpError) Is(target error) bool { return target == ErrNotUp }

// Unwrap returns the placed error.
func (e notUpError) Unwrap() error { return e.error }

func (g *generation) hasHooks(plugin string) bool {
	in, ok := g.byName[plugin]
	if !ok {
		return false
	}
	d := in.Description()
	return d != nil && len(d.Hooks) > 0
}
