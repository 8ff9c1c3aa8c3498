package runtime

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/grapnelhq/grapnel/internal/merge"
	"github.com/grapnelhq/grapnel/internal/supervise"
	"github.com/grapnelhq/grapnel/phases"
)

// errNoSlot ends the wait for a slot.
var errNoSlot = errors.New("no slot came free in time")

// call runs one hook: attempts within its budgets, then the check of its
// answer. It returns at until at the latest.
func (d *dispatch) call(ctx context.Context, c *call, until time.Time) {
	attempts := 1
	var backoff time.Duration
	if r := c.sub.Retry; r != nil {
		attempts, backoff = max(1, r.Attempts), r.Backoff.D()
	}
	ctx, c.span = d.engine.beginRun(ctx, phases.Trace{}, c.run)
	defer c.span.done()
	for attempt := 1; ; attempt++ {
		failure := d.try(ctx, c, attempt, until)
		if failure == nil {
			d.keepAnswer(c)
			return
		}
		if attempt == attempts || !retryable(failure) || !pause(ctx, backoff, until) {
			c.fail(failure)
			return
		}
		d.engine.logFailure(c.run, failure) // the next attempt has its own
	}
}

// retryable reports whether another attempt may have another end.
func retryable(err *phases.Error) bool {
	switch err.Code {
	case phases.CauseTimeout, phases.CauseCrash, phases.CauseOOM, phases.CauseSessionReset, phases.CauseUnavailable, phases.CauseOverloaded:
		return true
	}
	return err.Retryable
}

// pause waits between attempts; false when there is no time for another one.
func pause(ctx context.Context, d time.Duration, until time.Time) bool {
	if time.Until(until) <= d {
		return false
	}
	if d == 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// try makes one attempt: is there a slot, is the plugin there, does its breaker
// allow it, what is the answer, and is it a valid one. It settles the call when
// all is well; otherwise it only says why not.
func (d *dispatch) try(ctx context.Context, c *call, attempt int, until time.Time) *phases.Error {
	c.run.Attempts = attempt
	if time.Until(until) <= 0 {
		return exhausted("there was no time left when its turn came")
	}
	if failure := c.refusal(); failure != nil {
		return failure
	}
	lease, failure := d.lease(ctx, c, until)
	if failure != nil {
		return failure
	}
	// Nobody waits for a successor longer than the plugin itself may take.
	leased := time.Now()
	inc, failure := c.hook.in.await(ctx, earlier(until, leased.Add(c.sub.Timeout.D())))
	if waited := time.Since(leased); waited > time.Millisecond {
		c.run.QueueMS += millis(waited)
	}
	if failure != nil {
		lease.freed()
		return failure
	}
	defer inc.visits.leave()
	report, err := c.hook.breaker.Allow()
	if err != nil {
		lease.freed()
		return breakerOpen(c.sub.ID)
	}
	if c.once != nil {
		if failure := c.once(ctx); failure != nil {
			lease.freed()
			report(supervise.OutcomeNeutral)
			return failure
		}
	}
	res, failure := d.ask(ctx, c, inc, lease, attempt, until)
	if failure == nil {
		failure = d.admit(c, res)
	}
	report(breakerOutcome(failure, c.ownTime))
	return failure
}

// refusal says why the call cannot be made now, nil if nothing is known that speaks
// against it: who is refused waits for no slot.
func (c *call) refusal() *phases.Error {
	switch {
	case c.hook.in.live.Load() == nil:
		return c.hook.in.unavailable()
	case c.hook.breaker.State() == supervise.BreakerOpen:
		return breakerOpen(c.sub.ID)
	}
	return nil
}

// refuse settles a call that cannot be made now and would not be tried again.
func (d *dispatch) refuse(ctx context.Context, c *call, until time.Time) bool {
	if c.sub.Retry != nil || time.Until(until) <= 0 {
		return false
	}
	failure := c.refusal()
	if failure == nil {
		return false
	}
	_, c.span = d.engine.beginRun(ctx, phases.Trace{}, c.run)
	c.run.Attempts = 1
	c.fail(failure)
	c.span.done()
	return true
}

func breakerOpen(subscription string) *phases.Error {
	return phases.Errorf(phases.CauseBreakerOpen, "the breaker of %s is open after repeated failures", subscription)
}

// earlier returns the earlier of two times.
func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// breakerOutcome says what an attempt means for the breaker: only time-outs,
// crashes and invalid answers count, and a time-out only if the hook had the
// whole of its own time.
func breakerOutcome(err *phases.Error, ownTime bool) supervise.Outcome {
	if err == nil {
		return supervise.OutcomeSuccess
	}
	switch err.Code {
	case phases.CauseCrash, phases.CauseInvalidReply:
		return supervise.OutcomeFailure
	case phases.CauseTimeout:
		if ownTime {
			return supervise.OutcomeFailure
		}
	}
	return supervise.OutcomeNeutral
}

func exhausted(why string) *phases.Error {
	return &phases.Error{Code: phases.CauseBudgetExhausted, Message: why}
}

// lease is one taken slot. The plugin's answer, or its end, gives it back.
type lease struct {
	in   *instance
	slot bool
	// subscription is the hook's; empty for a tool.
	subscription string
	// inc is whose call was left, and figures are where that is counted, nil for
	// nowhere; set before the state says so.
	inc     *incarnation
	figures *figures
	state   atomic.Int32
}

const (
	leaseHeld = iota
	leaseAbandoned
	leaseFreed
)

// lease waits for a slot. The wait counts against the phase, not the hook. A
// plugin that is on the call chain already has one.
func (d *dispatch) lease(ctx context.Context, c *call, until time.Time) (*lease, *phases.Error) {
	l := &lease{in: c.hook.in, slot: !chainOf(ctx).holds(c.sub.Plugin), subscription: c.sub.ID}
	if !l.slot {
		return l, nil
	}
	if l.in.slots.tryAcquire() {
		return l, nil
	}
	waiting := time.Now()
	bounded, cancel := context.WithDeadlineCause(ctx, until, errNoSlot)
	defer cancel()
	err := l.in.slots.acquire(bounded)
	c.run.QueueMS += millis(time.Since(waiting))
	switch {
	case err == nil && time.Now().Before(until):
		return l, nil
	case err == nil: // in the very moment in which the time was over
		l.freed()
	case bounded.Err() == nil:
		return nil, codedError(err) // too many wait already
	case cancelled(ctx):
		return nil, timeUp(ctx)
	}
	return nil, exhausted("the plugin was busy until the time was over")
}

// freed is told when the plugin lets go of the call.
func (l *lease) freed() {
	if l.state.Swap(leaseFreed) == leaseAbandoned {
		l.figures.unanswered(-1)
		l.in.returned(l.inc)
	}
	if l.slot {
		l.in.slots.release()
	}
}

// leave is told when the caller does not wait any longer.
func (l *lease) leave(inc *incarnation) {
	l.inc, l.figures = inc, l.in.engine.tally.callers(l.in.declared.Name, l.subscription)
	if l.state.CompareAndSwap(leaseHeld, leaseAbandoned) {
		l.figures.unanswered(1)
		l.in.engine.emit(Event{Kind: EventAbandoned, Plugin: l.in.declared.Name, Subscription: l.subscription})
		l.in.abandon(inc)
	}
}

// ask sends the call and waits for its answer or its deadline.
func (d *dispatch) ask(ctx context.Context, c *call, inc *incarnation, l *lease, attempt int, until time.Time) (*phases.Result, *phases.Error) {
	begin := time.Now()
	deadline := begin.Add(c.sub.Timeout.D())
	if c.ownTime = !until.Before(deadline); !c.ownTime {
		deadline = until
	}
	x := inc.beginExchange(ExchangeDispatch, d.gen.number, c.sub.ID)
	hookCtx := d.engine.callContext(ctx, site{
		plugin: c.sub.Plugin, turn: d.rq.context, scope: d.rq.scope, subscription: c.sub.ID, generation: d.gen.number, incarnation: inc.number, exchange: x,
	}, deadline)
	defer hookCtx.cancel()
	m := d.message(c, inc, attempt, deadline.Sub(begin))
	c.judged = d.applied
	inc.asked()
	res, stats, err := inc.peer().Dispatch(hookCtx, m, l.freed)
	c.run.DurationMS += millis(time.Since(begin))
	c.run.BytesIn += stats.BytesIn
	c.run.BytesOut += stats.BytesOut
	c.run.Incarnation = inc.number
	var failure *phases.Error
	switch {
	case err == nil:
	case hookCtx.Err() != nil:
		l.leave(inc)
		failure = timeUp(ctx)
	default:
		failure = inc.explain(hookCtx, codedError(err))
	}
	x.dispatched(m, res, failure)
	return res, failure
}

// timeUp says why a call was left: the caller has gone, or its time was over.
func timeUp(caller context.Context) *phases.Error {
	if cancelled(caller) {
		return phases.Errorf(phases.CauseCancelled, "the caller does not wait any longer")
	}
	return phases.Errorf(phases.CauseTimeout, "no answer in time")
}

// explain replaces a broken session by the end of the process, if that is why. The
// plugin's own words hold none of its secrets then.
func (inc *incarnation) explain(ctx context.Context, err *phases.Error) *phases.Error {
	if !inc.broken(err) || !inc.exited(ctx) || inc.process.Exit().Asked {
		return inc.in.redactor.coded(err) // a process that the host has ended did not crash
	}
	return inc.exitError()
}

// message is the call as the plugin sees it: what was not granted is withheld.
func (d *dispatch) message(c *call, inc *incarnation, attempt int, remaining time.Duration) *phases.Dispatch {
	h := c.hook
	m := &phases.Dispatch{
		Subscription: c.sub.ID, Hook: c.sub.Name, Phase: d.phase.Row.Phase, Context: d.rq.context, Input: d.input, Policies: d.policies, Contexts: d.contexts,
		Attempt: attempt, Trace: c.span.trace, Remaining: remaining, Generation: d.gen.number, Incarnation: inc.number,
		Room: phases.Room{MaxChars: d.room(c), MaxBytes: frameOf(h.in.declared)},
	}
	if d.rq.key != "" {
		m.IdempotencyKey = d.rq.key + "/" + c.sub.ID
	}
	h.sight.Withhold(m)
	return m
}

// room is the text budget that a plugin is told: the least that will be applied
// to its text.
func (d *dispatch) room(c *call) int {
	room := merge.DefaultSectionChars
	if c.sub.Budget.Chars > 0 {
		room = min(room, c.sub.Budget.Chars)
	}
	return min(room, max(0, d.chars))
}

// admit checks an answer at the boundary and settles the call with it; an answer
// that is not valid is a failure.
func (d *dispatch) admit(c *call, res *phases.Result) *phases.Error {
	admitted, err := merge.Admit(d.phase.Row, &c.hook.merge, res.Contributions)
	if err != nil {
		return codedError(err)
	}
	c.entries, c.dropped, c.settled = admitted.Entries, admitted.Dropped, true
	c.notes = append(c.notes, admitted.Diagnostics...)
	for _, note := range res.Diagnostics {
		note = note.Remark(c.sub.Visibility)
		note.Plugin, note.Subscription = c.sub.Plugin, c.sub.ID
		c.notes = append(c.notes, note)
	}
	c.hook.in.redactor.notes(c.notes)
	d.engine.logRemarks(c.sub.ID, c.notes)
	d.engine.logRemarks(c.sub.ID, c.remarksOf(c.entries))
	c.run.State = phases.StateSucceeded
	c.run.Verdict, c.run.ReasonCode = verdict(c.entries)
	switch {
	case c.sub.Shadow:
		c.run.State = phases.StateShadowed
	case len(c.dropped) > 0:
		first := c.dropped[0]
		c.fail(phases.Errorf(first.Cause, "%s", first.Message))
	case c.run.Verdict == phases.VerdictDeny:
		c.run.State, c.run.Code = phases.StateDenied, string(phases.CauseDenied)
	}
	return nil
}

// verdict is the strongest verdict among contributions, with the plugin's word for the
// reason; empty without a decision.
func verdict(entries []merge.Entry) (strongest phases.Verdict, reasonCode string) {
	for i := range entries {
		decision, ok := entries[i].Value.(*phases.Decision)
		if ok && decision.Verdict.Strength() > strongest.Strength() {
			strongest, reasonCode = decision.Verdict, decision.ReasonCode
		}
	}
	return strongest, reasonCode
}

// millis is a duration in milliseconds, to the microsecond.
func millis(d time.Duration) float64 {
	return float64(d.Microseconds()) / 1000
}
