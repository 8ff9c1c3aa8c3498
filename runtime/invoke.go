package runtime

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/grapnelhq/grapnel/internal/engine/bounded"
	"github.com/grapnelhq/grapnel/internal/engine/callctx"
	"github.com/grapnelhq/grapnel/internal/engine/pool"
	"github.com/grapnelhq/grapnel/internal/engine/supervise"
	"github.com/grapnelhq/grapnel/internal/engine/turnstate"
	"github.com/grapnelhq/grapnel/internal/wire"
	"github.com/grapnelhq/grapnel/phases"
)

// invoker calls plugins.
type invoker struct {
	core

	// calls are the calls of plugins that are under way.
	calls callctx.Group[site]
	// over holds invocations that nobody knows any more, for reuse.
	over sync.Pool
}

// invocation is one attempt to call a plugin. Hooks, tools, background jobs and replays all take the steps of
// [Engine.invoke].
type invocation struct {
	frame frame
	in    *pool.Instance
	// run is the row that times and sizes are added to.
	run  *phases.Run
	kind ExchangeKind
	// subscription is the hook's; empty for a tool.
	subscription string
	// breaker of the hook; nil if there is none.
	breaker *supervise.Breaker
	// once, if set, runs right before the plugin is called; its error prevents the call.
	once func(ctx context.Context) *phases.Error
	// timeout is what the plugin has once it is called; until is when the caller stops waiting.
	timeout time.Duration
	until   time.Time
	// replay waits for a plugin that is not up yet, takes no slot and records no exchange.
	replay bool
	// call is the context of the plugin's work; its site identifies the call to the host calls made in its course.
	call callctx.Context[site]

	progress
}

// progress is how far an invocation has got.
type progress struct {
	caller context.Context //nolint:containedctx // an invocation's own
	lease  pool.Lease
	inc    *pool.Incarnation
	ticket supervise.Ticket
	begun  time.Time
	// deadline is when the plugin's answer must be there; ownTime says that this is its whole timeout.
	deadline time.Time
	ownTime  bool
	// arrived is when the answer came, or the caller stopped waiting.
	arrived time.Time
	// shared says that others may still know the invocation when it is over.
	shared bool
}

type frame interface {
	// send sends the message to the incarnation, or says what wait will; see pool.Incarnation for ctx and the lease.
	send(ctx context.Context, inc *pool.Incarnation, remaining time.Duration, l *pool.Lease)
	// wait waits for the answer.
	wait(ctx context.Context) (wire.Stats, error)
	// show puts what was sent and answered into an exchange.
	show(x *Exchange)
	// admit checks the answer.
	admit(inc *pool.Incarnation) *phases.Error
	// timeUp says why the caller stopped waiting, before or after the message was sent.
	timeUp(caller context.Context, sent bool) *phases.Error
}

// invoke calls a plugin: it takes a slot, waits for a live incarnation, asks the breaker, sends the message and
// admits the answer. It returns by until.
func (e *invoker) invoke(ctx context.Context, i *invocation) *phases.Error {
	var failure *phases.Error
	if !i.replay {
		failure = refusal(i.in, i.breaker, i.subscription)
	}
	if failure == nil {
		failure = i.acquire(ctx)
	}
	if failure == nil {
		failure = e.send(ctx, i)
	}
	if failure != nil {
		return failure
	}
	return e.receive(i)
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

// acquire waits for a slot, until the caller's time is over, and for a live incarnation.
func (i *invocation) acquire(ctx context.Context) (failure *phases.Error) {
	if i.tryAcquire(ctx) {
		return nil
	}
	if failure = i.awaitSlot(ctx); failure != nil {
		return failure
	}
	if i.inc, failure = i.incarnation(ctx); failure != nil {
		i.lease.Free()
	}
	return failure
}

// tryAcquire is acquire that does not wait; false if it would have to.
func (i *invocation) tryAcquire(ctx context.Context) bool {
	if i.replay || ctx.Err() != nil || !i.takeSlot(ctx) {
		return false
	}
	if i.inc = i.in.TryEnter(); i.inc == nil {
		i.lease.Free()
		return false
	}
	return true
}

// takeSlot returns false if no slot is free. A plugin that is on the call chain has one already.
func (i *invocation) takeSlot(ctx context.Context) bool {
	if i.replay || onChain(ctx, i.in.Declared.Name) {
		i.lease.Borrow(i.in)
		return true
	}
	return i.lease.TryTake(i.in)
}

func (i *invocation) awaitSlot(ctx context.Context) *phases.Error {
	if i.takeSlot(ctx) {
		return nil
	}
	waiting := time.Now()
	bounded, cancel := context.WithDeadline(ctx, i.until)
	defer cancel()
	err := i.lease.Take(bounded, i.in)
	i.run.QueueMS += turnstate.Millis(time.Since(waiting))
	switch {
	case err == nil && time.Now().Before(i.until):
		return nil
	case err == nil: // at the very end of the time
		i.lease.Free()
	case bounded.Err() == nil:
		return codedError(err) // too many wait already
	}
	return i.frame.timeUp(ctx, false)
}

// incarnation waits for the incarnation that takes calls, but no longer than the plugin's own timeout. The caller
// must call its Leave.
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
		i.run.QueueMS += turnstate.Millis(waited)
	}
	switch {
	case ctx.Err() == nil && (failure != nil || now.Before(i.until)):
		return inc, failure
	case failure == nil: // the caller is gone
		inc.Leave()
	}
	return nil, i.frame.timeUp(ctx, false)
}

// start asks the breaker, and records the start of work that must not be done twice. The caller reports the outcome.
func (i *invocation) start(ctx context.Context) *phases.Error {
	if i.breaker != nil {
		var err error
		if i.ticket, err = i.breaker.Allow(); err != nil {
			return breakerOpen(i.subscription)
		}
	}
	if i.once != nil {
		if failure := i.once(ctx); failure != nil {
			i.report(supervise.OutcomeNeutral)
			return failure
		}
	}
	return nil
}

func (i *invocation) report(o supervise.Outcome) {
	if i.breaker != nil {
		i.breaker.Report(i.ticket, o)
	}
}

// send sends the message of an invocation that has acquired its plugin; receive must follow. On a failure the plugin
// is let go.
func (e *invoker) send(ctx context.Context, i *invocation) *phases.Error {
	if failure := i.start(ctx); failure != nil {
		i.lease.Free()
		i.inc.Leave()
		return failure
	}
	i.caller, i.begun = ctx, time.Now()
	i.deadline = i.begun.Add(i.timeout)
	if i.ownTime = !i.until.Before(i.deadline); !i.ownTime {
		i.deadline = i.until
	}
	at := &i.call.Site
	at.incarnation = i.inc.Number
	if !i.replay {
		at.exchange = e.beginExchange(ctx, i.inc, i.kind, at.generation, at.subscription)
		i.inc.Called()
	}
	e.calls.Begin(ctx, &i.call, i.deadline)
	i.frame.send(&i.call, i.inc, i.deadline.Sub(i.begun), &i.lease)
	return nil
}

// receive waits for the answer or the deadline.
func (e *invoker) receive(i *invocation) (failure *phases.Error) {
	defer i.inc.Leave()
	size, err := i.frame.wait(&i.call)
	defer func() { i.shared = !i.call.Cancel() || size.Lent || err != nil }()
	failed := err != nil && i.inTime(size.Arrived)
	if i.arrived = size.Arrived; i.arrived.IsZero() {
		i.arrived = time.Now()
	}
	i.run.DurationMS += turnstate.Millis(i.arrived.Sub(i.begun))
	i.run.BytesIn += size.BytesIn
	i.run.BytesOut += size.BytesOut
	i.run.Incarnation = i.inc.Number
	switch {
	case err == nil:
	case !failed && i.call.Err() != nil:
		e.abandon(i)
		if failure = i.frame.timeUp(i.caller, true); errors.Is(err, wire.ErrMisaddressed) && failure.Code == phases.CauseTimeout {
			failure = codedError(err) // more time would not help
		}
	default:
		failure = i.inc.Explain(&i.call, codedError(err))
	}
	i.call.Site.exchange.ended(i.frame, failure, i.arrived)
	if failure == nil {
		failure = i.frame.admit(i.inc)
	}
	i.report(pool.OutcomeOf(failure, i.ownTime))
	return failure
}

// inTime reports whether something came while the caller waited, who may have collected it later.
func (i *invocation) inTime(arrived time.Time) bool {
	return !arrived.IsZero() && arrived.Before(i.deadline) && !bounded.Cancelled(i.caller)
}

func (e *invoker) abandon(i *invocation) {
	plugin := i.in.Declared.Name
	unanswered, answered := e.stats.Unanswered(plugin, i.subscription)
	i.lease.Abandon(i.inc, func() {
		unanswered()
		e.emit(Event{Kind: EventAbandoned, Plugin: plugin, Subscription: i.subscription})
	}, answered)
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

// onChain reports whether the plugin is on the call chain and so has a slot already: waiting for a second one could
// deadlock.
func onChain(ctx context.Context, plugin string) bool {
	for l := callctx.Of[site](ctx); l != nil; l = l.Parent {
		if l.Site.plugin == plugin {
			return true
		}
	}
	return false
}
