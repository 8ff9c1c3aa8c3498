package telemetry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/trace"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

const scope = "github.com/grapnelhq/grapnel/telemetry"

// defaultMaxSeries is the default of Options.MaxSeries, and the limit of the OpenTelemetry SDK for Go.
const defaultMaxSeries = 2000

// Options are what a host wires. The zero value exports nothing.
type Options struct {
	// TracerProvider makes the spans; nil makes none.
	TracerProvider trace.TracerProvider
	// MeterProvider makes the instruments; nil makes none.
	MeterProvider metric.MeterProvider
	// AllRuns gives a span to hooks that were filtered, are off or were queued, too.
	AllRuns bool
	// MaxSeries bounds how many combinations of plugin, subscription, phase, state
	// and cause get attributes of their own; 0 is 2,000.
	MaxSeries int
	// OmitIDs omits the ids of threads and agents, for hosts whose ids say something about people. The ids of manifests
	// still join spans with the log.
	OmitIDs bool

	_ struct{}
}

// ErrWatched says that Watch was called a second time, or after Close.
var ErrWatched = errors.New("telemetry: an engine is watched already, or telemetry was closed")

// Telemetry makes spans and metrics of one engine's events. Its methods are safe for concurrent use.
//
//  1. [New] makes the instruments.
//  2. Attach, or OnEvent, BeginRun and Sink by hand, before the engine is made, whose start
//     is counted too.
//  3. Watch, after the engine is made, for the instruments that read its counters.
//  4. Close, after the engine's. Safe to call twice, and without Watch. The host flushes
//     and shuts down the providers.
type Telemetry struct {
	tracer   trace.Tracer // nil without tracing
	meter    metric.Meter
	allRuns  bool
	omitIDs  bool
	words    words
	measures instruments
	series   seriesCache

	mu      sync.Mutex
	watched bool
	watch   metric.Registration
}

// New makes the instruments. It fails if a provider refuses one, or MaxSeries is negative.
func New(o Options) (*Telemetry, error) {
	if o.MaxSeries < 0 {
		return nil, fmt.Errorf("telemetry: MaxSeries is %d", o.MaxSeries)
	}
	if o.MeterProvider == nil {
		o.MeterProvider = noop.NewMeterProvider()
	}
	t := &Telemetry{
		meter:   o.MeterProvider.Meter(scope),
		allRuns: o.AllRuns,
		omitIDs: o.OmitIDs,
		words:   newWords(),
		series:  seriesCache{limit: cmp.Or(o.MaxSeries, defaultMaxSeries), known: map[place]*series{}},
	}
	if o.TracerProvider != nil {
		t.tracer = o.TracerProvider.Tracer(scope)
	}
	var err error
	if t.measures, err = newInstruments(t.meter); err != nil {
		return nil, fmt.Errorf("telemetry: %w", err)
	}
	return t, nil
}

// Attach returns o with an OnEvent that calls that of o and t's, with t's BeginRun, and with its sink, if any, as
// [Telemetry.Sink] returns it.
func (t *Telemetry) Attach(o runtime.Options) runtime.Options {
	before := o.OnEvent
	o.OnEvent = func(ev runtime.Event) {
		if before != nil {
			before(ev)
		}
		t.OnEvent(ev)
	}
	o.BeginRun, o.Sink = t.BeginRun, t.Sink(o.Sink)
	return o
}

// OnEvent is runtime.Options.OnEvent, for hosts that compose their consumers themselves.
// It returns at once and keeps nothing of the event.
func (t *Telemetry) OnEvent(ev runtime.Event) { t.count(&ev) }

// Source is what Watch reads: a *runtime.Engine.
type Source interface {
	// Overview returns the state of the engine and what it has counted.
	Overview() runtime.Overview
}

var _ Source = (*runtime.Engine)(nil)

// Watch reads the engine's counters and the states of plugins and breakers whenever
// metrics are collected, until Close. It fails with [ErrWatched] when called again.
func (t *Telemetry) Watch(src Source) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.watched {
		return ErrWatched
	}
	m := &t.measures
	registered, err := t.meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		overview := src.Overview()
		t.observe(o, &overview)
		return nil
	}, m.up, m.restarts, m.memory, m.abandoned, m.logs, m.jobs, m.reloads, m.breakers)
	if err != nil {
		return fmt.Errorf("telemetry: %w", err)
	}
	t.watched, t.watch = true, registered
	return nil
}

// observe reports the engine's counters, except those that are 0.
func (t *Telemetry) observe(o metric.Observer, v *runtime.Overview) {
	m := &t.measures
	count := func(c metric.Int64Observable, n uint64, attributes ...attribute.KeyValue) {
		if n > 0 {
			o.ObserveInt64(c, int64(n), options(attributes...)) //nolint:gosec // counted one by one
		}
	}
	for i := range v.Plugins {
		p := &v.Plugins[i]
		who := keyPlugin.String(plain(p.Plugin))
		up := int64(0)
		if p.State == phases.PluginReady || p.State == phases.PluginDegraded {
			up = 1
		}
		o.ObserveInt64(m.up, up, options(who))
		o.ObserveInt64(m.restarts, int64(p.Restarts), options(who))
		count(m.memory, uint64(max(0, p.MemoryBytes)), who)
		count(m.abandoned, p.AbandonedTotal, who)
		count(m.logs, p.LogLinesDropped, who)
		for state, n := range p.Jobs {
			count(m.jobs, n, who, keyState.String(closed(t.words.jobs, state)))
		}
	}
	count(m.reloads, v.Reloads, keyState.String("in_force"))
	count(m.reloads, v.ReloadsRefused, keyState.String("refused"))
	for i := range v.Hooks {
		t.observeBreaker(o, &v.Hooks[i])
	}
}

// observeBreaker reports the breaker of a subscription that has failed before, unless it is beyond the limit.
func (t *Telemetry) observeBreaker(o metric.Observer, h *runtime.HookRow) {
	if h.Breaker == "" || h.Failed == 0 {
		return
	}
	s := t.series.of(place{plugin: plain(h.Plugin), subscription: plain(h.Subscription)})
	if s.folded {
		return
	}
	for _, state := range []string{"closed", "open", "half_open"} {
		value := int64(0)
		if state == h.Breaker {
			value = 1
		}
		o.ObserveInt64(t.measures.breakers, value, options(keyPlugin.String(plain(h.Plugin)), keySubscription.String(plain(h.Subscription)), keyState.String(state)))
	}
}

// Close ends what Watch began. A second call does nothing.
func (t *Telemetry) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.watched = true
	if t.watch == nil {
		return nil
	}
	err := t.watch.Unregister()
	t.watch = nil
	if err != nil {
		return fmt.Errorf("telemetry: %w", err)
	}
	return nil
}
