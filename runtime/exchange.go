package runtime

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/grapnelhq/grapnel/internal/wire"
	"github.com/grapnelhq/grapnel/phases"
)

// ExchangeKind says what an Exchange was.
type ExchangeKind string

// The kinds of exchanges.
const (
	// ExchangeConfigure is the configuration of a plugin that has just been started,
	// or whose session was opened anew.
	ExchangeConfigure ExchangeKind = "configure"
	// ExchangeDispatch is one call of one hook, ExchangeTool one of a tool.
	ExchangeDispatch ExchangeKind = "dispatch"
	ExchangeTool     ExchangeKind = "tool"
	// ExchangeHost is a host call in the course of no other exchange: one that a
	// plugin made on its own account, or after its call had been left.
	ExchangeHost ExchangeKind = "host"
)

// Exchange is what one plugin was sent once, and what it answered: before anything
// of it is checked, merged or cut. Each attempt is one; an answer from memory, and a
// call that was refused before it was sent, is none.
type Exchange struct {
	Kind ExchangeKind
	// Plugin is the operator's name; Version and SHA256 are those of the ledger.
	Plugin, Version, SHA256 string
	// Start numbers the starts of all plugins of one engine: exchanges of one start
	// went to one process under one configuration. It is 0 for an ExchangeHost of a
	// process that has been replaced.
	Start                   uint64
	Generation, Incarnation uint64
	// Subscription is the hook's full id, or PLUGIN.TOOL.
	Subscription string
	// Begin is by the engine's clock, Took by the monotonic one.
	Begin time.Time
	Took  time.Duration

	// Configuration and Description are those of ExchangeConfigure.
	Configuration *ExchangeConfiguration
	Description   *phases.Description
	// Dispatch and Result are those of ExchangeDispatch. What was withheld from the
	// plugin is withheld here.
	Dispatch *phases.Dispatch
	Result   *phases.Result
	// ToolCall and ToolResult are those of ExchangeTool.
	ToolCall   *phases.ToolCall
	ToolResult *phases.ToolResult
	// Err is why there is no answer; nil if there is one.
	Err *phases.Error
	// HostCalls are what the plugin has asked of the host meanwhile, in the order
	// of the answers.
	HostCalls []HostCall

	_ struct{}
}

// ExchangeConfiguration is what a plugin was configured with, without its secrets.
type ExchangeConfiguration struct {
	Instance string
	// Config has "***" where Secrets, by JSON pointer, name the variable that the
	// value was taken from.
	Config   json.RawMessage
	Secrets  map[string]string
	Services []string
}

// HostCall is one call of a host service, and its answer as the plugin got it.
type HostCall struct {
	Service, Method string
	Params          json.RawMessage
	Result          json.RawMessage
	Err             *phases.Error
	Took            time.Duration
}

// CodeNotRecorded is the code of the event that tells, once, that
// Options.OnExchange has failed.
const CodeNotRecorded = "not_recorded"

// exchanges is the engine's side of exchanges.
type exchanges struct {
	starts atomic.Uint64
	// failed makes the first failure of OnExchange the only one that is told.
	failed atomic.Bool
}

// exchange gathers what is told of one call of a plugin. Nil is the usual one, of
// which nobody is told.
type exchange struct {
	engine *Engine
	told   Exchange
	began  time.Time

	mu sync.Mutex
	// over says that it has been told: a host call that ends later is told alone.
	over bool
}

// beginExchange begins to gather, if there is somebody to tell.
func (inc *incarnation) beginExchange(kind ExchangeKind, generation uint64, subscription string) *exchange {
	in := inc.in
	if in.engine.opts.OnExchange == nil {
		return nil
	}
	x := &exchange{engine: in.engine, began: time.Now(), told: Exchange{
		Kind: kind, Plugin: in.declared.Name, Start: inc.start, Generation: generation, Incarnation: inc.number,
		Subscription: subscription, Begin: in.engine.opts.Now(),
	}}
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.described != nil {
		x.told.Version = in.described.Version
	}
	x.told.SHA256 = in.sha256
	return x
}

// configured ends the exchange of a start.
func (x *exchange) configured(in *instance, c *phases.Configuration, d *phases.Description, err error) {
	if x == nil {
		return
	}
	if c != nil {
		x.told.Configuration = &ExchangeConfiguration{
			Instance: c.Instance, Config: in.declared.Shown(), Secrets: in.declared.Secrets(), Services: c.Services,
		}
	}
	if d != nil {
		x.told.Version = d.Version
	}
	x.told.Description = d
	if err != nil {
		x.told.Err = codedError(in.redactor.err(err))
	}
	x.tell()
}

// dispatched ends the exchange of a hook's call.
func (x *exchange) dispatched(m *phases.Dispatch, res *phases.Result, failure *phases.Error) {
	if x == nil {
		return
	}
	x.told.Dispatch, x.told.Err = m, failure
	if failure == nil {
		x.told.Result = res
	}
	x.tell()
}

// called ends the exchange of a tool call.
func (x *exchange) called(c *phases.ToolCall, res *phases.ToolResult, failure *phases.Error) {
	if x == nil {
		return
	}
	x.told.ToolCall, x.told.Err = c, failure
	if failure == nil {
		x.told.ToolResult = res
	}
	x.tell()
}

// tell ends an exchange.
func (x *exchange) tell() {
	x.told.Took = time.Since(x.began)
	x.mu.Lock()
	x.over = true
	x.mu.Unlock()
	x.engine.tellExchange(&x.told)
}

// add takes a host call up. It reports false if the exchange is over, or none.
func (x *exchange) add(c *HostCall) bool {
	if x == nil {
		return false
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.over {
		x.told.HostCalls = append(x.told.HostCalls, *c)
	}
	return !x.over
}

// tellExchange tells of an exchange. What goes wrong then is nobody's of those who
// wait for it.
func (e *Engine) tellExchange(x *Exchange) {
	err := e.guardedExchange(x)
	if err == nil || e.exchanges.failed.Swap(true) {
		return
	}
	e.opts.Logger.Error("exchanges with plugins are not recorded", "error", err)
	e.emit(Event{Kind: EventDiagnostic, State: string(phases.SeverityError), Code: CodeNotRecorded, Message: "exchanges with plugins are not recorded", Detail: err.Error()})
}

// guardedExchange makes a panic of the host's function an error.
func (e *Engine) guardedExchange(x *Exchange) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	return e.opts.OnExchange(x)
}

// host is who answers the plugin's host calls.
func (in *instance) host() phases.Host {
	if in.engine.opts.Host != nil {
		return in.engine.opts.Host(in.declared.Name)
	}
	return &hostFor{in}
}

// tellHostCall takes a host call up into the exchange in whose course it was made,
// or tells of it alone.
func (h *hostFor) tellHostCall(ctx context.Context, c HostCall, begin time.Time, err error) {
	e := h.in.engine
	if e.opts.OnExchange == nil {
		return
	}
	c.Took, c.Params = time.Since(begin), slices.Clone(c.Params)
	if err != nil {
		c.Result, c.Err = nil, codedError(wire.ToPlugin(err))
	}
	at := chainOf(ctx)
	if at != nil && at.exchange.add(&c) {
		return
	}
	x := &Exchange{Kind: ExchangeHost, Plugin: h.in.declared.Name, Begin: e.opts.Now(), Took: c.Took, HostCalls: []HostCall{c}}
	if at != nil {
		x.Subscription, x.Generation, x.Incarnation = at.subscription, at.generation, at.incarnation
	}
	// Of a process that was replaced and still drains, the start is not known here.
	if inc := h.in.live.Load(); inc != nil && (at == nil || at.incarnation == inc.number) {
		x.Start, x.Incarnation = inc.start, inc.number
	}
	if d := h.in.description(); d != nil {
		x.Version = d.Version
	}
	e.tellExchange(x)
}
