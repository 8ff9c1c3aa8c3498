package telemetry

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

// count makes the measurements of one event. Kinds without any are plugins' states,
// which are looked up instead (an event does not say which of two processes of one
// name it is about), and what only has texts.
func (t *Telemetry) count(ev *runtime.Event) {
	ctx := context.Background()
	if !t.measures.runs.Enabled(ctx) {
		return
	}
	switch ev.Kind {
	case runtime.EventRun:
		if ev.Run != nil {
			t.countRun(ctx, ev.Run)
		}
	case runtime.EventDispatch:
		t.countDispatch(ctx, ev)
	case runtime.EventFailOpen:
		s := t.series.of(place{
			plugin: plain(ev.Plugin), subscription: plain(ev.Subscription), phase: ev.Phase, failure: closed(t.words.causes, ev.Code),
		})
		t.measures.failOpen.Add(ctx, 1, s.failed...)
	case runtime.EventBreaker:
		t.breakers.set(place{plugin: plain(ev.Plugin), subscription: plain(ev.Subscription)}, ev.State)
	default:
		t.countRare(ctx, ev)
	}
}

// countRare counts what happens seldom: its attributes are made each time.
func (t *Telemetry) countRare(ctx context.Context, ev *runtime.Event) {
	var c metric.Int64Counter
	plugin, kv, n := ev.Plugin, attribute.KeyValue{}, 1
	switch m := &t.measures; ev.Kind {
	case runtime.EventAbandoned:
		c = m.abandoned
	case runtime.EventLog:
		c, n = m.logs, ev.Count
	case runtime.EventDropped:
		c, kv = m.dropped, keyReason.String(closed(t.words.dropped, ev.Code))
	case runtime.EventJob:
		c, kv = m.jobs, keyState.String(closed(t.words.jobs, ev.State))
	case runtime.EventReload:
		c, kv, plugin = m.reloads, keyState.String(closed(t.words.reloads, ev.State)), ""
	case runtime.EventManifest:
		c, kv, plugin = m.manifests, keyState.String(closed(t.words.manifests, ev.State)), ""
	default:
		return
	}
	if n > 0 {
		where := t.series.of(place{plugin: plain(plugin)}).where
		c.Add(ctx, int64(n), options(where[0], kv))
	}
}

// countDispatch measures one phase.
func (t *Telemetry) countDispatch(ctx context.Context, ev *runtime.Event) {
	p := place{phase: ev.Phase, state: closed(t.words.states, ev.State)}
	if ev.State == string(phases.StateFailed) {
		p.failure = closed(t.words.causes, ev.Code)
	}
	t.measures.dispatches.Record(ctx, ev.Took.Seconds(), t.series.of(p).dispatch...)
}

// countRun makes the measurements of one row of the ledger.
func (t *Telemetry) countRun(ctx context.Context, run *phases.Run) {
	s := t.series.of(t.placeOf(run))
	m := &t.measures
	m.runs.Add(ctx, 1, s.run...)
	switch {
	case run.Phase == phases.PhaseHostCall && asked(run):
		m.hostCalls.Record(ctx, inSeconds(run.DurationMS), s.host...)
	case asked(run):
		m.calls.Record(ctx, inSeconds(run.DurationMS), s.call...)
		m.queued.Record(ctx, inSeconds(run.QueueMS), s.spot...)
		if run.BytesOut > 0 {
			m.replies.Record(ctx, int64(run.BytesOut), s.spot...)
		}
	case run.QueueMS > 0: // it found no slot
		m.queued.Record(ctx, inSeconds(run.QueueMS), s.spot...)
	}
	switch phases.Cause(run.Code) {
	case phases.CauseCondition:
		m.conditions.Add(ctx, 1, s.hook...)
	case phases.CauseConflict:
		m.conflicts.Add(ctx, 1, s.hook...)
	}
	for i := range run.Cut {
		limit := keyLimit.String(closed(t.words.limits, run.Cut[i].Limit))
		m.cuts.Add(ctx, 1, options(s.where[0], s.where[1], limit))
	}
}

// placeOf says where a run counts. A call of a tool has no subscription: which tools
// there are, the model and the plugins' own jobs say, too.
func (t *Telemetry) placeOf(run *phases.Run) place {
	p := place{phase: run.Phase, state: closed(t.words.states, run.State), failure: t.words.failureOf(run)}
	if named(run) {
		p.plugin = plain(run.Plugin)
	}
	if run.Phase != phases.PhaseToolCall && run.Phase != phases.PhaseHostCall {
		p.subscription = plain(run.Subscription)
	}
	return p
}

// inSeconds converts the ledger's milliseconds.
func inSeconds(ms float64) float64 { return ms / 1000 }
