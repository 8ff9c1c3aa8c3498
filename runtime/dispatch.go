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
// Engine.dispatch, which lends it to the next one: nothing that outlives the call
// may point into it. Hooks of one layer write to their own call only.
type dispatch struct {
	engine *Engine
	gen    *generation
	phase  *plannedPhase
	rq     request

	start    time.Time
	deadline time.Time
	granted  time.Duration
	// chars is the room for text that the turn has left; negative for none.
	chars int
	// sets is what the turn has; policies and contexts are what hooks may see of
	// it, for validators with what this phase has brought.
	sets     merge.State
	policies []phases.PolicyEntry
	contexts []phases.ContextEntry
	// input is the request's with the applied rewrites: what handlers are sent and
	// conditions judge.
	input   phases.Input
	applied []phases.MergedRewrite
	// keys are shared by the calls that look for answers in memory.
	keys  sharedKeys
	calls []call
	// replies are the calls as merging sees them.
	replies []merge.Reply
	// runs are the rows of the ledger, which the outcome takes over; each call
	// writes its own.
	runs []phases.Run
	// failed is why the phase failed closed.
	failed *phases.Error
	// merged is the result of the last merge, of so many.
	merged merge.Result
	merges int
}

// call is the part of one expected hook.
type call struct {
	sub  *plan.Subscription
	hook *hook
	run  *phases.Run
	// settled says that the state is final: the hook ran, or will not.
	settled bool
	// ownTime says that the last attempt had the hook's whole timeout, and was not
	// cut short by the phase, the turn or the caller.
	ownTime bool
	entries []merge.Entry
	dropped []merge.Drop
	notes   []phases.Diagnostic
	failure *phases.Error
	// judged are the rewrites in the input that the hook was asked about.
	judged []phases.MergedRewrite
	mark   failMark
	// span is the call's place in the host's trace.
	span span
	// once is told before the plugin is, by nil for most; see attempting.
	once func(ctx context.Context) *phases.Error
	// key and epoch say where the answer is kept; no key for one that is not.
	key   string
	epoch uint64
}

// dispatch runs a phase stage by stage and layer by layer, each stage after its
// conditions, merging before the validators and at the end.
func (e *Engine) dispatch(ctx context.Context, g *generation, rq request) (*phases.Outcome, error) {
	if _, ok := e.table.Lookup(rq.input.Phase()); !ok {
		return nil, fmt.Errorf("unknown phase %q%s", rq.input.Phase(), phases.DidYouMean(string(rq.input.Phase()), e.table.Names()))
	}
	if err := phases.ValidateInput(rq.input); err != nil {
		return nil, fmt.Errorf("input of %s: %w", rq.input.Phase(), err)
	}
	rq.input = phases.Bounded(rq.input)
	d := e.prepare(ctx, g, rq)
	for i := range d.phase.Stages {
		if d.failed != nil || cancelled(ctx) {
			break
		}
		d.stage(ctx, &d.phase.Stages[i])
	}
	out, err := d.finish(ctx)
	d.release() // not after a panic, when hooks may still be on their way
	return out, err
}

// cancelled reports whether the caller has gone. A caller's deadline is a budget
// like any other: who had no time left says so in the ledger.
func cancelled(ctx context.Context) bool { return errors.Is(ctx.Err(), context.Canceled) }

func (e *Engine) prepare(ctx context.Context, g *generation, rq request) *dispatch {
	d, ok := e.spare.Get().(*dispatch)
	if !ok {
		d = &dispatch{}
	}
	phase := g.planned.Load().phases[rq.input.Phase()]
	*d = dispatch{
		engine: e, gen: g, phase: phase, rq: rq, input: rq.input, start: time.Now(),
		calls: d.calls, replies: d.replies, runs: slices.Clone(phase.runs),
	}
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
	d.chars = rq.scope.charsLeft(phase.Row.Phase)
	for i, sub := range phase.Expected {
		run := &d.runs[i]
		d.calls = append(d.calls, call{sub: sub, hook: phase.hooks[i], run: run, settled: run.State == phases.StateDisabled})
	}
	return d
}

// release gives the dispatch back to the engine, for its next one. All hooks have
// been waited for or left; what was left knows the message that it was sent, and
// nothing of the dispatch.
func (d *dispatch) release() {
	e := d.engine
	clear(d.calls)
	clear(d.replies)
	*d = dispatch{calls: d.calls[:0], replies: d.replies[:0]}
	e.spare.Put(d)
}

// condition settles a hook whose condition is false or fails. It judges what the
// handler would be sent now: the input with what other hooks have rewritten, and the
// sets with what earlier stages have brought.
func (d *dispatch) condition(c *call) {
	if c.settled {
		return
	}
	c.judged, c.run.RewrittenBy = d.applied, owners(d.applied)
	if c.sub.Condition == nil {
		return
	}
	ok, err := c.sub.Condition.Eval(cond.Env{Context: &d.rq.context, Input: d.input, Policies: d.policies})
	switch {
	case err != nil:
		c.fail(conditionFailure(err))
	case !ok:
		c.run.State, c.settled = phases.StateFiltered, true
	}
}

// stage runs one stage and applies the failure policies of its hooks.
func (d *dispatch) stage(ctx context.Context, s *plan.Stage) {
	switch s.Role {
	case phases.RoleValidate:
		d.merge()
	case phases.RoleContribute:
		if d.phase.Stages[0].Role == phases.RoleTransform {
			d.merge() // with the fallbacks of its hooks
		}
	case phases.RoleObserve:
		return // queued when all else is done
	}
	if d.failed != nil {
		return
	}
	d.advance()
	until := d.until(s.Role)
	if s.Role == phases.RoleTransform {
		for _, layer := range s.Layers {
			d.serial(ctx, layer, until)
		}
	} else {
		for _, layer := range s.Layers {
			for _, sub := range layer {
				d.condition(&d.calls[sub.Index])
			}
		}
		for _, layer := range s.Layers {
			d.parallel(ctx, layer, until)
		}
	}
	for _, layer := range s.Layers {
		for _, sub := range layer {
			d.applyPolicy(&d.calls[sub.Index])
		}
	}
}

// advance shows the next stage what earlier ones have brought.
func (d *dispatch) advance() {
	if d.merges > 0 {
		d.policies, d.contexts, d.keys = d.merged.Policies, d.merged.Contexts, sharedKeys{}
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

// parallel runs the hooks of a layer at the same time. What is answered from
// memory or refused at once needs no goroutine, and neither does a single hook: a
// call always returns at its deadline.
func (d *dispatch) parallel(ctx context.Context, layer []*plan.Subscription, until time.Time) {
	var one *call
	open := 0
	for _, sub := range layer {
		c := &d.calls[sub.Index]
		if d.recall(c); !c.settled && !d.refuse(ctx, c, until) {
			one = c
			open++
		}
	}
	switch open {
	case 0:
	case 1:
		d.call(ctx, one, until)
	default:
		d.together(ctx, layer, one, until)
	}
}

// together runs the open calls of a layer at the same time, the given one here.
func (d *dispatch) together(ctx context.Context, layer []*plan.Subscription, here *call, until time.Time) {
	var others sync.WaitGroup
	for _, sub := range layer {
		if c := &d.calls[sub.Index]; !c.settled && c != here {
			others.Go(func() { d.call(ctx, c, until) })
		}
	}
	d.call(ctx, here, until)
	others.Wait()
}

// serial runs the hooks of a layer one by one; each sees what those before it
// rewrote.
func (d *dispatch) serial(ctx context.Context, layer []*plan.Subscription, until time.Time) {
	for _, sub := range layer {
		c := &d.calls[sub.Index]
		if d.condition(c); c.settled {
			continue
		}
		if d.recall(c); !c.settled {
			d.call(ctx, c, until)
		}
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

// codedError makes any error a coded one.
func codedError(err error) *phases.Error {
	if coded, ok := errors.AsType[*phases.Error](err); ok {
		return coded
	}
	return phases.Errorf(phases.CauseInternal, "%w", err)
}
