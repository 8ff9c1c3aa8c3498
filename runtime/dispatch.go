package runtime

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/grapnelhq/grapnel/internal/cond"
	"github.com/grapnelhq/grapnel/internal/merge"
	"github.com/grapnelhq/grapnel/internal/plan"
	"github.com/grapnelhq/grapnel/phases"
)

// request is one phase to be dispatched.
type request struct {
	context phases.Context
	input   phases.Input
	// scope is what the turn has gathered so far; never nil.
	scope *scope
	// key makes the idempotency keys of its calls; empty for none.
	key string
}

// PhaseError says that a phase failed closed, was denied its budget or was
// cancelled. Outcome holds everything that is known all the same: the ledger,
// the diagnostics, what was merged.
type PhaseError struct {
	// Coded says where and why; errors.As finds it.
	Coded   *phases.Error
	Outcome *phases.Outcome
}

// Error implements error.
func (e *PhaseError) Error() string { return e.Coded.Error() }

// Unwrap returns the coded error.
func (e *PhaseError) Unwrap() error { return e.Coded }

// dispatch is the one path that every phase takes. It belongs to one call of
// Engine.dispatch; hooks of one layer write to their own call only.
type dispatch struct {
	engine *Engine
	gen    *generation
	plan   *planned
	phase  *plan.Phase
	rq     request

	start    time.Time
	deadline time.Time
	granted  time.Duration
	// sets is what the turn has; policies and contexts are what hooks may see of
	// it, for validators with what this phase has brought.
	sets     merge.State
	policies []phases.PolicyEntry
	contexts []phases.ContextEntry
	// input is the request's, with what transform hooks have rewritten.
	input phases.Input
	calls []call
	// failed is why the phase failed closed.
	failed *phases.Error
	merged merge.Result
}

// call is the part of one expected hook.
type call struct {
	sub  *plan.Subscription
	hook *hook
	run  phases.Run
	// settled says that the state is final: the hook ran, or will not.
	settled bool
	// ownTime says that the last attempt had the hook's whole timeout, and was not
	// cut short by the phase, the turn or the caller.
	ownTime bool
	entries []merge.Entry
	dropped []merge.Drop
	notes   []phases.Diagnostic
	failure *phases.Error
}

// dispatch runs a phase: conditions, then stage by stage and layer by layer,
// merging before the validators and at the end.
func (e *Engine) dispatch(ctx context.Context, g *generation, rq request) (*phases.Outcome, error) {
	if _, ok := e.table.Lookup(rq.input.Phase()); !ok {
		return nil, fmt.Errorf("unknown phase %q%s", rq.input.Phase(), phases.DidYouMean(string(rq.input.Phase()), e.table.Names()))
	}
	if err := phases.ValidateInput(rq.input); err != nil {
		return nil, fmt.Errorf("input of %s: %w", rq.input.Phase(), err)
	}
	d := e.prepare(ctx, g, rq)
	d.conditions()
	for i := range d.phase.Stages {
		if d.failed != nil || cancelled(ctx) {
			break
		}
		d.stage(ctx, &d.phase.Stages[i])
	}
	return d.finish(ctx)
}

// cancelled reports whether the caller has gone. A caller's deadline is a budget
// like any other: who had no time left says so in the ledger.
func cancelled(ctx context.Context) bool { return errors.Is(ctx.Err(), context.Canceled) }

func (e *Engine) prepare(ctx context.Context, g *generation, rq request) *dispatch {
	planned := g.planned.Load()
	d := &dispatch{engine: e, gen: g, plan: planned, phase: planned.plan.Phase(rq.input.Phase()), rq: rq, input: rq.input, start: time.Now()}
	d.granted = d.phase.Budget
	if d.phase.Row.TurnTime {
		d.granted = min(d.granted, rq.scope.timeLeft())
	}
	d.deadline = d.start.Add(d.granted)
	if callers, ok := ctx.Deadline(); ok && callers.Before(d.deadline) {
		d.deadline = callers
		d.granted = max(0, time.Until(callers))
	}
	d.sets = rq.scope.sets(rq.input)
	d.policies, d.contexts = d.sets.Policies, d.sets.Contexts
	d.calls = make([]call, len(d.phase.Expected))
	for i, sub := range d.phase.Expected {
		d.calls[i] = call{sub: sub, hook: planned.hooks[sub.ID], run: d.newRun(sub)}
	}
	for _, off := range d.phase.Off {
		c := &d.calls[off.Subscription.Index]
		c.run.State, c.run.Code, c.settled = phases.StateDisabled, off.Reason, true
	}
	return d
}

// conditions settles every hook whose condition is false or fails.
func (d *dispatch) conditions() {
	env := cond.Env{Context: d.rq.context, Input: d.rq.input, Policies: d.sets.Policies}
	for i := range d.calls {
		c := &d.calls[i]
		if c.settled || c.sub.Condition == nil {
			continue
		}
		ok, err := c.sub.Condition.Eval(env)
		switch {
		case err != nil:
			c.fail(phases.Errorf(phases.CauseCondition, "condition: %w", err))
		case !ok:
			c.run.State, c.settled = phases.StateFiltered, true
		}
	}
}

// stage runs one stage and applies the failure policies of its hooks.
func (d *dispatch) stage(ctx context.Context, s *plan.Stage) {
	switch s.Role {
	case phases.RoleValidate:
		d.merge()
		d.policies, d.contexts = d.merged.Policies, d.merged.Contexts
		if d.failed != nil {
			return
		}
	case phases.RoleObserve:
		return // queued when all else is done
	}
	until := d.until(s.Role)
	for _, layer := range s.Layers {
		if s.Role == phases.RoleTransform {
			d.serial(ctx, layer, until)
		} else {
			d.parallel(ctx, layer, until)
		}
	}
	for _, layer := range s.Layers {
		for _, sub := range layer {
			d.applyPolicy(&d.calls[sub.Index])
		}
	}
}

// until is when a stage must have ended: stages before one that holds a
// fail-closed hook leave it the last quarter of the phase's time.
func (d *dispatch) until(role phases.Role) time.Time {
	later := false
	for _, s := range d.phase.Stages {
		if later && s.Role != phases.RoleObserve && s.FailClosed {
			return d.start.Add(d.granted * 3 / 4)
		}
		later = later || s.Role == role
	}
	return d.deadline
}

// parallel runs the hooks of a layer at the same time. One hook needs no
// goroutine: a call always returns at its deadline.
func (d *dispatch) parallel(ctx context.Context, layer []*plan.Subscription, until time.Time) {
	var first *call
	var others sync.WaitGroup
	for _, sub := range layer {
		c := &d.calls[sub.Index]
		switch {
		case c.settled:
		case first == nil:
			first = c
		default:
			others.Go(func() { d.call(ctx, c, until) })
		}
	}
	if first != nil {
		d.call(ctx, first, until)
	}
	others.Wait()
}

// serial runs the hooks of a layer one by one; each sees what those before it
// rewrote.
func (d *dispatch) serial(ctx context.Context, layer []*plan.Subscription, until time.Time) {
	for _, sub := range layer {
		c := &d.calls[sub.Index]
		if c.settled {
			continue
		}
		d.call(ctx, c, until)
		if len(c.entries) == 0 {
			continue
		}
		d.mergeOnce()
		if err := d.rewrite(); err != nil {
			c.entries = nil
			c.fail(phases.Errorf(phases.CauseInvalidReply, "rewrite: %w", err))
		}
	}
}

// rewrite applies the merged rewrites to the request's input.
func (d *dispatch) rewrite() error {
	in, err := rewritten(d.rq.input, d.merged.Merged.Rewrites)
	if err == nil {
		d.input = in
	}
	return err
}

// merge merges what has been answered so far, and applies the failure policies
// of those who lost a slot. A loser's fallback takes part in a second merge.
func (d *dispatch) merge() {
	d.mergeOnce()
	again := false
	for _, loss := range d.merged.Losses {
		c := &d.calls[loss.Reply]
		if c.failure != nil {
			continue
		}
		c.fail(phases.Errorf(loss.Cause, "another subscription holds %s", loss.Slot))
		before := len(c.entries)
		d.applyPolicy(c)
		again = again || len(c.entries) != before
	}
	if again {
		d.mergeOnce()
	}
	for err := d.rewrite(); err != nil; err = d.rewrite() {
		if !d.unfit(err) {
			d.failed = phases.Errorf(phases.CauseInvalidReply, "the rewrites do not fit: %w", err)
			d.failed.Phase = d.phase.Row.Phase
			return
		}
	}
}

// unfit takes the answer back whose rewrite does not apply, by the policy of its
// hook. It reports false if that is nobody's.
func (d *dispatch) unfit(err error) bool {
	owner := codedError(err).Subscription
	for i := range d.calls {
		c := &d.calls[i]
		if c.sub.ID != owner || len(c.entries) == 0 {
			continue
		}
		c.entries = nil
		if c.failure == nil { // a fallback that does not fit either is dropped
			c.fail(phases.Errorf(phases.CauseInvalidReply, "%w", err))
			d.applyPolicy(c)
		}
		d.mergeOnce()
		return true
	}
	return false
}

func (d *dispatch) mergeOnce() {
	replies := make([]merge.Reply, len(d.calls))
	for i := range d.calls {
		c := &d.calls[i]
		replies[i] = merge.Reply{Hook: &c.hook.merge, Entries: c.entries, Dropped: c.dropped, CachedFrom: c.run.CachedFrom}
	}
	limits := merge.Limits{TotalChars: d.rq.scope.charsLeft(d.phase.Row.Phase), CountTokens: d.engine.opts.CountTokens}
	d.merged = merge.Merge(d.phase.Row, replies, d.sets, limits)
}

// applyPolicy does what the operator wants of a failed hook. Of a shadow hook
// nothing is applied, its failure neither.
func (d *dispatch) applyPolicy(c *call) {
	if c.failure == nil {
		return
	}
	word := c.sub.OnFailure.For(c.failure.Code)
	switch {
	case c.sub.Shadow:
		c.notes = append(c.notes, phases.Diagnostic{
			Code: string(c.failure.Code), Severity: phases.SeverityInfo, Plugin: c.sub.Plugin, Subscription: c.sub.ID,
			Message: fmt.Sprintf("the shadow hook %s failed and would have been treated as %s: %s", c.sub.ID, word, c.failure.Message),
		})
	case word == phases.FailClosed:
		d.failClosed(c)
	case word == phases.UseInstead:
		d.useFallback(c)
	default:
		d.failOpen(c, "nothing of it was used")
	}
}

// failClosed fails the phase; the first reason stays.
func (d *dispatch) failClosed(c *call) {
	if d.failed == nil {
		d.failed = d.located(c, c.failure)
	}
}

// useFallback puts the fallback contributions in the place of the answer. They
// pass the same checks as real ones. Where nothing of them is left, a hook that
// may decide fails closed: a guard must not open because of a missing grant.
func (d *dispatch) useFallback(c *call) {
	admitted, err := merge.Admit(d.phase.Row, &c.hook.merge, c.sub.Fallback)
	c.dropped = append(c.dropped, admitted.Dropped...)
	c.notes = append(c.notes, admitted.Diagnostics...)
	if err == nil && len(admitted.Entries) > 0 {
		c.entries = append(c.entries, admitted.Entries...)
		d.failOpen(c, "its fallback was used")
		return
	}
	if slices.Contains(c.sub.Kinds, phases.KindDecision) {
		d.failClosed(c)
		return
	}
	d.failOpen(c, "its fallback was refused")
}

// failOpen leaves the mark that every failure leaves which did not stop its
// phase.
func (d *dispatch) failOpen(c *call, what string) {
	c.notes = append(c.notes, phases.Diagnostic{
		Code: phases.CodeFailOpen, Severity: phases.SeverityWarning, Plugin: c.sub.Plugin, Subscription: c.sub.ID, Slot: string(c.failure.Code),
		Message: fmt.Sprintf("%s failed (%s: %s); %s", c.sub.ID, c.failure.Code, c.failure.Message, what), Visibility: c.sub.Visibility,
	})
	d.engine.emit(Event{Kind: EventFailOpen, Plugin: c.sub.Plugin, Subscription: c.sub.ID, Phase: d.phase.Row.Phase, Code: string(c.failure.Code), Detail: c.failure.Message})
}

// located says where an error happened.
func (d *dispatch) located(c *call, err *phases.Error) *phases.Error {
	at := *err
	at.Phase, at.Subscription = d.phase.Row.Phase, c.sub.ID
	return &at
}

// fail settles a call with a failure; the policy is applied later, in plan
// order.
func (c *call) fail(err *phases.Error) {
	c.failure, c.settled = err, true
	c.run.Code, c.run.PluginCode = string(err.Code), err.PluginCode
	switch err.Code {
	case phases.CauseTimeout:
		c.run.State = phases.StateTimedOut
	case phases.CauseBudgetExhausted:
		c.run.State = phases.StateBudgetExhausted
	case phases.CauseUnavailable, phases.CauseQuarantined, phases.CauseBreakerOpen:
		c.run.State = phases.StateUnavailable
	case phases.CauseCancelled:
		c.run.State, c.failure = phases.StateCancelled, nil
	default:
		c.run.State = phases.StateFailed
	}
}

// codedError makes any error a coded one.
func codedError(err error) *phases.Error {
	if coded, ok := errors.AsType[*phases.Error](err); ok {
		return coded
	}
	return phases.Errorf(phases.CauseInternal, "%w", err)
}
