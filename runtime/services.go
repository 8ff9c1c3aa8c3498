package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"runtime/debug"
	"slices"
	"sync/atomic"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/grapnelhq/grapnel/internal/wire"
	"github.com/grapnelhq/grapnel/phases"
)

// Service is one host service, which plugins may call by the grant "host": its
// methods by name.
type Service map[string]Method

// Method is one method of a host service.
type Method struct {
	// Doc says in a sentence what it does, for authors of plugins.
	Doc string
	// Params and Result are JSON Schemas. Parameters that do not fit never reach
	// Call; nil takes any. Results are not checked: they are the host's own.
	Params, Result json.RawMessage
	// Call answers. It runs concurrently, at most 64 times at once for one plugin,
	// with a context that carries the calling hook's deadline. Its parameters are
	// valid JSON of bounded depth, or nil where the plugin gave none and the schema
	// allows that. An error that is a *phases.Error reaches the plugin with its
	// code, others as "internal" without their text. A panic is one of those.
	Call func(ctx context.Context, caller Caller, params json.RawMessage) (json.RawMessage, error)

	_ struct{}
}

// Caller says for whom a host service is called.
type Caller struct {
	// Plugin is the operator's name of the calling plugin.
	Plugin string
	// Context is that of the dispatch or tool call which the plugin is working
	// on; zero when it calls on its own account.
	Context phases.Context

	// run is the row of a call that leaves one in the ledger; nil for others.
	run *hostRun
}

// maxHostCalls is how many host calls of one plugin may run at once.
const maxHostCalls = 64

// services are the host's services, ready to be called.
type services map[string]map[string]*method

// method is a Method with its schema ready.
type method struct {
	call   func(ctx context.Context, caller Caller, params json.RawMessage) (json.RawMessage, error)
	params *jsonschema.Resolved
}

// newServices checks the host's services.
func newServices(list map[string]Service) (services, error) {
	all := services{}
	for name, s := range list {
		all[name] = map[string]*method{}
		for m, declared := range s {
			ready, err := newMethod(declared)
			if err != nil {
				return nil, fmt.Errorf("host service %q: method %q: %w", name, m, err)
			}
			all[name][m] = ready
		}
	}
	return all, nil
}

func newMethod(m Method) (*method, error) {
	if m.Call == nil {
		return nil, errors.New("it has no function to call")
	}
	if _, err := resolveSchema(m.Result); err != nil {
		return nil, fmt.Errorf("schema of the result: %w", err)
	}
	params, err := resolveSchema(m.Params)
	if err != nil {
		return nil, fmt.Errorf("schema of the parameters: %w", err)
	}
	return &method{m.Call, params}, nil
}

// resolveSchema reads a JSON Schema; nil for none.
func resolveSchema(schema json.RawMessage) (*jsonschema.Resolved, error) {
	if len(schema) == 0 {
		return nil, nil
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(schema, &s); err != nil {
		return nil, err
	}
	return s.Resolve(nil)
}

// mayCall reports whether the grants allow a method: by the name of its service,
// or by SERVICE.METHOD.
func mayCall(grants []string, service, method string) bool {
	return phases.Allows(grants, service) || phases.Allows(grants, service+"."+method)
}

// granted are the names of the services of which a plugin may call a method.
func (s services) granted(grants []string) []string {
	var names []string
	for name, methods := range s {
		if phases.Allows(grants, name) || slices.ContainsFunc(keys(methods), func(m string) bool { return mayCall(grants, name, m) }) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// find returns a method, or says what there is.
func (s services) find(service, name string) (*method, error) {
	methods, ok := s[service]
	if !ok {
		return nil, phases.Errorf(phases.CauseUnavailable, "this host has no service %q%s", service, phases.DidYouMean(service, keys(s)))
	}
	m, ok := methods[name]
	if !ok {
		return nil, phases.Errorf(phases.CauseUnavailable, "the host service %q has no method %q%s; it has %v",
			service, name, phases.DidYouMean(name, keys(methods)), slices.Sorted(maps.Keys(methods)))
	}
	return m, nil
}

// check says what is wrong with parameters.
func (m *method) check(params json.RawMessage) error {
	value := any(map[string]any{}) // who gives none is measured as if it gave {}
	if len(params) > 0 {
		if err := phases.CheckJSON(params, phases.MaxJSONDepth); err != nil {
			return phases.Errorf(phases.CauseInvalidReply, "params: %w", err)
		}
		if m.params == nil {
			return nil
		}
		if err := json.Unmarshal(params, &value); err != nil {
			return phases.Errorf(phases.CauseInvalidReply, "params: %w", err)
		}
	}
	if m.params == nil {
		return nil
	}
	if err := m.params.Validate(value); err != nil {
		return phases.Errorf(phases.CauseInvalidReply, "params: %w", placed(m.params, value, err))
	}
	return nil
}

// hostCalls counts the host calls of one plugin that run. The wire has a bound
// of its own; this one also holds for plugins inside the host.
type hostCalls struct{ running atomic.Int32 }

func (n *hostCalls) enter() bool {
	if n.running.Add(1) <= maxHostCalls {
		return true
	}
	n.leave()
	return false
}

func (n *hostCalls) leave() { n.running.Add(-1) }

// hostFor answers one plugin's calls to its host.
type hostFor struct{ in *instance }

var _ phases.Host = (*hostFor)(nil)

// Call implements phases.Host: by grant, within bounds, with parameters that fit.
func (h *hostFor) Call(ctx context.Context, service, name string, params json.RawMessage) (json.RawMessage, error) {
	caller := Caller{Plugin: h.in.declared.Name}
	if h.in.engine.recorded(service, name) {
		caller.run = newHostRun(ctx, h.in, service+"."+name, params)
	}
	begin := time.Now()
	result, err := h.call(ctx, service, name, caller, params)
	if caller.run != nil {
		caller.run.settle(ctx, result, err)
	}
	h.tellHostCall(ctx, HostCall{Service: service, Method: name, Params: params, Result: result}, begin, err)
	return result, err
}

// recorded reports whether calls of a method leave rows in the ledger.
func (e *Engine) recorded(service, method string) bool {
	_, theirs := e.opts.Services[serviceModel]
	return service == serviceModel && method == methodComplete && !theirs
}

func (h *hostFor) call(ctx context.Context, service, name string, caller Caller, params json.RawMessage) (json.RawMessage, error) {
	if !mayCall(h.in.declared.Grants.Host, service, name) {
		return nil, phases.Errorf(phases.CauseForbidden, "the plugin %s has no grant for the host service %q, nor for %q", caller.Plugin, service, service+"."+name)
	}
	m, err := h.in.engine.services.find(service, name)
	if err != nil {
		return nil, err
	}
	if c := chainOf(ctx); c != nil {
		if c.depth >= maxChain {
			return nil, phases.Errorf(phases.CauseOverloaded, "host calls are nested deeper than %d", maxChain)
		}
		caller.Context = c.turn
	}
	if err := m.check(params); err != nil {
		return nil, err
	}
	if !h.in.hostCalls.enter() {
		return nil, phases.Errorf(phases.CauseOverloaded, "more than %d host calls are in flight", maxHostCalls)
	}
	defer h.in.hostCalls.leave()
	result, err := h.guarded(ctx, m, caller, params)
	if err != nil {
		level := slog.LevelWarn
		if phases.CodeOf(err) == phases.CauseBudgetExhausted {
			level = slog.LevelDebug // the service is well
		}
		h.in.engine.opts.Logger.Log(ctx, level, "a host service failed", "service", service, "method", name, "plugin", caller.Plugin, "error", phases.Whole(err))
		return nil, wire.ToPlugin(err)
	}
	return result, nil
}

// guarded makes a panic of the service an error.
func (h *hostFor) guarded(ctx context.Context, m *method, caller Caller, params json.RawMessage) (result json.RawMessage, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v\n%s", r, debug.Stack())
		}
	}()
	return m.call(ctx, caller, params)
}

// Invalidate implements phases.Host. More names than a search should take are taken
// for all: forgetting too much is never wrong.
func (h *hostFor) Invalidate(_ context.Context, what phases.Invalidation) error {
	if len(what.Subscriptions)+len(what.Tags) > phases.MaxListed {
		what = phases.Invalidation{}
	}
	h.in.engine.invalidate(h.in, what)
	return nil
}

// prepareServices makes the host's services and the engine's own ready.
func (e *Engine) prepareServices() (err error) {
	all := map[string]Service{serviceState: e.stateService()}
	if e.model != nil {
		if _, twice := e.opts.Services[serviceModel]; twice {
			return fmt.Errorf("there are Options.Complete and a service %q in Options.Services: give one of them", serviceModel)
		}
		all[serviceModel] = e.model.service()
	}
	maps.Copy(all, e.opts.Services)
	e.services, err = newServices(all)
	return err
}
