package telemetry

import (
	"errors"

	"go.opentelemetry.io/otel/metric"
)

// instruments are what New makes. Their table stands in the package comment.
type instruments struct {
	dispatches metric.Float64Histogram
	runs       metric.Int64Counter
	calls      metric.Float64Histogram
	queued     metric.Float64Histogram
	hostCalls  metric.Float64Histogram
	replies    metric.Int64Histogram
	failOpen   metric.Int64Counter
	conditions metric.Int64Counter
	conflicts  metric.Int64Counter
	cuts       metric.Int64Counter
	abandoned  metric.Int64Counter
	logs       metric.Int64Counter
	dropped    metric.Int64Counter
	jobs       metric.Int64Counter
	reloads    metric.Int64Counter
	manifests  metric.Int64Counter

	// These are looked up: see Watch.
	up       metric.Int64ObservableUpDownCounter
	restarts metric.Int64ObservableCounter
	breakers metric.Int64ObservableUpDownCounter
	memory   metric.Int64ObservableUpDownCounter
}

// seconds are the bounds of durations. The conventions' advice for requests over a
// network begins at 5 ms, where an answer of a plugin takes a tenth of one.
func seconds() []float64 {
	return []float64{
		.00005, .0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30,
	}
}

// bytes are the bounds of sizes: powers of four, up to the largest frame.
func bytes() []float64 {
	return []float64{64, 256, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20}
}

// maker makes instruments and keeps what went wrong.
type maker struct {
	meter metric.Meter
	errs  []error
}

func newInstruments(meter metric.Meter) (instruments, error) {
	m := &maker{meter: meter}
	in := instruments{
		dispatches: m.seconds("grapnel.dispatch.duration", "How long phases took."),
		runs:       m.counter("grapnel.run.count", "{run}", "Hooks, tools and model calls by what became of them."),
		calls:      m.seconds("grapnel.plugin.call.duration", "How long plugins took to answer."),
		queued:     m.seconds("grapnel.plugin.queue.duration", "How long calls waited for a slot of their plugin."),
		hostCalls:  m.seconds("grapnel.host.call.duration", "How long the host's model took to answer plugins."),
		replies:    m.bytes("grapnel.reply.size", "Bytes that came back from plugins' processes."),
		failOpen:   m.counter("grapnel.fail_open", "{failure}", "Failures of hooks that did not stop their phase."),
		conditions: m.counter("grapnel.condition.errors", "{error}", "Conditions that could not be evaluated."),
		conflicts:  m.counter("grapnel.conflicts", "{conflict}", "Hooks that lost a slot to another one."),
		cuts:       m.counter("grapnel.truncations", "{cut}", "Texts of plugins that were cut."),
		abandoned:  m.counter("grapnel.calls.abandoned", "{call}", "Calls that were left before their plugin had answered."),
		logs:       m.counter("grapnel.log.dropped", "{line}", "Lines of plugins' logs that were dropped because of their rate."),
		dropped:    m.counter("grapnel.answers.dropped", "{answer}", "Answers of plugins that were not applied."),
		jobs:       m.counter("grapnel.job.changes", "{change}", "What became of attempts at background jobs."),
		reloads:    m.counter("grapnel.reloads", "{reload}", "Configurations that came into force or were refused."),
		manifests:  m.counter("grapnel.manifest.troubles", "{trouble}", "Manifests and reports that the sink did not take in time."),
	}
	var err error
	in.up, err = meter.Int64ObservableUpDownCounter("grapnel.plugin.up", metric.WithUnit("1"),
		metric.WithDescription("Whether a plugin takes calls: 1 or 0."))
	m.note(err)
	in.restarts, err = meter.Int64ObservableCounter("grapnel.plugin.restarts", metric.WithUnit("{restart}"),
		metric.WithDescription("How often a plugin was started again."))
	m.note(err)
	in.breakers, err = meter.Int64ObservableUpDownCounter("grapnel.breaker.state", metric.WithUnit("1"),
		metric.WithDescription("Which state a subscription's breaker is in: 1 for that one, 0 for the others."))
	m.note(err)
	in.memory, err = meter.Int64ObservableUpDownCounter("grapnel.plugin.memory", metric.WithUnit("By"),
		metric.WithDescription("Resident memory of a plugin's process and its descendants."))
	m.note(err)
	return in, errors.Join(m.errs...)
}

func (m *maker) note(err error) {
	if err != nil {
		m.errs = append(m.errs, err)
	}
}

func (m *maker) counter(name, unit, about string) metric.Int64Counter {
	c, err := m.meter.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(about))
	m.note(err)
	return c
}

func (m *maker) seconds(name, about string) metric.Float64Histogram {
	h, err := m.meter.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(about),
		metric.WithExplicitBucketBoundaries(seconds()...))
	m.note(err)
	return h
}

func (m *maker) bytes(name, about string) metric.Int64Histogram {
	h, err := m.meter.Int64Histogram(name, metric.WithUnit("By"), metric.WithDescription(about),
		metric.WithExplicitBucketBoundaries(bytes()...))
	m.note(err)
	return h
}
