package telemetry_test

import (
	"slices"
	"testing"
	"time"

	metricnoop "go.opentelemetry.io/otel/metric/noop"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
	"github.com/grapnelhq/grapnel/sdk"
	"github.com/grapnelhq/grapnel/telemetry"
)

// wirings are what a host may stand behind the engine. The SDK's spans go nowhere:
// what is measured is making them.
func wirings() []struct {
	name string
	opts *telemetry.Options
} {
	metrics := func() *sdkmetric.MeterProvider {
		return sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader()))
	}
	return []struct {
		name string
		opts *telemetry.Options
	}{
		{"without", nil},
		{"nothing", &telemetry.Options{}},
		{"noop", &telemetry.Options{TracerProvider: tracenoop.NewTracerProvider(), MeterProvider: metricnoop.NewMeterProvider()}},
		{"metrics", &telemetry.Options{MeterProvider: metrics()}},
		{"spans", &telemetry.Options{TracerProvider: sdktrace.NewTracerProvider()}},
		{"unsampled", &telemetry.Options{TracerProvider: sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.NeverSample()))}},
		{"both", &telemetry.Options{TracerProvider: sdktrace.NewTracerProvider(), MeterProvider: metrics()}},
	}
}

// newTelemetry is nil for no options.
func newTelemetry(tb testing.TB, o *telemetry.Options) *telemetry.Telemetry {
	tb.Helper()
	if o == nil {
		return nil
	}
	tel, err := telemetry.New(*o)
	if err != nil {
		tb.Fatal(err)
	}
	return tel
}

// BenchmarkPaired asks engines that differ in their listener in turn, so that a busy
// machine is equally unfair to all, and reports the median of each.
func BenchmarkPaired(b *testing.B) {
	all := wirings()
	engines, took := make([]*runtime.Engine, len(all)), make([][]time.Duration, len(all))
	for i, w := range all {
		engines[i] = started(b, newTelemetry(b, w.opts), nil, &sdk.Plugin{Name: "house", Version: "1.0.0", Hooks: []sdk.Hook{section("rules", "Be brief.")}})
	}
	for b.Loop() {
		for i, eng := range engines {
			begin := time.Now()
			if _, err := eng.Dispatch(b.Context(), turn(), &phases.PrePromptCompileInput{}); err != nil {
				b.Fatal(err)
			}
			took[i] = append(took[i], time.Since(begin))
		}
	}
	for i, w := range all {
		slices.Sort(took[i])
		b.ReportMetric(float64(took[i][len(took[i])/2]), w.name+"-ns")
	}
}
