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

// errHookTime ends a hook's context at its deadline.
var errHookTime = errors.New("the hook's time is over")

// call runs one hook: attempts within its budgets, then the check of its
// answer. It returns at until at the latest.
func (d *dispatch) call(ctx context.Context, c *call, until time.Time) {
	hit, keep := d.cached(c)
	if hit {
		return
	}
	attempts := 1
	var backoff time.Duration
	if r := c.sub.Retry; r != nil {
		attempts, backoff = max(1, r.Attempts), r.Backoff.D()
	}
	for attempt := 1; ; attempt++ {
		res, failure := d.attempt(ctx, c, attempt, until)
		if failure == nil {
			d.admit(c, res)
			if keep != nil {
				keep()
			}
			return
		}
		if attempt == attempts || !retryable(failure) || !pause(ctx, backoff, until) {
			c.fail(failure)
			return
		}
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

// attempt makes one call: is the plugin there, does its breaker allow it, is
// there a slot, and what is the answer.
func (d *dispatch) attempt(ctx context.Context, c *call, attempt int, until time.Time) (*phases.Result, *phases.Error) {
	c.run.Attempts = attempt
	if time.Until(until) <= 0 {
		return nil, exhausted("there was no time left when its turn came")
	}
	inc := c.hook.in.live.Load()
	if inc == nil {
		return nil, c.hook.in.unavailable()
	}
	report, err := c.hook.breaker.Allow()
	if err != nil {
		return nil, phases.Errorf(phases.CauseBreakerOpen, "the breaker of %s is open after repeated failures", c.sub.ID)
	}
	lease, failure := d.lease(ctx, c, inc, until)
	if failure != nil {
		report(supervise.OutcomeNeutral)
		return nil, failure
	}
	res, failure := d.ask(ctx, c, inc, lease, attempt, until)
	report(breakerOutcome(failure))
	return res, failure
}

// breakerOutcome says what an attempt means for the breaker: only time-outs,
// crashes and invalid answers count.
func breakerOutcome(err *phases.Error) supervise.Outcome {
	if err == nil {
		return supervise.OutcomeSuccess
	}
	switch err.Code {
	case phases.CauseTimeout, phases.CauseCrash, phases.CauseInvalidReply:
		return supervise.OutcomeFailure
	}
	return supervise.OutcomeNeutral
}

func exhausted(why string) *phases.Error {
	return &phases.Error{Code: phases.CauseBudgetExhausted, Message: why}
}

// lease is one taken slot. The plugin's answer, or its end, gives it back.
type lease struct {
	in    *instance
	slot  bool
	state atomic.Int32
}

const (
	leaseHeld = iota
	leaseAbandoned
	leaseFreed
)

// lease waits for a slot. The wait counts against the phase, not the hook. A
// plugin that is on the call chain already has one.
func (d *dispatch) lease(ctx context.Context, c *call, inc *incarnation, until time.Time) (*lease, *phases.Error) {
	l := &lease{in: inc.in, slot: !chainOf(ctx).holds(c.sub.Plugin)}
	if !l.slot {
		return l, nil
	}
	if l.in.slots.tryAcquire() {
		return l, nil
	}
	waiting := time.Now()
	bounded, cancel := context.WithDeadlineCause(ctx, until, errHookTime)
	defer cancel()
	err := l.in.slots.acquire(bounded)
	c.run.QueueMS += millis(time.Since(waiting))
	switch {
	case err == nil:
		return l, nil
	case errors.Is(err, errHookTime), errors.Is(err, context.DeadlineExceeded):
		return nil, exhausted("the plugin was busy until the time was over")
	}
	return nil, callFailure(ctx, err)
}

// freed is told when the plugin lets go of the call.
func (l *lease) freed() {
	if l.state.Swap(leaseFreed) == leaseAbandoned {
		l.in.abandoned.Add(-1)
	}
	if l.slot {
		l.in.slots.release()
	}
}

// leave is told when the caller does not wait any longer.
func (l *lease) leave(inc *incarnation) {
	if l.state.CompareAndSwap(leaseHeld, leaseAbandoned) {
		l.in.abandon(inc)
	}
}

// ask sends the call and waits for its answer or its deadline.
func (d *dispatch) ask(ctx context.Context, c *call, inc *incarnation, l *lease, attempt int, until time.Time) (*phases.Result, *phases.Error) {
	begin := time.Now()
	deadline := begin.Add(c.sub.Timeout.D())
	if until.Before(deadline) {
		deadline = until
	}
	hookCtx, cancel := context.WithDeadlineCause(withChain(ctx, c.sub.Plugin, d.rq.context), deadline, errHookTime)
	defer cancel()
	res, stats, err := inc.peer().Dispatch(hookCtx, d.message(c, inc, attempt, deadline.Sub(begin)), l.freed)
	c.run.DurationMS += millis(time.Since(begin))
	c.run.BytesIn += stats.BytesIn
	c.run.BytesOut += stats.BytesOut
	c.run.Incarnation = inc.number
	if err == nil {
		return res, nil
	}
	if hookCtx.Err() != nil {
		l.leave(inc)
	}
	return nil, inc.explain(callFailure(ctx, err))
}

// callFailure tells the caller's cancellation from the hook's deadline, and
// both from failures.
func callFailure(caller context.Context, err error) *phases.Error {
	if coded, ok := errors.AsType[*phases.Error](err); ok && coded.Code != phases.CauseTimeout && coded.Code != phases.CauseCancelled {
		return coded
	}
	if errors.Is(caller.Err(), context.Canceled) {
		return phases.Errorf(phases.CauseCancelled, "the caller does not wait any longer")
	}
	if errors.Is(err, errHookTime) || errors.Is(err, context.DeadlineExceeded) || phases.CodeOf(err) == phases.CauseTimeout {
		return phases.Errorf(phases.CauseTimeout, "no answer in time")
	}
	return codedError(err)
}

// explain replaces a broken session by the end of the process, if that is why.
func (inc *incarnation) explain(err *phases.Error) *phases.Error {
	if !inc.broken(err) || !inc.exited() {
		return err
	}
	return inc.exitError()
}

// message is the call as the plugin sees it: what was not granted is withheld.
func (d *dispatch) message(c *call, inc *incarnation, attempt int, remaining time.Duration) *phases.Dispatch {
	h := c.hook
	m := &phases.Dispatch{
		Subscription: c.sub.ID, Hook: c.sub.Name, Phase: d.phase.Row.Phase, Context: d.rq.context, Input: d.input,
		Attempt: attempt, Trace: d.rq.trace, Remaining: remaining, Generation: d.gen.number, Incarnation: inc.number,
		Room: phases.Room{MaxChars: d.room(c), MaxBytes: frameOf(h.in.declared)},
	}
	if d.rq.key != "" {
		m.IdempotencyKey = d.rq.key + "/" + c.sub.ID
	}
	if !h.seesAll {
		m.Input, m.Withheld = phases.Withhold(d.input, func(field string) bool { return phases.Allows(h.see, field) })
	}
	if !h.seesMetadata && len(m.Context.Metadata) > 0 {
		m.Context.Metadata = nil
		m.Withheld = append(m.Withheld, "metadata")
	}
	if h.seesPolicy {
		m.Policies = d.policies
	}
	if h.seesContext {
		m.Contexts = d.contexts
	}
	return m
}

// room is the text budget that a plugin is told: the least that will be applied
// to its text.
func (d *dispatch) room(c *call) int {
	room := sectionChars
	if c.sub.Budget.Chars > 0 {
		room = min(room, c.sub.Budget.Chars)
	}
	if left := d.rq.scope.charsLeft(); left > 0 {
		room = min(room, left)
	}
	return room
}

// sectionChars is the most that one section may hold, whatever else allows.
const sectionChars = 20_000

// admit checks an answer at the boundary and settles the call.
func (d *dispatch) admit(c *call, res *phases.Result) {
	admitted, err := merge.Admit(d.phase.Row, &c.hook.merge, res.Contributions)
	if err != nil {
		c.fail(codedError(err))
		return
	}
	c.entries, c.dropped, c.settled = admitted.Entries, admitted.Dropped, true
	c.notes = append(c.notes, admitted.Diagnostics...)
	for _, note := range res.Diagnostics {
		note.Plugin, note.Subscription, note.Visibility = c.sub.Plugin, c.sub.ID, c.sub.Visibility
		c.notes = append(c.notes, note)
	}
	c.run.State = phases.StateSucceeded
	switch {
	case c.sub.Shadow:
		c.run.State = phases.StateShadowed
	case len(c.dropped) > 0:
		first := c.dropped[0]
		c.fail(phases.Errorf(first.Cause, "%s", first.Message))
	case denies(c.entries):
		c.run.State, c.run.Code = phases.StateDenied, string(phases.CauseDenied)
	}
}

// denies reports whether one of the contributions is a deny.
func denies(entries []merge.Entry) bool {
	for _, e := range entries {
		if decision, ok := e.Value.(*phases.Decision); ok && decision.Verdict == phases.VerdictDeny {
			return true
		}
	}
	return false
}

// millis is a duration in milliseconds, to the microsecond.
func millis(d time.Duration) float64 {
	return float64(d.Microseconds()) / 1000
}
