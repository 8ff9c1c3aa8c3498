package telemetry

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/metric"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

// instruments are in the package comment's table. Observable ones read the engine's own
// counters; see Watch. Others measure each event.
type instruments struct {
	dispatches, calls, queued, hostCalls                            metric.Float64Histogram
	replies                                                         metric.Int64Histogram
	runs, failOpen, conditions, conflicts, cuts, dropped, manifests metric.Int64Counter
	restarts, abandoned, logs, jobs, reloads                        metric.Int64ObservableCounter
	up, breakers, memory                                            metric.Int64ObservableUpDownCounter
}

func newInstruments(meter metric.Meter) (instruments, error) {
	m := &maker{meter: meter}
	in := instruments{
		dispatches: m.seconds("grapnel.dispatch.duration", "How long phases took."),
		calls:      m.seconds("grapnel.plugin.call.duration", "How long plugins took to answer."),
		queued:     m.seconds("grapnel.plugin.queue.duration", "How long calls waited for a slot of their plugin."),
		hostCalls:  m.seconds("grapnel.host.call.duration", "How long the host's model took to answer plugins."),
		replies:    m.bytes("grapnel.reply.size", "Sizes of the answers of plugins' processes."),
		runs:       m.counter("grapnel.run.count", "{run}", "Hooks, tools and model calls by state."),
		failOpen:   m.counter("grapnel.fail_open", "{failure}", "Failures of hooks that did not stop their phase."),
		conditions: m.counter("grapnel.condition.errors", "{error}", "Conditions that could not be evaluated."),
		conflicts:  m.counter("grapnel.conflicts", "{conflict}", "Hooks that lost a slot to another one."),
		cuts:       m.counter("grapnel.truncations", "{cut}", "Texts of plugins that were cut."),
		dropped:    m.counter("grapnel.answers.dropped", "{answer}", "Answers of plugins that were not applied."),
		manifests:  m.counter("grapnel.manifest.issues", "{issue}", "Manifests and reports that the sink did not take in time."),
		restarts:   m.observed("grapnel.plugin.restarts", "{restart}", "How often a plugin was started again."),
		abandoned:  m.observed("grapnel.calls.abandoned", "{call}", "Calls that were abandoned before their plugin had answered."),
		logs:       m.observed("grapnel.log.dropped", "{line}", "Lines of plugins' logs that were dropped because of their rate."),
		jobs:       m.observed("grapnel.job.changes", "{change}", "Changes of background jobs by state."),
		reloads:    m.observed("grapnel.reloads", "{reload}", "Configurations after the first that came into force or were refused."),
		up:         m.state("grapnel.plugin.up", "1", "Whether a plugin takes calls: 1 or 0."),
		breakers:   m.state("grapnel.breaker.state", "1", "The state of a subscription's breaker: 1 for that one, 0 for the others."),
		memory:     m.state("grapnel.plugin.memory", "By", "Resident memory of a plugin's process and its descendants."),
	}
	return in, errors.Join(m.errs...)
}

type maker struct {
	meter metric.Meter
	errs  []error
}

func made[T any](m *maker, instrument T, err error) T {
	if err != nil {
		m.errs = append(m.errs, err)
	}
	return instrument
}

func (m *maker) counter(name, unit, about string) metric.Int64Counter {
	c, err := m.meter.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(about))
	return made(m, c, err)
}

func (m *maker) observed(name, unit, about string) metric.Int64ObservableCounter {
	c, err := m.meter.Int64ObservableCounter(name, metric.WithUnit(unit), metric.WithDescription(about))
	return made(m, c, err)
}

func (m *maker) state(name, unit, about string) metric.Int64ObservableUpDownCounter {
	c, err := m.meter.Int64ObservableUpDownCounter(name, metric.WithUnit(unit), metric.WithDescription(about))
	return made(m, c, err)
}

// seconds makes a histogram of durations. A plugin answers in a tenth of a millisecond.
func (m *maker) seconds(name, about string) metric.Float64Histogram {
	h, err := m.meter.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(about), metric.WithExplicitBucketBoundaries(
		.00005, .0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30))
	return made(m, h, err)
}

func (m *maker) bytes(name, about string) metric.Int64Histogram {
	var bounds []float64
	for _, bound := range runtime.SizeBounds() {
		bounds = append(bounds, float64(bound))
	}
	h, err := m.meter.Int64Histogram(name, metric.WithUnit("By"), metric.WithDescription(about), metric.WithExplicitBucketBoundaries(bounds...))
	return made(m, h, err)
}

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
	case runtime.EventDropped:
		where := t.series.of(place{plugin: plain(ev.Plugin)}).where
		t.measures.dropped.Add(ctx, 1, options(where[0], keyReason.String(closed(t.words.dropped, ev.Code))))
	case runtime.EventManifest:
		t.measures.manifests.Add(ctx, 1, options(keyState.String(closed(t.words.manifests, ev.State))))
	default: // the engine counts the others, or they have only texts
	}
}

func (t *Telemetry) countDispatch(ctx context.Context, ev *runtime.Event) {
	p := place{phase: ev.Phase, state: closed(t.words.states, ev.State)}
	if ev.State == string(phases.StateFailed) {
		p.failure = closed(t.words.causes, ev.Code)
	}
	t.measures.dispatches.Record(ctx, ev.Took.Seconds(), t.series.of(p).dispatch...)
}

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

// placeOf returns the attributes of a run. A tool call has no subscription: models and
// plugins name tools as they like.
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

func inSeconds(ms float64) float64 { return ms / 1000 }
