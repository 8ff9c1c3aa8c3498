package runtime

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/grapnelhq/grapnel/internal/engine/background"
	"github.com/grapnelhq/grapnel/internal/engine/bounded"
	"github.com/grapnelhq/grapnel/internal/engine/jobs"
	"github.com/grapnelhq/grapnel/internal/engine/merge"
	"github.com/grapnelhq/grapnel/internal/engine/turnstate"
	"github.com/grapnelhq/grapnel/phases"
)

// codePhaseFailed: a hook did not run because its phase had failed before, or an earlier phase has stopped the turn.
const codePhaseFailed = "phase_failed"

func (d *dispatch) settleRest(ctx context.Context) {
	if d.failed == nil {
		return
	}
	code := codePhaseFailed
	if bounded.Cancelled(ctx) {
		code = string(phases.CauseCancelled)
	}
	for i := range d.calls {
		if c := &d.calls[i]; !c.settled {
			c.settled, c.run.State, c.run.Code = true, phases.StateCancelled, code
		}
	}
}

func (d *dispatch) requireCompleted() {
	if d.failed != nil {
		return
	}
	for _, id := range d.phase.Require {
		c := d.callOf(id)
		if c == nil {
			d.failed = &phases.Error{Code: phases.CauseRequiredMissing, Phase: d.phase.Row.Phase, Subscription: id, Message: "it is required and no plugin offers it"}
			return
		}
		if run := c.run; !run.State.Completed() && !c.declined {
			d.failed = phases.Errorf(phases.CauseRequiredMissing, "it is required and did not complete: %s", cmp.Or(run.Code, string(run.State)))
			d.failed.Phase, d.failed.Subscription = d.phase.Row.Phase, id
			return
		}
	}
}

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

func (d *dispatch) denyOnFailure() {
	if d.failed == nil || !d.phase.Row.Decides() || d.phase.Row.FailsOpen || d.failed.Code == phases.CauseCancelled {
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

// boundForced counts a deny of the turn's end, or lets the turn end that was made to go on often enough. A failed phase
// makes no turn go on.
func (d *dispatch) boundForced() {
	in, ok := d.input.(*phases.PreEndInput)
	decided := d.merged.Decision
	switch {
	case !ok || decided == nil || decided.Verdict != phases.VerdictDeny:
	case d.failed != nil:
		decided.Verdict = phases.VerdictAllow
	case in.Forced < phases.MaxForced:
		d.rq.state.Force()
	default:
		decided.Verdict = phases.VerdictAllow
		note := phases.Diagnostic{
			Code: phases.CodeForcedEnough, Severity: phases.SeverityWarning, SafeForUser: true,
			Message: fmt.Sprintf("the end of the turn was denied again, after %d times: the turn may end", in.Forced),
		}
		for _, r := range decided.Reasons {
			if c := d.callOf(r.Subscription); c != nil && r.Verdict == phases.VerdictDeny {
				note.Plugin, note.Subscription = c.sub.Plugin, c.sub.ID
				break
			}
		}
		d.merged.Diagnostics = append(d.merged.Diagnostics, note)
		d.engine.emit(Event{
			Kind: EventDiagnostic, Plugin: note.Plugin, Subscription: note.Subscription, Phase: phases.PreEnd,
			State: string(note.Severity), Code: note.Code, Message: note.Message,
		})
	}
}

func (d *dispatch) outcome(ctx context.Context, used time.Duration) *phases.Outcome {
	plugins := d.gen.rows()
	if d.facts != nil && d.failed == nil {
		d.inform() // of what goes on
	}
	out := &phases.Outcome{
		Phase: d.phase.Row.Phase, Contributions: d.merged.Contributions, Shadowed: d.merged.Shadowed, Decision: d.merged.Decision, Merged: d.merged.Merged,
		Runs: d.runs, Plugins: plugins.rows, Error: d.failed, Omitted: d.merged.Omitted, Sources: d.merged.Sources,
		Budget:    phases.BudgetUse{GrantedMS: turnstate.Millis(d.granted), UsedMS: turnstate.Millis(used), SpentBy: []phases.Spent{}},
		Rewritten: d.input,
	}
	d.refer(ctx, out)
	if d.failed == nil { // a failed phase delivers nothing
		var before []phases.Omitted
		out.Merged.Reminders, before = d.engine.sessions.Undelivered(d.rq.context, out.Merged.Reminders)
		out.Omitted = append(out.Omitted, before...)
	}
	for i := range d.calls {
		c := &d.calls[i]
		c.run.Contributions = d.merged.Parts[i].Kept
		c.markKept(len(c.run.Contributions))
		if c.run.Verdict != "" {
			c.run.DecisionRef = out.DecisionRef
		}
		c.run.Cut = append(c.run.Cut, d.merged.Parts[i].Cuts...)
		if c.run.DurationMS > 0 {
			out.Budget.SpentBy = append(out.Budget.SpentBy, phases.Spent{Subscription: c.sub.ID, MS: c.run.DurationMS})
		}
	}
	out.Diagnostics = d.allDiagnostics(plugins.notes)
	return out
}

// refer puts on a decision which prompt was in force: the agent's last one, else the thread's.
func (d *dispatch) refer(ctx context.Context, out *phases.Outcome) {
	ref := d.rq.prompt
	if out.Decision == nil {
		return
	}
	if ref == nil {
		for _, ofAgent := range []bool{true, false} {
			last := d.engine.sessions.Previous(d.rq.context, ofAgent)
			if d.phase.Row.Phase == phases.ToolPreCall { // the engine may be younger than the prompt
				last, _ = d.engine.lastPrompt(ctx, d.rq.context, ofAgent) // the next compilation reports an error
			}
			if last != nil && (ref == nil || last.Seq > ref.Seq) {
				ref = &phases.DecisionRef{ManifestID: last.ManifestID, Seq: last.Seq}
			}
		}
	}
	if out.DecisionRef = ref; out.Error != nil {
		own := *out.Error // several calls may share one error
		own.DecisionRef, out.Error = ref, &own
	}
}

// allDiagnostics lists the diagnostics about plugins, the plan, each hook in plan order, and the merge.
func (d *dispatch) allDiagnostics(plugins []phases.Diagnostic) []phases.Diagnostic {
	n := len(plugins) + len(d.phase.notes) + len(d.merged.Diagnostics)
	for i := range d.calls {
		n += len(d.calls[i].notes)
	}
	all := append(make([]phases.Diagnostic, 0, n), plugins...)
	all = append(all, d.phase.notes...)
	for i := range d.calls {
		all = append(all, d.calls[i].notes...)
	}
	return append(all, d.merged.Diagnostics...)
}

func (d *dispatch) reportDispatch(used time.Duration) {
	ev := Event{Kind: EventDispatch, Phase: d.phase.Row.Phase, State: string(phases.StateSucceeded), Took: used}
	if d.failed != nil {
		ev.State, ev.Code = string(phases.StateFailed), string(d.failed.Code)
		if d.failed.Code == phases.CauseCancelled {
			ev.State = string(phases.StateCancelled)
		}
	}
	d.engine.emit(ev)
}

func (d *dispatch) enqueue(ctx context.Context, c *call) error {
	sub, in := c.sub, d.input
	payload, err := json.Marshal(in)
	if err != nil {
		return fmt.Errorf("input of %s: %w", phases.PhaseOf(in), err)
	}
	j := jobs.Job{Plugin: sub.Plugin, Subscription: sub.ID, Phase: phases.PhaseOf(in), Context: d.rq.context, Payload: payload, Trace: c.span.trace}
	if len(sub.Condition.Policies()) > 0 || c.hook.sight.Policy {
		j.Policies = d.policies
	}
	if c.hook.sight.Context {
		j.Contexts = d.contexts
	}
	if d.rq.key != "" {
		j.IdempotencyKey = d.rq.key + "/" + sub.ID
	}
	if r := sub.Retry; r != nil {
		j.Attempts, j.Backoff = r.Attempts, r.Backoff.D()
	}
	return d.engine.background.Add(ctx, j)
}

// jobAttempts is how often a background_job is tried.
const jobAttempts = 5

// addJobs queues the background_job contributions of a phase, and returns a diagnostic for each that was refused.
func (d *dispatch) addJobs(ctx context.Context, merged *merge.Result) []phases.Diagnostic {
	e := d.engine
	var refused []phases.Diagnostic
	for _, owned := range merged.Jobs {
		job := owned.Value
		j := jobs.Job{
			Kind: job.JobKind, Plugin: owned.Hook.Plugin, Subscription: owned.Hook.Subscription, Context: d.rq.context, Payload: job.Payload,
			IdempotencyKey: job.IdempotencyKey, NotBefore: job.NotBefore, Attempts: jobAttempts, Backoff: time.Second,
		}
		if c := d.callOf(j.Subscription); c != nil {
			j.Trace = c.span.trace
		}
		if in := d.gen.byName[j.Plugin]; in != nil && phases.Allows(in.Declared.Grants.See, "policy") {
			j.Policies = merged.Policies
		}
		if err := e.background.Add(ctx, j); err != nil {
			e.jobChanged(j, background.StateRefused, err)
			cause := phases.CodeOf(err)
			refused = append(refused, phases.Diagnostic{
				Code: phases.CodeJobRefused, Severity: phases.SeverityWarning, Cause: cause, Plugin: j.Plugin, Subscription: j.Subscription, SafeForUser: true,
				Message: fmt.Sprintf("a background_job of %s was not queued (%s)", j.Subscription, cause),
			})
		}
	}
	return refused
}
