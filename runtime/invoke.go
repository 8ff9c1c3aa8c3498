package runtime

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/internal/bounded"
	"github.com/grapnelhq/grapnel/internal/callctx"
	"github.com/grapnelhq/grapnel/internal/pool"
	"github.com/grapnelhq/grapnel/internal/supervise"
	"github.com/grapnelhq/grapnel/internal/turnstate"
	"github.com/grapnelhq/grapnel/internal/wire"
	"github.com/grapnelhq/grapnel/phases"
)

// invocation is one attempt to call a plugin. Hooks, tools, background jobs and replays
// all take the steps of [Engine.invoke].
type invocation struct {
	frame frame
	in    *pool.Instance
	// run is the row that times and sizes are added to.
	run *phases.Run
	// site identifies the call to the host calls made in its course.
	site site
	kind ExchangeKind
	// subscription is the hook's; empty for a tool.
	subscription string
	// breaker of the hook; nil if there is none.
	breaker *supervise.Breaker
	// once, if set, runs right before the plugin is called; its error prevents the call.
	once func(ctx context.Context) *phases.Error
	// timeout is what the plugin has once it is called; until is when the caller stops
	// waiting.
	timeout time.Duration
	until   time.Time
	// replay waits for a plugin that is not up yet, takes no slot and records no exchange.
	replay bool
}

type frame interface {
	// send calls the plugin; see pool.Peer for ctx and freed.
	send(ctx context.Context, inc *pool.Incarnation, remaining time.Duration, freed func()) (wire.Stats, error)
	// show puts what was sent and answered into an exchange.
	show(x *Exchange)
	// admit checks the answer.
	admit(inc *pool.Incarnation) *phases.Error
	// timeUp says why the caller stopped waiting, before or after the message was sent.
	timeUp(caller context.Context, sent bool) *phases.Error
}

// invoke calls a plugin: it takes a slot, waits for a live incarnation, asks the
// breaker, sends the message and admits the answer. It returns by until.
func (e *Engine) invoke(ctx context.Context, i *invocation) *phases.Error {
	if failure := i.refusal(); failure != nil {
		return failure
	}
	l, failure := i.lease(ctx)
	if failure != nil {
		return failure
	}
	inc, failure := i.incarnation(ctx)
	if failure != nil {
		l.Free()
		return failure
	}
	defer inc.Leave()
	ticket, failure := i.start(ctx)
	if failure != nil {
		l.Free()
		return failure
	}
	ownTime, failure := e.ask(ctx, i, inc, l)
	if failure == nil {
		failure = i.frame.admit(inc)
	}
	i.report(ticket, pool.OutcomeOf(failure, ownTime))
	return failure
}

func (i *invocation) refusal() *phases.Error {
	if i.replay {
		return nil
	}
	return refusal(i.in, i.breaker, i.subscription)
}

func refusal(in *pool.Instance, b *supervise.Breaker, subscription string) *phases.Error {
	switch {
	case in.Live() == nil:
		return in.Unavailable()
	case b != nil && b.State() == supervise.BreakerOpen:
		return breakerOpen(subscription)
	}
	return nil
}

// lease waits for a slot until the caller's time is over. A plugin that is on the call
// chain has one already.
func (i *invocation) lease(ctx context.Context) (*pool.Lease, *phases.Error) {
	if i.replay || onChain(ctx, i.in.Declared.Name) {
		return i.in.Borrow(), nil
	}
	if l := i.in.TryLease(); l != nil {
		return l, nil
	}
	waiting := time.Now()
	bounded, cancel := context.WithDeadline(ctx, i.until)
	defer cancel()
	l, err := i.in.Lease(bounded)
	i.run.QueueMS += millis(time.Since(waiting))
	switch {
	case err == nil && time.Now().Before(i.until):
		return l, nil
	case err == nil: // at the very end of the time
		l.Free()
	case bounded.Err() == nil:
		return nil, codedError(err) // too many wait already
	}
	return nil, i.frame.timeUp(ctx, false)
}

// incarnation waits for the incarnation that takes calls, but no longer than the plugin's
// own timeout. The caller must call its Leave.
func (i *invocation) incarnation(ctx context.Context) (*pool.Incarnation, *phases.Error) {
	begin := time.Now()
	patience := i.timeout
	if i.replay {
		patience = pool.StartTimeout(&i.in.Declared)
	}
	patience = min(patience, i.until.Sub(begin))
	inc, failure := i.in.Await(ctx, begin.Add(patience), i.replay)
	now := time.Now()
	if waited := now.Sub(begin); waited > time.Millisecond {
		i.run.QueueMS += millis(waited)
	}
	switch {
	case ctx.Err() == nil && (failure != nil || now.Before(i.until)):
		return inc, failure
	case failure == nil: // the caller is gone
		inc.Leave()
	}
	return nil, i.frame.timeUp(ctx, false)
}

// start asks the breaker, and records the start of work that must not be done twice. The
// caller reports the outcome.
func (i *invocation) start(ctx context.Context) (ticket supervise.Ticket, failure *phases.Error) {
	if i.breaker != nil {
		var err error
		if ticket, err = i.breaker.Allow(); err != nil {
			return 0, breakerOpen(i.subscription)
		}
	}
	if i.once != nil {
		if failure := i.once(ctx); failure != nil {
			i.report(ticket, supervise.OutcomeNeutral)
			return 0, failure
		}
	}
	return ticket, nil
}

func (i *invocation) report(ticket supervise.Ticket, o supervise.Outcome) {
	if i.breaker != nil {
		i.breaker.Report(ticket, o)
	}
}

// ask sends the message and waits for the answer or the deadline. ownTime says that the
// plugin had its whole timeout.
func (e *Engine) ask(ctx context.Context, i *invocation, inc *pool.Incarnation, l *pool.Lease) (ownTime bool, failure *phases.Error) {
	begin := time.Now()
	deadline := begin.Add(i.timeout)
	if ownTime = !i.until.Before(deadline); !ownTime {
		deadline = i.until
	}
	at := i.site
	at.incarnation = inc.Number
	if !i.replay {
		at.exchange = e.beginExchange(inc, i.kind, at.generation, at.subscription)
		inc.Called()
	}
	call := e.calls.New(ctx, at, deadline)
	defer call.Cancel()
	size, err := i.frame.send(call, inc, deadline.Sub(begin), l.Free)
	i.run.DurationMS += millis(time.Since(begin))
	i.run.BytesIn += size.BytesIn
	i.run.BytesOut += size.BytesOut
	i.run.Incarnation = inc.Number
	switch {
	case err == nil:
	case call.Err() != nil:
		e.abandon(i, inc, l)
		failure = i.frame.timeUp(ctx, true)
	default:
		failure = inc.Explain(call, codedError(err))
	}
	at.exchange.ended(i.frame, failure)
	return ownTime, failure
}

func (e *Engine) abandon(i *invocation, inc *pool.Incarnation, l *pool.Lease) {
	plugin := i.in.Declared.Name
	counters := e.stats.Caller(plugin, i.subscription)
	l.Abandon(inc, func() {
		counters.Unanswered(1)
		e.emit(Event{Kind: EventAbandoned, Plugin: plugin, Subscription: i.subscription})
	}, func() { counters.Unanswered(-1) })
}

func breakerOpen(subscription string) *phases.Error {
	return phases.Errorf(phases.CauseBreakerOpen, "the breaker of %s is open after repeated failures", subscription)
}

// maxChain is how deep host calls and dispatches may nest.
const maxChain = 4

// site is one call of a plugin, for the host calls in its course.
type site struct {
	plugin string
	turn   phases.Context
	// state is the turn's, or that of a call outside of turns; never nil.
	state *turnstate.State
	// subscription is the hook's full id, or PLUGIN.TOOL.
	subscription            string
	generation, incarnation uint64
	// exchange collects the host calls; may be nil.
	exchange *exchange
}

// onChain reports whether the plugin is on the call chain and so has a slot already:
// waiting for a second one could deadlock.
func onChain(ctx context.Context, plugin string) bool {
	for l := callctx.Of[site](ctx); l != nil; l = l.Parent {
		if l.Site.plugin == plugin {
			return true
		}
	}
	return false
}

// Replay sends a recorded dispatch or tool call to the plugin of that name again, with the
// recorded context, texts and remaining time, and returns the answer of now. It bypasses
// plan, conditions, grants, slots, breakers, caches, merging and Options.OnExchange, and
// waits for a plugin that is coming back. If the plugin fails, the new exchange has an
// Err; the error says that x cannot be replayed here, or that ctx has ended.
func (e *Engine) Replay(ctx context.Context, x *Exchange) (*Exchange, error) {
	g, err := e.acquire()
	if err != nil {
		return nil, err
	}
	defer g.leave()
	in, ok := g.byName[x.Plugin]
	if !ok {
		return nil, errors.New(g.undeclared(x.Plugin))
	}
	r := &replayed{&Exchange{Kind: x.Kind, Plugin: x.Plugin, Generation: g.number, Subscription: x.Subscription, Begin: e.opts.Now()}}
	at := site{plugin: x.Plugin, state: turnstate.Outside(g.cfg.Budgets.Turn), subscription: x.Subscription, generation: g.number}
	var timeout time.Duration
	switch {
	case x.Kind == ExchangeDispatch && x.Dispatch != nil:
		m := *x.Dispatch
		r.now.Dispatch, at.turn, timeout = &m, m.Context, m.Remaining
	case x.Kind == ExchangeTool && x.ToolCall != nil:
		m := *x.ToolCall
		r.now.ToolCall, at.turn, timeout = &m, m.Context, m.Remaining
	default:
		return nil, fmt.Errorf("an exchange of the kind %q cannot be replayed", x.Kind)
	}
	timeout = cmp.Or(timeout, config.DefaultTool)
	r.now.Err = e.invoke(ctx, &invocation{
		frame: r, in: in, run: &phases.Run{}, site: at, timeout: timeout, until: time.Now().Add(pool.StartTimeout(&in.Declared) + timeout), replay: true,
	})
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if r.now.Err != nil {
		r.now.Result, r.now.ToolResult = nil, nil
	}
	return r.now, nil
}

type replayed struct{ now *Exchange }

var _ frame = (*replayed)(nil)

// send implements frame, with the recorded remaining time.
func (r *replayed) send(ctx context.Context, inc *pool.Incarnation, _ time.Duration, freed func()) (stats wire.Stats, err error) {
	x := r.now
	x.Start, x.Incarnation = inc.Start, inc.Number
	begin := time.Now()
	defer func() { x.Took = time.Since(begin) }()
	if x.Dispatch != nil {
		x.Dispatch.Incarnation = inc.Number
		x.Result, stats, err = inc.Peer().Dispatch(ctx, x.Dispatch, freed)
	} else {
		x.ToolCall.Incarnation = inc.Number
		x.ToolResult, stats, err = inc.Peer().CallTool(ctx, x.ToolCall, freed)
	}
	return stats, err
}

// show implements frame: a replay is not recorded.
func (r *replayed) show(*Exchange) {}

// admit implements frame: nothing is checked.
func (r *replayed) admit(*pool.Incarnation) *phases.Error { return nil }

// timeUp implements frame.
func (r *replayed) timeUp(caller context.Context, _ bool) *phases.Error {
	return bounded.TimeUp(caller)
}
