package runtime

import (
	"context"
	"slices"
	"time"

	"github.com/grapnelhq/grapnel/phases"
)

// codePhaseFailed is the code of hooks that were not run because their phase had
// failed closed before their stage.
const codePhaseFailed = "phase_failed"

// finish merges, checks what was required, settles what did not run, queues the
// observers and writes the outcome.
func (d *dispatch) finish(ctx context.Context) (*phases.Outcome, error) {
	if cancelled(ctx) && d.failed == nil {
		d.failed = timeUp(ctx)
		d.failed.Phase = d.phase.Row.Phase
	}
	d.merge()
	d.requireCompleted()
	d.settleRest(ctx)
	if d.failed == nil {
		d.observe(ctx)
	}
	d.denyOnFailure()
	used := time.Since(d.start)
	out := d.outcome(used)
	if d.phase.Row.TurnTime {
		d.rq.scope.debit(used)
	}
	d.rq.scope.add(out, &d.merged, d.phase.Phase)
	if d.failed == nil {
		out.Diagnostics = append(out.Diagnostics, d.addJobs(ctx, &d.merged)...)
	}
	out.Diagnostics = append(out.Diagnostics, d.audit(ctx, &d.merged)...)
	for _, open := range d.phase.unguarded {
		d.engine.emit(open)
	}
	d.tellRuns(ctx, out)
	d.tellDispatch(used)
	if out.Error != nil {
		return out, &PhaseError{Coded: out.Error, Outcome: out}
	}
	return out, nil
}

// settleRest gives a state to every hook that has none because its phase was
// cancelled or failed before its stage.
func (d *dispatch) settleRest(ctx context.Context) {
	if d.failed == nil {
		return
	}
	code := codePhaseFailed
	if cancelled(ctx) {
		code = string(phases.CauseCancelled)
	}
	for i := range d.calls {
		if c := &d.calls[i]; !c.settled {
			c.settled, c.run.State, c.run.Code = true, phases.StateCancelled, code
		}
	}
}

// requireCompleted fails the phase when a required subscription did not
// complete, whatever the reason.
func (d *dispatch) requireCompleted() {
	if d.failed != nil {
		return
	}
	for _, id := range d.phase.Require {
		i := slices.IndexFunc(d.calls, func(c call) bool { return c.sub.ID == id })
		if i < 0 {
			d.failed = &phases.Error{Code: phases.CauseRequiredMissing, Phase: d.phase.Row.Phase, Subscription: id, Message: "it is required and no plugin offers it"}
			return
		}
		if run := d.calls[i].run; !run.State.Completed() {
			d.failed = phases.Errorf(phases.CauseRequiredMissing, "it is required and did not complete: %s %s", run.State, run.Code)
			d.failed.Phase, d.failed.Subscription = d.phase.Row.Phase, id
			return
		}
	}
}

// observe hands the observers to the background.
func (d *dispatch) observe(ctx context.Context) {
	d.advance()
	for i := range d.calls {
		c := &d.calls[i]
		if c.sub.Stage != phases.RoleObserve {
			continue
		}
		if d.condition(c); !c.settled {
			c.settled, c.run.State = true, phases.StateQueued
			_, c.span = d.engine.beginRun(ctx, phases.Trace{}, c.run)
			if err := d.enqueue(ctx, c); err != nil {
				c.fail(codedError(err))
			}
		}
		d.applyPolicy(c)
	}
}

// denyOnFailure makes a phase that takes decisions deny when it failed closed.
func (d *dispatch) denyOnFailure() {
	if d.failed == nil || !d.phase.Row.Decides() || d.failed.Code == phases.CauseCancelled {
		return
	}
	if d.merged.Decision == nil {
		d.merged.Decision = &phases.Decided{}
	}
	d.merged.Decision.Verdict = phases.VerdictDeny
	d.merged.Decision.Reasons = append(d.merged.Decision.Reasons, phases.Reason{
		Subscription: d.failed.Subscription, Verdict: phases.VerdictDeny, Reason: "the phase failed closed", ReasonCode: string(d.failed.Code),
	})
}

func (d *dispatch) outcome(used time.Duration) *phases.Outcome {
	out := &phases.Outcome{
		Phase: d.phase.Row.Phase, Contributions: d.merged.Contributions, Shadowed: d.merged.Shadowed, Decision: d.merged.Decision, Merged: d.merged.Merged,
		Runs: d.runs, Plugins: d.gen.rows(), Error: d.failed, LeftOut: d.merged.LeftOut, Sources: d.merged.Sources,
		Budget:    phases.BudgetUse{GrantedMS: millis(d.granted), UsedMS: millis(used), SpentBy: []phases.Spent{}},
		Rewritten: d.input,
	}
	if d.failed == nil { // what a failed phase gives is not delivered
		var before []phases.LeftOut
		out.Merged.Reminders, before = d.engine.memory.undelivered(d.rq.context, out.Merged.Reminders)
		out.LeftOut = append(out.LeftOut, before...)
	}
	for i := range d.calls {
		c := &d.calls[i]
		c.run.Contributions = d.merged.Parts[i].Kept
		c.markKept(len(c.run.Contributions))
		c.run.Cut = append(c.run.Cut, d.merged.Parts[i].Cuts...)
		if c.run.DurationMS > 0 {
			out.Budget.SpentBy = append(out.Budget.SpentBy, phases.Spent{Subscription: c.sub.ID, MS: c.run.DurationMS})
		}
	}
	out.Diagnostics = d.allDiagnostics(out.Plugins)
	return out
}

// allDiagnostics lists what is to be said: about plugins that are not ready,
// about the plan, hook by hook in plan order, about the merge.
func (d *dispatch) allDiagnostics(rows []phases.PluginRow) []phases.Diagnostic {
	n := len(d.phase.notes) + len(d.merged.Diagnostics)
	for i := range d.calls {
		n += len(d.calls[i].notes)
	}
	all := make([]phases.Diagnostic, 0, n)
	for i := range rows {
		row := &rows[i]
		if row.State != phases.PluginReady {
			all = append(all, phases.Diagnostic{
				Code: row.Code, Severity: phases.SeverityWarning, Plugin: row.Plugin,
				Message: "the plugin " + row.Plugin + " is " + string(row.State) + ": " + row.Message, Detail: row.Detail,
			})
		}
		if note, ok := sandboxNote(row); ok {
			all = append(all, note)
		}
	}
	all = append(all, d.phase.notes...)
	for i := range d.calls {
		all = append(all, d.calls[i].notes...)
	}
	return append(all, d.merged.Diagnostics...)
}

// tellRuns tells of each run.
func (d *dispatch) tellRuns(ctx context.Context, out *phases.Outcome) {
	for i := range out.Runs {
		d.engine.tell(ctx, &d.calls[i].span, &out.Runs[i], d.calls[i].failure)
	}
}

// tellDispatch tells how long the phase took.
func (d *dispatch) tellDispatch(used time.Duration) {
	ev := Event{Kind: EventDispatch, Phase: d.phase.Row.Phase, State: string(phases.StateSucceeded), Took: used}
	if d.failed != nil {
		ev.State, ev.Code = string(phases.StateFailed), string(d.failed.Code)
		if d.failed.Code == phases.CauseCancelled {
			ev.State = string(phases.StateCancelled)
		}
	}
	d.engine.emit(ev)
}
