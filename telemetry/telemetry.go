package telemetry

import (
	"errors"
	"fmt"
	"sync"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/trace"

	"github.com/grapnelhq/grapnel/runtime"
)

// scope names the instrumentation to the providers.
const scope = "github.com/grapnelhq/grapnel/telemetry"

// DefaultMaxSeries is Options.MaxSeries where that is 0. It is also where the
// OpenTelemetry SDK for Go begins to fold series by itself.
const DefaultMaxSeries = 2000

// Options are what a host wires. The zero value exports nothing.
type Options struct {
	// TracerProvider makes the spans; nil makes none.
	TracerProvider trace.TracerProvider
	// MeterProvider makes the instruments; nil makes none.
	MeterProvider metric.MeterProvider
	// AllRuns gives a span to hooks that were filtered, are off or were queued, too.
	AllRuns bool
	// MaxSeries bounds how many combinations of plugin, subscription, phase, state
	// and cause get attributes of their own; 0 is DefaultMaxSeries.
	MaxSeries int

	_ struct{}
}

// withDefaults fills what was left out, but for the tracer: what is made for a span
// costs something even where it is thrown away.
func (o Options) withDefaults() Options {
	if o.MeterProvider == nil {
		o.MeterProvider = noop.NewMeterProvider()
	}
	if o.MaxSeries == 0 {
		o.MaxSeries = DefaultMaxSeries
	}
	return o
}

// ErrWatched says that Watch was called a second time, or after Close.
var ErrWatched = errors.New("telemetry: an engine is watched already, or telemetry was closed")

// Telemetry makes spans and metrics of one engine's events. Make it with [New]; its
// methods are safe for concurrent use. Its life:
//
//  1. New makes the instruments.
//  2. Attach, or OnEvent and BeginRun by hand, before the engine is made. Events of the engine's
//     own start are counted, too.
//  3. Watch, when the engine is there. Without it, nothing but the instruments of
//     the plugins' and breakers' states is missing.
//  4. Close, after the engine's. Safe to call twice, and without Watch. The
//     providers are the host's to flush and to shut down.
type Telemetry struct {
	// tracer is nil where the host has no tracing.
	tracer   trace.Tracer
	meter    metric.Meter
	allRuns  bool
	words    words
	measures instruments
	series   seriesCache
	breakers breakers

	mu      sync.Mutex
	watched bool
	watch   metric.Registration
}

// New makes the instruments. It fails if a provider refuses one of them, or
// MaxSeries is negative.
func New(o Options) (*Telemetry, error) {
	if o.MaxSeries < 0 {
		return nil, fmt.Errorf("telemetry: MaxSeries is %d", o.MaxSeries)
	}
	o = o.withDefaults()
	t := &Telemetry{
		meter:    o.MeterProvider.Meter(scope),
		allRuns:  o.AllRuns,
		words:    newWords(),
		series:   seriesCache{limit: o.MaxSeries},
		breakers: breakers{limit: o.MaxSeries, states: map[place]string{}},
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

// Attach returns options with which an engine tells its events to t, after whoever
// was told before, and lets t begin its runs, in the place of whoever did.
func (t *Telemetry) Attach(o runtime.Options) runtime.Options {
	before := o.OnEvent
	o.OnEvent = func(ev runtime.Event) {
		if before != nil {
			before(ev)
		}
		t.OnEvent(ev)
	}
	o.BeginRun = t.BeginRun
	return o
}

// OnEvent takes one event of the engine, and makes measurements of it. It is
// runtime.Options.OnEvent for hosts that compose their consumers themselves; it
// returns at once, keeps nothing of the event, and calls nothing but the provider.
func (t *Telemetry) OnEvent(ev runtime.Event) { t.count(&ev) }

// Close ends the watching of the engine. A second call does nothing.
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
