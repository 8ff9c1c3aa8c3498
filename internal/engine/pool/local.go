package pool

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/grapnelhq/grapnel/internal/engine/bounded"
	"github.com/grapnelhq/grapnel/internal/engine/callctx"
	"github.com/grapnelhq/grapnel/internal/jsonscan"
	"github.com/grapnelhq/grapnel/internal/wire"
	"github.com/grapnelhq/grapnel/phases"
)

// Pending is a hook's call on its way.
type Pending interface {
	// Answer waits for the answer, which becomes res, until ctx ends, the one of the call. It is called once.
	Answer(ctx context.Context, res *phases.Result) (wire.Stats, error)
}

// Send calls a hook and returns without waiting for its answer. The lease is freed when the plugin has let go of the
// call: perhaps after Answer has returned.
func (inc *Incarnation) Send(ctx context.Context, d *phases.Dispatch, l *Lease) Pending {
	if inc.local != nil {
		return inc.local.send(ctx, d, l)
	}
	return inc.session.Load().Send(ctx, d, l.Free)
}

// CallTool calls a tool and waits for its answer until ctx ends; the lease is as in Send.
func (inc *Incarnation) CallTool(ctx context.Context, c *phases.ToolCall, l *Lease) (*phases.ToolResult, wire.Stats, error) {
	if inc.local != nil {
		return inc.local.callTool(ctx, c, l.Free)
	}
	return inc.session.Load().CallTool(ctx, c, l.Free)
}

// local is a plugin inside the host. Arguments and answers are copied and panics recovered.
type local struct {
	plugin  Plugin
	inline  bool // its hooks run on the goroutine of whoever calls them
	workers *workers
}

func (l *local) send(ctx context.Context, d *phases.Dispatch, lease *Lease) Pending {
	c := &localCall{ctx: ctx, plugin: l.plugin, given: cloneDispatch(d), lease: lease, stats: wire.Stats{Lent: true}}
	if l.inline {
		c.run()
		return c
	}
	c.spare = &l.workers.done
	if done, ok := c.spare.Get().(chan struct{}); ok {
		c.done = done
	} else {
		c.done = make(chan struct{}, 1)
	}
	l.workers.do(c)
	return c
}

// localCall is one call of a hook inside the host.
type localCall struct {
	ctx    context.Context //nolint:containedctx // the call's own, and gone with it
	plugin Plugin
	given  phases.Dispatch
	lease  *Lease

	done   chan struct{} // takes one value, when what follows is set; nil for an inline call
	spare  *sync.Pool    // takes done back
	answer phases.Result
	err    error
	stats  wire.Stats // Lent: the plugin has the call's context
}

func (c *localCall) run() {
	defer c.lease.Free()
	answer, err := bounded.Recovered(func() (a phases.Result, err error) {
		res, err := c.plugin.Dispatch(c.ctx, &c.given)
		if err == nil && res != nil { // copying may panic, too, and so may an error's text
			a.Diagnostics, a.Contributions = slices.Clone(res.Diagnostics), CloneContributions(res.Contributions)
		}
		return a, wire.FromPlugin(err)
	})
	c.answer, c.err, c.stats.Arrived = answer, panicked(err), time.Now()
	if c.done != nil {
		c.done <- struct{}{}
	}
}

func (c *localCall) Answer(ctx context.Context, res *phases.Result) (wire.Stats, error) {
	if err := c.wait(ctx); err != nil {
		return wire.Stats{}, err
	}
	*res = c.answer
	return c.stats, c.err
}

func (c *localCall) wait(ctx context.Context) error {
	if c.done == nil {
		return nil
	}
	own, caller := callctx.Ends(ctx)
	var err error
	select {
	case <-c.done: // nobody sends to it again
		c.spare.Put(c.done)
		return nil
	case <-own:
		err = context.DeadlineExceeded
	case <-caller:
		err = context.Cause(ctx)
	}
	select { // it may have been there for long: answers are collected one after the other
	case <-c.done:
		c.spare.Put(c.done)
		return nil
	default:
		return err
	}
}

// workers run calls of plugins inside the host. A new goroutine would have to grow its stack for each call.
type workers struct {
	work chan *localCall // to a worker that waits
	idle atomic.Int64
	over <-chan struct{}
	done sync.Pool // of empty channels
}

// maxIdle is how many workers wait for calls.
const maxIdle = 64

func (w *workers) do(c *localCall) {
	select {
	case w.work <- c:
	default:
		go w.run(c)
	}
}

func (w *workers) run(c *localCall) {
	for {
		c.run()
		if w.idle.Add(1) > maxIdle {
			w.idle.Add(-1)
			return
		}
		select {
		case c = <-w.work:
			w.idle.Add(-1)
		case <-w.over:
			return
		}
	}
}

func (l *local) callTool(ctx context.Context, c *phases.ToolCall, freed func()) (*phases.ToolResult, wire.Stats, error) {
	given := *c
	given.Context, given.Arguments, given.Policies = c.Context.Clone(), slices.Clone(c.Arguments), clonePolicies(c.Policies)
	res, err := abandonable(ctx, freed, func() (*phases.ToolResult, error) {
		res, err := l.plugin.CallTool(ctx, &given)
		return res, wire.FromPlugin(err)
	})
	if err != nil || res == nil {
		return &phases.ToolResult{}, wire.Stats{Lent: true}, err
	}
	out := *res
	out.Content, out.Diagnostics = slices.Clone(res.Content), slices.Clone(res.Diagnostics)
	return &out, wire.Stats{Lent: true}, checkAnswer(c, out.Content)
}

// checkAnswer checks a tool's answer as the wire does for plugins outside the host.
func checkAnswer(c *phases.ToolCall, content json.RawMessage) error {
	if most := c.Budget.MaxBytes; most > 0 && len(content) > most {
		return phases.Errorf(phases.CauseOversizeReply, "the answer of the tool %q has %d bytes; at most %d are taken (limits.frame)", c.Tool, len(content), most)
	}
	if len(content) == 0 {
		return nil
	}
	if err := jsonscan.Check(content, phases.MaxJSONDepth); err != nil {
		return phases.Errorf(phases.CauseInvalidReply, "the answer of the tool %q %w", c.Tool, err)
	}
	return nil
}

// abandonable is bounded.Abandonable for a call of the plugin: a panic is its error.
func abandonable[T any](ctx context.Context, freed func(), call func() (*T, error)) (*T, error) {
	value, err := bounded.Abandonable(ctx, freed, call)
	return value, panicked(err)
}

// panicked converts the error of a panic.
func panicked(err error) error {
	if p, ok := errors.AsType[*bounded.PanicError](err); ok {
		return &phases.Error{Code: phases.CausePluginError, PluginCode: phases.PluginCodePanic, Message: "the plugin panicked", Detail: p.Error()}
	}
	return err
}

func cloneDispatch(d *phases.Dispatch) phases.Dispatch {
	given := *d
	given.Context = d.Context.Clone()
	given.Input = phases.CloneInput(d.Input)
	given.Withheld = slices.Clone(d.Withheld)
	given.Policies = clonePolicies(d.Policies)
	given.Contexts = slices.Clone(d.Contexts)
	for i := range given.Contexts {
		given.Contexts[i].SourceRefs = slices.Clone(given.Contexts[i].SourceRefs)
	}
	return given
}

func clonePolicies(list []phases.PolicyEntry) []phases.PolicyEntry {
	given := slices.Clone(list)
	for i := range given {
		given[i].Value = slices.Clone(given[i].Value)
	}
	return given
}

// CloneContributions copies contributions, some of which may be nil.
func CloneContributions(cs []phases.Contribution) []phases.Contribution {
	out := slices.Clone(cs)
	for i, c := range cs {
		if c != nil {
			out[i] = phases.CloneContribution(c)
		}
	}
	return out
}
