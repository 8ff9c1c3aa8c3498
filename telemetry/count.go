package telemetry

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

// count makes the measurements of one event. Kinds without any are plugins' states,
// which are looked up instead (an event does not say which of two processes of one
// name it is about), and what only has texts: logs and audits.
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
	case runtime.EventFailOpen:
		s := t.series.of(place{
			plugin: plain(ev.Plugin), subscription: plain(ev.Subscription), phase: ev.Phase, failure: closed(t.words.causes, ev.Code),
		})
		t.measures.failOpen.Add(ctx, 1, s.failed...)
	case runtime.EventDropped:
		t.add(ctx, t.measures.dropped, ev.Plugin, keyReason.String(closed(t.words.dropped, ev.Code)))
	case runtime.EventJob:
		t.add(ctx, t.measures.jobs, ev.Plugin, keyState.String(closed(t.words.jobs, ev.State)))
	case runtime.EventReload:
		t.add(ctx, t.measures.reloads, "", keyState.String(closed(t.words.reloads, ev.State)))
	case runtime.EventManifest:
		t.add(ctx, t.measures.manifests, "", keyState.String(closed(t.words.manifests, ev.State)))
	default:
	}
}

// add counts one of what is rare: its attributes are made each time.
func (t *Telemetry) add(ctx context.Context, c metric.Int64Counter, plugin string, kv attribute.KeyValue) {
	where := t.series.of(place{plugin: plain(plugin)}).where
	c.Add(ctx, 1, options(where[0], kv))
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

// ofMillis is such a number as a duration.
func ofMillis(ms float64) time.Duration { return time.Duration(ms * float64(time.Millisecond)) }
