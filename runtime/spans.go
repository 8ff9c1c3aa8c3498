package runtime

import (
	"context"
	"time"

	"github.com/grapnelhq/grapnel/phases"
)

// span is the place of a run in the host's trace. The zero value is that of a run
// which nobody has begun.
type span struct {
	// trace is what the plugin is told.
	trace phases.Trace
	end   func(run *phases.Run, at time.Time)
	// over is when the run was; a row may be settled later, when its phase ends.
	over time.Time
}

// beginRun tells the host that a run begins. from is the trace of who queued it; empty
// for a run whose caller waits. The context is the one to go on with.
func (e *Engine) beginRun(ctx context.Context, from phases.Trace, run *phases.Run) (context.Context, span) {
	if e.opts.BeginRun == nil {
		return ctx, span{trace: from}
	}
	ctx, told, end := e.opts.BeginRun(ctx, from, run)
	return ctx, span{trace: told, end: end}
}

// done notes when the run was over.
func (s *span) done() { s.over = time.Now() }

// tell tells of a settled run, once: the event, and the end of its span. A row that
// came about without a call begins and ends here. failure is why it failed, if it did.
func (e *Engine) tell(ctx context.Context, s *span, run *phases.Run, failure *phases.Error) {
	if s.end == nil {
		_, *s = e.beginRun(ctx, s.trace, run)
	}
	ev := Event{Kind: EventRun, Plugin: run.Plugin, Subscription: run.Subscription, Phase: run.Phase, State: string(run.State), Code: run.Code, Run: run}
	if failure != nil {
		ev.Message, ev.Detail = failure.For(phases.AudienceOperator).Message, phases.DetailOf(failure)
		e.logFailure(run, failure)
	}
	e.emit(ev)
	if s.end == nil {
		return
	}
	if s.over.IsZero() {
		s.done()
	}
	s.end(run, s.over)
}
