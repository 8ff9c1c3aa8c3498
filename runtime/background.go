package runtime

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/grapnelhq/grapnel/internal/engine/background"
	"github.com/grapnelhq/grapnel/internal/engine/bounded"
	"github.com/grapnelhq/grapnel/internal/engine/jobs"
	"github.com/grapnelhq/grapnel/internal/engine/merge"
	"github.com/grapnelhq/grapnel/internal/engine/pool"
	"github.com/grapnelhq/grapnel/internal/engine/supervise"
	"github.com/grapnelhq/grapnel/internal/engine/turnstate"
	"github.com/grapnelhq/grapnel/phases"
)

// slotTime is how long a queued hook waits for a slot before its job is requeued.
const slotTime = 10 * time.Second

// QueueStatus is the state of an engine's background work.
type QueueStatus = background.Status

// Queue returns the state of background work, of all engines that share the queue. ctx bounds the query of the queue.
func (e *Engine) Queue(ctx context.Context) QueueStatus { return e.background.Status(ctx) }

// WaitBackground waits until no background work is due, or ctx ends.
func (e *Engine) WaitBackground(ctx context.Context) error { return e.background.Idle(ctx) }

// Collect returns a context with which calls of the engine (Dispatch, CompileTurn, Turn.End, …) collect the
// background work that they queue, and what that queues itself. Wait must be called once. It waits until that work or
// ctx has ended, and returns a row for each job in queueing order, never nil. Jobs that wait for a later time or a
// plugin, or go on in another process, are not waited for: they are "queued". One that the queue remembers from
// before, as when a turn ends again, has no row. The error is the context's or the queue's.
func (e *Engine) Collect(ctx context.Context) (calling context.Context, wait func(ctx context.Context) ([]phases.BackgroundRun, error)) {
	return e.background.Collect(ctx)
}

func (e *Engine) serveBackground() {
	if err := e.background.Serve(e.life); err != nil && !errors.Is(err, ErrClosed) {
		e.opts.Logger.Error("background work has stopped", "error", err)
	}
}

type engineRunner struct{ engine *Engine }

var _ background.Runner = engineRunner{}

func (r engineRunner) QuarantinedFor(plugin string) time.Duration {
	in, ok := r.engine.current.Load().byName[plugin]
	if !ok {
		return 0
	}
	if st := in.Status(); st.State == supervise.StateQuarantined {
		return time.Since(st.Since)
	}
	return 0
}

func (r engineRunner) JobChanged(j jobs.Job, state string, err error) {
	r.engine.jobChanged(j, state, err)
}

// Run implements background.Runner: it runs the hook, the host's handler, or the plugin's tool.
func (r engineRunner) Run(ctx context.Context, a *background.Attempt) error {
	e, j := r.engine, a.Job
	g := e.inForce() // also while Close drains the queue
	defer g.leave()
	if j.Kind == "" {
		return e.runQueuedHook(ctx, g, a)
	}
	if handler, ok := e.opts.Jobs[j.Kind]; ok {
		_, err := bounded.Recovered(func() (struct{}, error) { return struct{}{}, handler(ctx, j) })
		return err
	}
	if g.byName[j.Plugin] == nil {
		return background.Unwantedf("the plugin %s is not declared any more", j.Plugin)
	}
	c := &toolCall{
		engine: &e.invoker, gen: g, state: g.outside(), run: newToolRun(g, j.Plugin, j.Kind),
		call: phases.ToolCall{
			Tool: j.Kind, Arguments: j.Payload, Context: j.Context, Policies: j.Policies, IdempotencyKey: j.IdempotencyKey, Trace: j.Trace,
		},
	}
	if j.IdempotencyKey == "" {
		c.once = a.Once
	}
	res, err := c.do(ctx, j.Plugin)
	if res != nil {
		a.Notes = res.Diagnostics
		e.reportNotes(j, res.Diagnostics)
	}
	return err
}

// runQueuedHook runs an observing hook, under the configuration that is in force by now.
func (e *Engine) runQueuedHook(ctx context.Context, g *generation, a *background.Attempt) error {
	j := a.Job
	in, err := phases.DecodeInput(e.table, j.Phase, j.Payload)
	if err != nil {
		return background.Unwantedf("%w", err)
	}
	rq := request{
		context: j.Context, input: in, state: g.outside(),
		key: strings.TrimSuffix(j.IdempotencyKey, "/"+j.Subscription),
	}
	rq.state.Begin(j.Policies, j.Contexts)
	known := g.planned.Load() // before prepare, whose plan may know more
	d := e.prepare(ctx, g, &rq)
	i := slices.IndexFunc(d.calls, func(c call) bool { return c.sub.ID == j.Subscription })
	if i < 0 {
		return noHook(g, known, &j)
	}
	c := &d.calls[i]
	d.condition(c)
	if !idempotent(c.hook.in, c.sub.Name) {
		c.once = a.Once
	}
	var failure *phases.Error
	ctx, c.span = e.beginRun(ctx, j.Trace, c.run)
	if !c.settled {
		failure = d.queued(ctx, c, a.Number)
	}
	e.report(ctx, &c.span, c.run, c.failure)
	e.reportNotes(j, c.notes)
	if rq.state.Unrecorded(false) {
		rq.state.AddRuns(*c.run)
		_ = e.keepEvents(ctx, g, &j.Context, rq.state, false) // it is reported
	}
	a.Run, a.Notes = c.run, c.notes
	if failure == nil {
		for i := range c.entries {
			a.Kinds = append(a.Kinds, phases.KindOf(c.entries[i].Value))
		}
	}
	switch {
	case failure != nil: // may be a cancellation, which c.failure does not hold
		return failure
	case c.failure != nil:
		return c.failure
	case c.run.State == phases.StateDisabled:
		return background.Unwantedf("%s is disabled: %s", c.sub.ID, c.run.Code)
	}
	return nil
}

// noHook says why a plan does not have a job's hook: hooks of a plugin are known only once it has been up.
func noHook(g *generation, p *planned, j *jobs.Job) error {
	for i, in := range g.instances {
		if in.Declared.Name == j.Plugin && p.descriptions[i] == nil {
			return phases.Errorf(phases.CauseUnavailable, "the plugin %s has not described its hooks yet", j.Plugin)
		}
	}
	return background.Unwantedf("%s is not in force any more", j.Subscription)
}

func idempotent(in *pool.Instance, hook string) bool {
	d := in.Description()
	return d != nil && slices.ContainsFunc(d.Hooks, func(h phases.Hook) bool { return h.Name == hook && h.Idempotent })
}

// queued makes one attempt (the queue makes the others) and queues the jobs that the hook contributes.
func (d *dispatch) queued(ctx context.Context, c *call, attempt int) *phases.Error {
	if failure := d.try(ctx, c, attempt, d.start.Add(slotTime+c.sub.Timeout.D())); failure != nil {
		c.fail(failure)
		return failure
	}
	merged := merge.Merge(d.phase.Row, []merge.Reply{{Hook: &c.hook.merge, Entries: c.entries, Dropped: c.dropped}}, d.sets, merge.Limits{})
	c.run.Contributions = merged.Parts[0].Kept
	c.notes = slices.Concat(c.notes, merged.Diagnostics, d.unapplied(c))
	c.notes = slices.Concat(c.notes, d.addJobs(ctx, &merged))
	d.rq.state.AddAudits(d.engine.reportAudits(d.gen, d.phase.Row.Phase, &merged))
	return nil
}

// unapplied reports contributions of a background hook that have no effect because its phase is over.
func (d *dispatch) unapplied(c *call) []phases.Diagnostic {
	var remarks []phases.Diagnostic
	for i := range c.entries {
		if kind := phases.KindOf(c.entries[i].Value); !slices.Contains(phases.AlwaysAccepted(), kind) {
			remarks = append(remarks, phases.Diagnostic{
				Code: phases.CodeNotAllowed, Severity: phases.SeverityWarning, Plugin: c.sub.Plugin, Subscription: c.sub.ID, Visibility: c.sub.Visibility,
				Message: fmt.Sprintf("%s observes in the background: its %s had no effect", c.sub.ID, kind),
			})
		}
	}
	return remarks
}

func (e *Engine) reportNotes(j jobs.Job, remarks []phases.Diagnostic) {
	for _, d := range turnstate.Bounded(remarks) {
		e.emit(Event{
			Kind: EventDiagnostic, Plugin: j.Plugin, Subscription: j.Subscription, Phase: j.Phase,
			State: string(d.Severity), Code: d.Code, Message: d.For(phases.AudienceOperator).Message, Detail: d.Detail,
		})
		if d.Detail != "" {
			continue // it was logged already
		}
		e.opts.Logger.Log(context.Background(), turnstate.LogLevel(d.Severity), "background work reports", "subscription", j.Subscription, "code", d.Code, "message", d.Message)
	}
}
