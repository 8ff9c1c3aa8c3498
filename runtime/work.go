package runtime

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/grapnelhq/grapnel/internal/merge"
	"github.com/grapnelhq/grapnel/internal/supervise"
	"github.com/grapnelhq/grapnel/phases"
)

const (
	// drainTime bounds the drain of background work where the caller of Close sets
	// no deadline.
	drainTime = 2 * time.Second
	// jobAttempts is how often a background_job is tried.
	jobAttempts = 5
	// slotTime is how long a queued hook waits for a slot of its plugin before the
	// worker turns to other jobs.
	slotTime = 10 * time.Second
	// quarantineTime is how long jobs wait for a plugin in quarantine, which only
	// an operator ends.
	quarantineTime = 10 * time.Minute
	// sharedOffers is how often a job that this engine has no use for is put off, for
	// the other engines of a shared queue: some ten minutes, at the queue's pace.
	sharedOffers = 60
)

// The states of jobs in events, beside the words of [JobAction].
const (
	jobRefused   = "refused"
	jobDuplicate = "duplicate"
	jobLost      = "lost"
)

// permanent is an error that no other attempt cures and that is nobody's
// failure: the work is not wanted any more.
type permanent struct{ error }

// Unwrap returns the cause.
func (p permanent) Unwrap() error { return p.error }

// drainQueue lets begun and due work finish before the plugins are stopped.
func (e *Engine) drainQueue(ctx context.Context) error {
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, drainTime)
		defer cancel()
	}
	if err := e.queue.Idle(ctx); err != nil {
		return fmt.Errorf("background work was not finished in time: %w", err)
	}
	return nil
}

// add queues a job. A duplicate is told and is no error.
func (e *Engine) add(ctx context.Context, j Job) error {
	b := e.collectors.register(ctx, &j)
	err := e.queue.Add(ctx, j)
	if err != nil && b != nil {
		b.drop(j.Ticket)
	}
	if errors.Is(err, ErrDuplicateJob) {
		e.jobEvent(j, jobDuplicate, nil)
		return nil
	}
	return err
}

// jobEvent tells what became of a job.
func (e *Engine) jobEvent(j Job, state string, err error) {
	ev := Event{Kind: EventJob, Plugin: j.Plugin, Subscription: j.Subscription, Phase: j.Phase, State: state}
	if err != nil {
		level := slog.LevelWarn
		if state == string(JobRequeue) {
			level = slog.LevelDebug // it says so again every few seconds
		}
		ev.Code, ev.Message, ev.Detail = string(phases.CodeOf(err)), err.Error(), phases.DetailOf(err)
		e.opts.Logger.Log(context.Background(), level, "background job", "kind", j.Kind, "subscription", j.Subscription, "state", state, "error", err)
	}
	e.emit(ev)
}

// attempting is one attempt on its way.
type attempting struct {
	Attempt

	engine *Engine
	gen    *generation
	// begun says that something may have come of it that must not come twice.
	begun bool
	// run, kinds and notes are what a collector is told of a hook; nil and empty for
	// what is none.
	run   *phases.Run
	kinds []phases.Kind
	notes []phases.Diagnostic
}

// work makes one attempt at a job and says what follows from it.
func (e *Engine) work(ctx context.Context, a Attempt) Verdict {
	g := e.inForce() // also while the engine is being closed: that waits for it
	defer g.leave()
	w := &attempting{Attempt: a, engine: e, gen: g}
	if b := e.collectors.of(&a.Job); b != nil {
		ctx = context.WithValue(ctx, backgroundKey{}, b) // what it queues itself
	}
	err := w.perform(ctx)
	v, j := w.verdict(ctx, err), a.Job
	if _, unwanted := errors.AsType[permanent](err); v.Action == JobDead && j.Kind == "" && !unwanted {
		e.emit(Event{
			Kind: EventFailOpen, Plugin: j.Plugin, Subscription: j.Subscription, Phase: j.Phase, Code: string(phases.CodeOf(v.Err)),
			Message: v.Err.Error(), Detail: phases.DetailOf(v.Err),
		})
	}
	e.jobEvent(j, string(v.Action), v.Err)
	w.collected(v)
	return v
}

// once begins what must not come twice. It is told right before a plugin is, and by
// nil for a call that nobody has queued.
func (w *attempting) once(ctx context.Context) *phases.Error {
	if w == nil || w.begun {
		return nil
	}
	if err := w.begin(ctx); err != nil {
		return phases.Errorf(phases.CauseUnavailable, "it cannot be noted that the work begins: %w", err)
	}
	w.begun = true
	return nil
}

// perform runs the hook, the host's handler, or the plugin's tool.
func (w *attempting) perform(ctx context.Context) error {
	e, j := w.engine, w.Job
	if j.Kind == "" {
		return w.hook(ctx)
	}
	if handler, ok := e.opts.Jobs[j.Kind]; ok {
		return handler(ctx, j) // which may run more than once
	}
	if w.gen.byName[j.Plugin] == nil {
		return permanent{fmt.Errorf("the plugin %s is not declared any more", j.Plugin)}
	}
	c := &toolCall{
		engine: e, gen: w.gen, scope: newScope(w.gen.cfg.Budgets.Turn, false), run: newToolRun(w.gen, j.Plugin, j.Kind),
		call: phases.ToolCall{
			Tool: j.Kind, Arguments: j.Payload, Context: j.Context, Policies: j.Policies, IdempotencyKey: j.IdempotencyKey, Trace: j.Trace,
		},
	}
	if j.IdempotencyKey == "" {
		c.once = w.once
	}
	res, err := c.do(ctx, j.Plugin)
	if res != nil {
		w.notes = res.Diagnostics
		e.tellDiagnostics(j, res.Diagnostics)
	}
	return err
}

// tellDiagnostics tells what background work has remarked: nobody has an outcome
// that it could stand in.
func (e *Engine) tellDiagnostics(j Job, remarks []phases.Diagnostic) {
	var bounded notes
	bounded.add(remarks)
	for _, d := range bounded.rows() {
		e.emit(Event{
			Kind: EventDiagnostic, Plugin: j.Plugin, Subscription: j.Subscription, Phase: j.Phase,
			State: string(d.Severity), Code: d.Code, Message: d.For(phases.AudienceOperator).Message, Detail: d.Detail,
		})
		if d.Detail != "" {
			continue // it was logged when it came
		}
		e.opts.Logger.Log(context.Background(), levelOf(d.Severity), "background work remarks", "subscription", j.Subscription, "code", d.Code, "message", d.Message)
	}
}

// levelOf is the level at which a diagnostic is logged.
func levelOf(s phases.Severity) slog.Level {
	switch s {
	case phases.SeverityError:
		return slog.LevelError
	case phases.SeverityWarning:
		return slog.LevelWarn
	default:
		return slog.LevelInfo
	}
}

// verdict says what follows from the end of an attempt.
func (w *attempting) verdict(ctx context.Context, err error) Verdict {
	_, unwanted := errors.AsType[permanent](err)
	code := phases.CodeOf(err)
	switch {
	case err == nil:
		return Verdict{Action: JobDone}
	case ctx.Err() != nil && w.begun:
		return Verdict{JobDead, phases.Errorf(phases.CauseInterrupted, "it was interrupted, and may have been done: %w", context.Cause(ctx))}
	case ctx.Err() != nil:
		return Verdict{JobRequeue, context.Cause(ctx)}
	case unwanted && w.Shared && w.Requeued < sharedOffers:
		return Verdict{JobRequeue, err}
	case unwanted, hopeless(code), w.begun && !failed(err):
		return Verdict{JobDead, err}
	case code == phases.CauseQuarantined && w.gen.quarantinedFor(w.Job.Plugin) > quarantineTime:
		return Verdict{JobDead, err}
	case untried(code):
		return Verdict{JobRequeue, err}
	case w.Number < w.Job.Attempts:
		return Verdict{JobRetry, err}
	}
	return Verdict{JobDead, err}
}

// failed reports whether a plugin itself has said that nothing came of a call. After
// any other failure, and after a panic, what it was asked for may have been done.
func failed(err error) bool {
	e, ok := errors.AsType[*phases.Error](err)
	return ok && (e.Code == phases.CausePluginError && e.PluginCode != phases.PluginCodePanic || e.Code == phases.CauseOverloaded)
}

// hopeless are the causes that the next attempt meets as well.
func hopeless(code phases.Cause) bool {
	switch code {
	case phases.CauseForbidden, phases.CauseCondition, phases.CauseOversizeRequest:
		return true
	}
	return false
}

// untried are the causes for which a plugin was not called, or said itself that
// it has too much to do: they are waited out, and no attempt is lost.
func untried(code phases.Cause) bool {
	switch code {
	case phases.CauseUnavailable, phases.CauseQuarantined, phases.CauseBreakerOpen, phases.CauseOverloaded, phases.CauseBudgetExhausted:
		return true
	}
	return false
}

// quarantinedFor is how long a plugin has been in quarantine; 0 if it is not.
func (g *generation) quarantinedFor(plugin string) time.Duration {
	in, ok := g.byName[plugin]
	if !ok {
		return 0
	}
	if st := in.sup.Status(); st.State == supervise.StateQuarantined {
		return time.Since(st.Since)
	}
	return 0
}

// hook runs an observing hook by the same steps as any other hook. What the operator
// has changed since it was queued counts.
func (w *attempting) hook(ctx context.Context) error {
	e, g, j := w.engine, w.gen, w.Job
	in, err := phases.DecodeInput(e.table, j.Phase, j.Payload)
	if err != nil {
		return permanent{err}
	}
	rq := request{
		context: j.Context, input: in, scope: newScope(g.cfg.Budgets.Turn, false),
		key: strings.TrimSuffix(j.IdempotencyKey, "/"+j.Subscription),
	}
	rq.scope.policies, rq.scope.contexts = j.Policies, j.Contexts
	known := g.planned.Load() // not after the plan of the dispatch, which may know more
	d := e.prepare(ctx, g, rq)
	i := slices.IndexFunc(d.calls, func(c call) bool { return c.sub.ID == j.Subscription })
	if i < 0 {
		return w.noHook(known)
	}
	c := &d.calls[i]
	d.condition(c)
	if !c.hook.in.idempotent(c.sub.Name) {
		c.once = w.once
	}
	var failure *phases.Error
	ctx, c.span = e.beginRun(ctx, j.Trace, c.run)
	if !c.settled {
		failure = d.queued(ctx, c, w.Number)
	}
	e.tell(ctx, &c.span, c.run, c.failure)
	e.tellDiagnostics(j, c.notes)
	w.run, w.notes = c.run, c.notes
	if failure == nil {
		for i := range c.entries {
			w.kinds = append(w.kinds, c.entries[i].Value.Kind())
		}
	}
	switch {
	case failure != nil: // also a cancellation, which is no failure of the hook's
		return failure
	case c.failure != nil:
		return c.failure
	case c.run.State == phases.StateDisabled:
		return permanent{fmt.Errorf("%s is disabled: %s", c.sub.ID, c.run.Code)}
	}
	return nil
}

// noHook says why a plan has no such hook. What hooks a plugin has is known when it
// has been up; work of an earlier process may come before that.
func (w *attempting) noHook(p *planned) error {
	j := w.Job
	for i, in := range w.gen.instances {
		if in.declared.Name == j.Plugin && p.descriptions[i] == nil {
			return phases.Errorf(phases.CauseUnavailable, "the plugin %s has not said yet what hooks it has", j.Plugin)
		}
	}
	return permanent{fmt.Errorf("%s is not in force any more", j.Subscription)}
}

// idempotent reports whether a hook says of itself that calling twice does no harm.
func (in *instance) idempotent(hook string) bool {
	d := in.description()
	return d != nil && slices.ContainsFunc(d.Hooks, func(h phases.Hook) bool { return h.Name == hook && h.Idempotent })
}

// queued makes one attempt, the queue makes the others, and hands on what the
// hook contributes to the background.
func (d *dispatch) queued(ctx context.Context, c *call, attempt int) *phases.Error {
	if failure := d.try(ctx, c, attempt, d.start.Add(slotTime+c.sub.Timeout.D())); failure != nil {
		c.fail(failure)
		return failure
	}
	merged := merge.Merge(d.phase.Row, []merge.Reply{{Hook: &c.hook.merge, Entries: c.entries, Dropped: c.dropped}}, d.sets, merge.Limits{})
	c.run.Contributions = merged.Parts[0].Kept
	c.notes = slices.Concat(c.notes, merged.Diagnostics, d.unapplied(c))
	c.notes = slices.Concat(c.notes, d.addJobs(ctx, &merged), d.audit(ctx, &merged))
	return nil
}

// unapplied remarks on what a background hook has contributed in vain: its phase is
// over, so that nothing is left which could take it.
func (d *dispatch) unapplied(c *call) []phases.Diagnostic {
	var remarks []phases.Diagnostic
	for i := range c.entries {
		if kind := c.entries[i].Value.Kind(); !slices.Contains(phases.AlwaysAccepted(), kind) {
			remarks = append(remarks, phases.Diagnostic{
				Code: phases.CodeNotAllowed, Severity: phases.SeverityWarning, Plugin: c.sub.Plugin, Subscription: c.sub.ID, Visibility: c.sub.Visibility,
				Message: fmt.Sprintf("%s observes, in the background: its %s came to nothing", c.sub.ID, kind),
			})
		}
	}
	return remarks
}
