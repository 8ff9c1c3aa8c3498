package runtime

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/grapnelhq/grapnel/internal/engine/bounded"
	"github.com/grapnelhq/grapnel/internal/engine/plan"
	"github.com/grapnelhq/grapnel/internal/engine/turnstate"
	"github.com/grapnelhq/grapnel/internal/text/suggest"
	"github.com/grapnelhq/grapnel/phases"
)

// PhaseError says that a phase failed closed, was denied its budget or was cancelled. Outcome holds everything that
// is known.
type PhaseError struct {
	// Coded says where and why; errors.As finds it.
	Coded   *phases.Error
	Outcome *phases.Outcome
}

// Error implements error.
func (e *PhaseError) Error() string { return e.Coded.Error() }

// Unwrap returns the coded error.
func (e *PhaseError) Unwrap() error { return e.Coded }

// dispatch runs a phase: the hooks of each stage, layer by layer, and the merge of their answers.
func (e *dispatcher) dispatch(ctx context.Context, g *generation, rq *request) (*phases.Outcome, error) {
	if err := e.checkInput(rq.input); err != nil {
		return nil, err
	}
	switch in := rq.input.(type) {
	case *phases.PostTurnInput:
		rq.input = in.Bounded()
	case *phases.PreEndInput:
		rq.input = rq.state.Counted(in)
	}
	d := e.prepare(ctx, g, rq)
	for i := range d.phase.Stages {
		if d.failed != nil || bounded.Cancelled(ctx) {
			break
		}
		d.stage(ctx, &d.phase.Stages[i])
	}
	out, err := d.finish(ctx)
	d.release() // not after a panic, when hooks may still be on their way
	return out, err
}

// stage runs the hooks of one stage and applies their failure policies. Transforming hooks run one by one, each on
// the previous one's rewrites; all others run at the same time, layer by layer, after all conditions. Observers are
// queued in finish.
func (d *dispatch) stage(ctx context.Context, s *plan.Stage) {
	if s.Role == phases.RoleObserve {
		return
	}
	if d.mergeBefore(s.Role); d.failed != nil {
		return
	}
	d.advance()
	until := d.until(s.Role)
	if s.Role == phases.RoleTransform {
		d.eachCall(s, func(c *call) { d.transform(ctx, c, until) })
	} else {
		d.eachCall(s, d.condition)
		for _, layer := range s.Layers {
			d.parallel(ctx, layer, until)
		}
	}
	d.eachCall(s, d.applyPolicy)
}

// finish merges, checks what was required, settles what did not run, queues the observers and builds the outcome.
func (d *dispatch) finish(ctx context.Context) (*phases.Outcome, error) {
	if bounded.Cancelled(ctx) && d.failed == nil {
		d.failed = bounded.TimeUp(ctx)
		d.failed.Phase = d.phase.Row.Phase
	}
	d.merge()
	d.requireCompleted()
	d.settleRest(ctx)
	if d.failed == nil {
		d.observe(ctx)
	}
	d.denyOnFailure()
	d.boundForced()
	used := time.Since(d.start)
	out := d.outcome(ctx, used)
	if d.phase.Row.TurnTime {
		d.rq.state.Debit(used)
	}
	from := turnstate.Source{Context: &d.rq.context, CallID: d.rq.callID, Facts: d.facts, At: d.engine.opts.Now()}
	d.rq.state.Add(from, d.rq.input, out, &d.merged, d.phase.Phase)
	if d.failed == nil {
		out.Diagnostics = append(out.Diagnostics, d.addJobs(ctx, &d.merged)...)
	}
	d.rq.state.AddAudits(d.engine.reportAudits(d.gen, d.phase.Row.Phase, &d.merged))
	for _, open := range d.phase.unguarded {
		d.engine.emit(open)
	}
	for i := range out.Runs {
		d.engine.report(ctx, &d.calls[i].span, &out.Runs[i], d.calls[i].failure)
	}
	d.reportDispatch(used)
	if out.Error != nil {
		return out, &PhaseError{Coded: out.Error, Outcome: out}
	}
	return out, nil
}

func (e *dispatcher) checkInput(in phases.Input) error {
	if _, ok := e.table.Lookup(phases.PhaseOf(in)); !ok {
		return fmt.Errorf("unknown phase %q%s", phases.PhaseOf(in), suggest.DidYouMean(string(phases.PhaseOf(in)), e.table.Names()))
	}
	if err := phases.ValidateInput(in); err != nil {
		return fmt.Errorf("input of %s: %w", phases.PhaseOf(in), err)
	}
	return nil
}

// prepare begins a dispatch: its budget, its view, and a call for each expected hook.
func (e *dispatcher) prepare(ctx context.Context, g *generation, rq *request) *dispatch {
	d, ok := e.spare.Get().(*dispatch)
	if !ok {
		d = &dispatch{}
	}
	rq.input = withoutFacts(rq.input)
	d.engine, d.gen, d.rq, d.input = e, g, *rq, rq.input
	d.begin(ctx, g.planned.Load().phases[phases.PhaseOf(rq.input)].Phase)
	phase := g.phaseOf(ctx, phases.PhaseOf(rq.input), d.start.Add(d.granted*3/4)) // the rest is for those that are up
	d.phase, d.runs = phase, slices.Clone(phase.runs)
	d.sets = rq.state.Sets(rq.input)
	d.policies, d.contexts = d.sets.Policies, d.sets.Contexts
	d.chars = rq.state.CharsLeft(phase.Row.Phase)
	d.calls = slices.Grow(d.calls, len(phase.Expected))[:len(phase.Expected)] // zero, see release
	for i, sub := range phase.Expected {
		c := &d.calls[i]
		c.dispatch, c.sub, c.hook, c.run = d, sub, phase.hooks[i], &d.runs[i]
		if c.settled = c.run.State == phases.StateDisabled; !c.settled && sub.Perhaps() {
			c.fail(c.hook.in.Unavailable())
		}
	}
	return d
}

// begin sets the time of a dispatch.
func (d *dispatch) begin(ctx context.Context, phase *plan.Phase) {
	d.start, d.granted = time.Now(), phase.Budget
	if phase.Row.TurnTime {
		d.granted = min(d.granted, d.rq.state.TimeLeft())
	}
	d.deadline = d.start.Add(d.granted)
	if callers, ok := ctx.Deadline(); ok && callers.Before(d.deadline) {
		d.deadline = callers
		d.granted = max(0, time.Until(callers))
	}
}

// release gives the dispatch back to the engine, for the next one. All hooks have returned or were abandoned; an
// abandoned one has a copy of its message.
func (d *dispatch) release() {
	e := d.engine
	clear(d.calls)
	clear(d.replies)
	d.scratch.Clear()
	d.course, d.calls, d.replies = course{}, d.calls[:0], d.replies[:0]
	e.spare.Put(d)
}

// mergeBefore merges what earlier stages have brought, where the hooks of a stage are to see it.
func (d *dispatch) mergeBefore(role phases.Role) {
	if role == phases.RoleValidate || role == phases.RoleContribute && d.phase.Stages[0].Role == phases.RoleTransform {
		d.merge()
	}
}

func (d *dispatch) eachCall(s *plan.Stage, do func(*call)) {
	for _, layer := range s.Layers {
		for _, sub := range layer {
			do(&d.calls[sub.Index])
		}
	}
}

// until is when a stage must end: one before a fail-closed stage leaves that one the last quarter of the phase's
// time.
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

// parallel runs the hooks of a layer at the same time: it sends all messages and then waits for the answers, those
// with the earliest deadline first. Only calls that have to wait before they are sent need goroutines.
func (d *dispatch) parallel(ctx context.Context, layer []*plan.Subscription, until time.Time) {
	sent := d.sent[:0]
	for _, sub := range layer {
		c := &d.calls[sub.Index]
		if d.recall(c); c.settled || d.refuse(ctx, c, until) {
			continue
		}
		if !d.send(ctx, c, until) {
			d.others.Go(func() { d.call(ctx, c, until) })
		} else if c.sent != nil {
			sent = append(sent, c)
		}
	}
	slices.SortStableFunc(sent, func(a, b *call) int { return a.sent.deadline.Compare(b.sent.deadline) })
	for _, c := range sent {
		d.collect(c)
	}
	clear(sent)
	d.sent = sent
	d.others.Wait()
}

// transform runs a hook that may rewrite the input; the next one sees its rewrites.
func (d *dispatch) transform(ctx context.Context, c *call, until time.Time) {
	if d.condition(c); c.settled {
		return
	}
	if d.recall(c); !c.settled {
		d.call(ctx, c, until)
	}
	if len(c.entries) == 0 {
		return
	}
	d.mergeOnce()
	if err := d.rewrite(); err != nil {
		c.entries = nil
		c.fail(phases.Errorf(phases.CauseInvalidReply, "rewrite: %w", err))
	}
}
