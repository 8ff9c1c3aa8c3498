package runtime

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/grapnelhq/grapnel/internal/engine/background"
	"github.com/grapnelhq/grapnel/internal/engine/jobs"
	"github.com/grapnelhq/grapnel/internal/engine/turnstate"
	"github.com/grapnelhq/grapnel/internal/text"
	"github.com/grapnelhq/grapnel/phases"
)

// logFailure logs a plugin's own words about a failure. They reach others only by phases.Error.For, within the
// visibility of the subscription.
func (e *core) logFailure(run *phases.Run, failure *phases.Error) {
	words := phases.DetailOf(failure)
	if words == "" {
		return
	}
	level := slog.LevelError
	if opened(failure.SafeForUser, failure.Visibility) {
		level = slog.LevelInfo
	}
	e.opts.Logger.Log(context.Background(), level, "a plugin failed", "plugin", run.Plugin, "subscription", run.Subscription, "phase", run.Phase,
		"code", failure.Code, "plugin_code", failure.PluginCode, "words", words)
}

func (e *core) logRemarks(subscription string, list []phases.Diagnostic) {
	if more := len(list) - turnstate.MaxPluginNotes; more > 0 {
		list = list[:turnstate.MaxPluginNotes]
		defer e.opts.Logger.Warn("a plugin reports more diagnostics than are kept", "subscription", subscription, "dropped", more)
	}
	for i := range list {
		d := &list[i]
		if d.Detail == "" {
			continue
		}
		level := turnstate.LogLevel(d.Severity)
		if opened(d.SafeForUser, d.Visibility) {
			level = min(level, slog.LevelInfo)
		}
		e.opts.Logger.Log(context.Background(), level, "a plugin reports", "plugin", d.Plugin, "subscription", subscription, "code", d.Code, "words", text.Head(d.Detail, turnstate.MaxNoteBytes))
	}
}

// opened reports whether the answer shows the operator a plugin's words, too.
func opened(safe bool, v phases.Visibility) bool { return safe && v.Opens(phases.AudienceOperator) }

// span is the place of a run in the host's trace; zero for a run that has not begun.
type span struct {
	// trace is what the plugin gets.
	trace phases.Trace
	end   func(run *phases.Run, at time.Time)
	// over is when the run ended; its row may be settled later.
	over time.Time
}

// beginRun reports that a run begins, and returns the context to go on with. from is the trace in which it was
// queued, if it was.
func (e *core) beginRun(ctx context.Context, from phases.Trace, run *phases.Run) (context.Context, span) {
	if e.opts.BeginRun == nil {
		return ctx, span{trace: from}
	}
	ctx, trace, end := e.opts.BeginRun(ctx, from, run)
	return ctx, span{trace: trace, end: end}
}

func (s *span) done() {
	if s.end != nil {
		s.over = time.Now()
	}
}

// failRun settles the row of a run with a failure.
func failRun(run *phases.Run, err *phases.Error) {
	run.Code, run.PluginCode = string(err.Code), err.PluginCode
	switch err.Code {
	case phases.CauseTimeout:
		run.State = phases.StateTimedOut
	case phases.CauseBudgetExhausted:
		run.State = phases.StateBudgetExhausted
	case phases.CauseUnavailable, phases.CauseQuarantined, phases.CauseBreakerOpen:
		run.State = phases.StateUnavailable
	case phases.CauseCancelled:
		run.State = phases.StateCancelled
	default:
		run.State = phases.StateFailed
	}
}

// report reports a settled run once: the event, and the end of its span. A row without a call begins and ends here.
func (e *core) report(ctx context.Context, s *span, run *phases.Run, failure *phases.Error) {
	if s.end == nil {
		_, *s = e.beginRun(ctx, s.trace, run)
	}
	ev := Event{Kind: EventRun, Plugin: run.Plugin, Subscription: run.Subscription, Phase: run.Phase, State: string(run.State), Code: run.Code, Run: run}
	if failure != nil {
		ev.Message, ev.Detail = failure.For(phases.AudienceOperator).Message, phases.DetailOf(failure)
		e.logFailure(run, failure)
	}
	e.emit(ev)
	if s.end != nil {
		if s.over.IsZero() {
			s.done()
		}
		s.end(run, s.over)
	}
}

func codedError(err error) *phases.Error {
	if coded, ok := errors.AsType[*phases.Error](err); ok {
		return coded
	}
	return phases.Errorf(phases.CauseInternal, "%w", err)
}

func (e *core) jobChanged(j jobs.Job, state string, err error) {
	ev := Event{Kind: EventJob, Plugin: j.Plugin, Subscription: j.Subscription, Phase: j.Phase, State: state}
	if err != nil {
		ev.Code, ev.Message, ev.Detail = string(phases.CodeOf(err)), phases.Words(err), phases.DetailOf(err)
		level := slog.LevelWarn
		if state == string(jobs.Requeue) {
			level = slog.LevelDebug // it recurs every few seconds
		}
		if state == string(jobs.Discard) && j.Kind == "" && !background.IsUnwanted(err) {
			open := ev
			open.Kind, open.State = EventFailOpen, ""
			e.emit(open)
		}
		e.opts.Logger.Log(context.Background(), level, "background job", "kind", j.Kind, "subscription", j.Subscription, "state", state, "error", err)
	}
	e.emit(ev)
}
