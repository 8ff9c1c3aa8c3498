package runtime

import (
	"context"
	"fmt"
	"slices"

	"github.com/grapnelhq/grapnel/internal/engine/pool"
	"github.com/grapnelhq/grapnel/internal/engine/supervise"
	"github.com/grapnelhq/grapnel/phases"
)

var _ pool.Observer = observer{}

// Released is the result of [Engine.Release].
type Released struct {
	Plugin string `json:"plugin"`
	// From is the state that it was released from, State its state now: ready or degraded; "backoff" or "quarantined"
	// if it failed again; starting if the wait ended before.
	From  phases.PluginState `json:"from"`
	State phases.PluginState `json:"state"`
	// Code and Detail explain State; both are empty for a healthy plugin.
	Code   string `json:"code"`
	Detail string `json:"detail"`
	// Breakers are the subscriptions whose breakers were closed.
	Breakers []string `json:"breakers" jsonschema:"subscriptions whose breakers were closed"`
}

// Up reports whether the plugin takes calls.
func (r *Released) Up() bool {
	return r.State == phases.PluginReady || r.State == phases.PluginDegraded
}

// ReleaseError says why there is nothing to release.
type ReleaseError struct {
	// Unknown says that there is no such plugin.
	Unknown bool
	Message string
}

// Error implements error.
func (e *ReleaseError) Error() string { return e.Message }

// Release starts a plugin in quarantine or backoff at once, with its failures forgotten, and closes the breakers of
// its subscriptions; of a plugin that takes calls it only closes breakers. It waits until the start has succeeded or
// failed, as long as ctx and the time of a start allow; another failure is not an error. A [*ReleaseError] is for a
// plugin that is not declared, or that there is nothing to release from.
func (e *Engine) Release(ctx context.Context, plugin string) (*Released, error) {
	g, err := e.acquire()
	if err != nil {
		return nil, err
	}
	defer g.leave()
	in, ok := g.byName[plugin]
	if !ok {
		return nil, &ReleaseError{true, g.undeclared(plugin)}
	}
	before := in.Status()
	r := &Released{Plugin: plugin, From: phases.PluginState(before.State)}
	started := in.Release()
	if started || before.State.Up() {
		r.Breakers = g.closeBreakers(in)
	}
	if !started && len(r.Breakers) == 0 {
		return nil, &ReleaseError{Message: fmt.Sprintf("the plugin %s is %s, and none of its breakers is open: there is nothing to release it from", plugin, before.State)}
	}
	now := before
	if started {
		now = in.AwaitStart(ctx, before.Incarnation)
	}
	r.State, r.Code, r.Detail = phases.PluginState(now.State), now.Code, now.Detail
	if r.Breakers == nil {
		r.Breakers = []string{}
	}
	return r, nil
}

// closeBreakers closes the breakers of a plugin's subscriptions and names those that were not closed.
func (g *generation) closeBreakers(in *pool.Instance) []string {
	var closed []string
	for id, h := range g.planned.Load().hooks {
		if h.in == in && h.breaker.Reset() {
			closed = append(closed, id)
		}
	}
	slices.Sort(closed)
	return closed
}

// AwaitStarts waits until each plugin of the configuration in force is ready or has failed once, or ctx ends, for a host
// that [WaitRequired] has started early.
func (e *Engine) AwaitStarts(ctx context.Context) {
	g, err := e.acquire()
	if err != nil {
		return
	}
	defer g.leave()
	for _, in := range g.instances {
		_ = in.Wait(ctx) // what became of it is in its row
	}
}

func (e *Engine) newPool() *pool.Pool {
	h := e.opts.Health
	return pool.New(pool.Options{
		Logger: e.opts.Logger, Observer: observer{e}, Programs: e.opts.Builtins,
		Local:    func(plugin string) pool.Plugin { return e.opts.InProcess[plugin] },
		Inline:   func(plugin string) bool { return slices.Contains(e.opts.Inline, plugin) },
		Check:    func(d *phases.Description) error { return phases.ValidateDescription(d, e.table) },
		Services: e.services.Granted,
		Host:     e.hostOf,
		Health:   supervise.Health{Interval: h.Interval, Timeout: h.Timeout, Misses: h.Misses},
		Random:   e.opts.Random,
	})
}

func (e *Engine) hostOf(in *pool.Instance) phases.Host {
	if e.opts.Host != nil {
		return e.opts.Host(in.Declared.Name)
	}
	return &hostFor{engine: e, in: in}
}

type observer struct{ *Engine }

func (o observer) Changed(in *pool.Instance, st supervise.Status, words string) {
	o.emit(Event{Kind: EventPlugin, Plugin: in.Declared.Name, State: string(st.State), Code: st.Code, Message: st.Detail, Detail: words})
}

func (o observer) Described(in *pool.Instance, d *phases.Description) error {
	return o.described(in, d)
}

func (o observer) Configuring(inc *pool.Incarnation) func(*phases.Configuration, *phases.Description, error) {
	x := o.beginExchange(context.Background(), inc, ExchangeConfigure, 0, "")
	if x == nil {
		return nil
	}
	return func(c *phases.Configuration, d *phases.Description, err error) { x.configured(inc.Instance, c, d, err) }
}

func (o observer) Dropped(in *pool.Instance, why string) {
	o.emit(Event{Kind: EventDropped, Plugin: in.Declared.Name, Code: why})
}

func (o observer) Logged(in *pool.Instance, l pool.LogLine) {
	o.emit(Event{Kind: EventLog, Plugin: in.Declared.Name, State: l.Level.String(), Detail: l.Message, Count: l.Dropped})
}
