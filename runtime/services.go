package runtime

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/grapnelhq/grapnel/internal/engine/callctx"
	"github.com/grapnelhq/grapnel/internal/engine/hostservice"
	"github.com/grapnelhq/grapnel/internal/engine/pool"
	"github.com/grapnelhq/grapnel/internal/wire"
	"github.com/grapnelhq/grapnel/phases"
)

// invalidate forgets cached answers of one plugin: of the named subscriptions, of those under the named tags, or all.
func (e *Engine) invalidate(in *pool.Instance, what phases.Invalidation) {
	all := len(what.Subscriptions)+len(what.Tags) == 0
	for _, g := range e.generationsInUse() {
		for id, h := range g.planned.Load().hooks {
			if h.in == in && (all || slices.Contains(what.Subscriptions, id) ||
				slices.ContainsFunc(what.Tags, func(tag string) bool { return slices.Contains(h.tags, tag) })) {
				h.answers.Invalidate()
			}
		}
	}
}

// The services of a host.
type (
	// Service is one host service: its methods by name. Plugins call it by the grant "host".
	Service = hostservice.Service
	// Method is one method of a host service.
	Method = hostservice.Method
	// Caller says for whom a host service is called.
	Caller = hostservice.Caller
	// State keeps the values of the host service "state".
	State = hostservice.State
)

// codeStateEvicted means: a plugin keeps as much state as it may, so the oldest was evicted.
const codeStateEvicted = "state_evicted"

const maxHostCalls = 64

// newServices returns the engine's own services and the host's, which may replace them.
func (e *Engine) newServices() (hostservice.Services, error) {
	all := map[string]hostservice.Service{hostservice.ServiceState: hostservice.StateService(e.opts.State, e.stateEvicted)}
	if e.model != nil {
		if _, twice := e.opts.Services[hostservice.ServiceModel]; twice {
			return nil, fmt.Errorf("there are Options.Complete and a service %q in Options.Services: give one of them", hostservice.ServiceModel)
		}
		all[hostservice.ServiceModel] = e.model.Service()
	}
	maps.Copy(all, e.opts.Services)
	return hostservice.New(all)
}

func (e *Engine) stateEvicted(plugin string, n int) {
	e.emit(Event{
		Kind: EventDiagnostic, Plugin: plugin, State: string(phases.SeverityWarning), Code: codeStateEvicted,
		Message: fmt.Sprintf("the plugin keeps as much state as it may: the oldest values of %d sessions were evicted", n),
	})
}

type hostFor struct {
	engine *Engine
	in     *pool.Instance
	// running counts the running calls. The wire has its own bound; this one also holds for plugins inside the host.
	running atomic.Int32
}

var _ phases.Host = (*hostFor)(nil)

func (h *hostFor) Call(ctx context.Context, service, name string, params json.RawMessage) (json.RawMessage, error) {
	caller := hostservice.CallerOf(h.in.Declared.Name, nil)
	var run *hostRun
	if h.engine.recorded(service, name) {
		run = newHostRun(ctx, &h.engine.core, h.in, service+"."+name, params)
		caller = hostservice.CallerOf(caller.Plugin, run.account())
	}
	begin := time.Now()
	result, err := h.call(ctx, service, name, caller, params)
	if run != nil {
		run.settle(ctx, result, err)
	}
	h.reportHostCall(ctx, HostCall{Service: service, Method: name, Params: params, Result: result}, begin, err)
	return result, err
}

// recorded reports whether calls of a method leave rows in the ledger.
func (e *Engine) recorded(service, method string) bool {
	_, theirs := e.opts.Services[hostservice.ServiceModel]
	return service == hostservice.ServiceModel && method == hostservice.MethodComplete && !theirs
}

func (h *hostFor) call(ctx context.Context, service, name string, caller hostservice.Caller, params json.RawMessage) (json.RawMessage, error) {
	m, err := h.engine.services.Find(h.in.Declared.Grants.Host, caller.Plugin, service, name)
	if err != nil {
		return nil, err
	}
	if c := callctx.Of[site](ctx); c != nil {
		if c.Depth >= maxChain {
			return nil, phases.Errorf(phases.CauseOverloaded, "host calls are nested deeper than %d", maxChain)
		}
		caller.Context = c.Site.turn
	}
	if err := m.Check(params); err != nil {
		return nil, err
	}
	defer h.running.Add(-1)
	if h.running.Add(1) > maxHostCalls {
		return nil, phases.Errorf(phases.CauseOverloaded, "more than %d host calls are in flight", maxHostCalls)
	}
	result, err := m.Do(ctx, caller, params)
	if err == nil {
		return result, nil
	}
	level := slog.LevelWarn
	if phases.CodeOf(err) == phases.CauseBudgetExhausted {
		level = slog.LevelDebug // the service is well
	}
	h.engine.opts.Logger.Log(ctx, level, "a host service failed", "service", service, "method", name, "plugin", caller.Plugin, "error", phases.Whole(err))
	return nil, wire.ToPlugin(err)
}

// Invalidate implements phases.Host. Too many names count as all: forgetting too much is never wrong.
func (h *hostFor) Invalidate(_ context.Context, what phases.Invalidation) error {
	if len(what.Subscriptions)+len(what.Tags) > phases.MaxListed {
		what = phases.Invalidation{}
	}
	h.engine.invalidate(h.in, what)
	return nil
}

type hostRun struct {
	engine *core
	in     *pool.Instance
	// at is the call of the plugin in whose course it was made; nil for one on the plugin's own account, which is
	// only reported.
	at  *site
	row phases.Run
	// span is its place in the host's trace.
	span span
}

func newHostRun(ctx context.Context, e *core, in *pool.Instance, method string, params json.RawMessage) *hostRun {
	r := &hostRun{engine: e, in: in, row: phases.Run{
		Subscription: in.Declared.Name + "/" + method, Hook: method, Plugin: in.Declared.Name, Phase: phases.PhaseHostCall, Stage: phases.StageHost,
		BytesIn: len(params), Contributions: []string{}, Cut: []phases.Cut{},
	}}
	if d := in.Description(); d != nil {
		r.row.PluginVersion = d.Version
	}
	if c := callctx.Of[site](ctx); c != nil {
		r.at = &c.Site
		r.row.Subscription = r.at.subscription + "/" + method
		r.row.Generation, r.row.Incarnation = r.at.generation, r.at.incarnation
	}
	return r
}

// account is what a call of the model is charged to; nil without a call of the plugin.
func (r *hostRun) account() *hostservice.Account {
	if r.at == nil {
		return nil
	}
	return &hostservice.Account{
		State: r.at.state, Budget: r.in.Declared.Limits.Model, Run: &r.row,
		Begin: func(ctx context.Context) (context.Context, func()) {
			ctx, r.span = r.engine.beginRun(ctx, phases.Trace{}, &r.row)
			return ctx, r.span.done
		},
	}
}

// settle settles and reports the row. Calls that were not made leave one row for each reason: a plugin cannot fill
// the ledger with refusals.
func (r *hostRun) settle(ctx context.Context, result json.RawMessage, err error) {
	r.row.BytesOut, r.row.State = len(result), phases.StateSucceeded
	var failure *phases.Error
	if err != nil {
		failure = wire.ToPlugin(err)
		failRun(&r.row, failure)
	}
	if r.at != nil && !r.at.state.AddHostCall(&r.row) {
		return
	}
	row := r.row
	r.engine.report(ctx, &r.span, &row, failure)
}

// reportHostCall adds a host call to the exchange in whose course it was made, or reports it alone.
func (h *hostFor) reportHostCall(ctx context.Context, c HostCall, begin time.Time, err error) {
	e := h.engine
	var at *site
	if c := callctx.Of[site](ctx); c != nil {
		at = &c.Site
	}
	if e.opts.OnExchange == nil && (at == nil || at.exchange == nil) {
		return
	}
	c.TookMS, c.Params = milliseconds(time.Since(begin)), slices.Clone(c.Params)
	if err != nil {
		c.Result, c.Err = nil, codedError(wire.ToPlugin(err))
	}
	if at != nil && at.exchange.add(&c) {
		return
	}
	x := &Exchange{Kind: ExchangeHost, Plugin: h.in.Declared.Name, Begin: e.opts.Now(), TookMS: c.TookMS, HostCalls: []HostCall{c}}
	if at != nil {
		x.Subscription, x.Generation, x.Incarnation = at.subscription, at.generation, at.incarnation
	}
	// The start of a replaced process that still drains is not known here.
	if inc := h.in.Live(); inc != nil && (at == nil || at.incarnation == inc.Number) {
		x.Start, x.Incarnation = inc.Start, inc.Number
	}
	if d := h.in.Description(); d != nil {
		x.Version = d.Version
	}
	e.reportExchange(x)
}
