package telemetry_test

import (
	"context"
	"errors"
	"fmt"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
	"github.com/grapnelhq/grapnel/sdk"
	"github.com/grapnelhq/grapnel/telemetry"
)

// A host makes the providers, with the exporters that it likes; here they keep what
// they get.
func Example() {
	ctx := context.Background()
	spans, reader := tracetest.NewInMemoryExporter(), sdkmetric.NewManualReader()
	tracers := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))
	meters := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))

	tel, err := telemetry.New(telemetry.Options{TracerProvider: tracers, MeterProvider: meters})
	if err != nil {
		fmt.Println(err)
		return
	}
	opts := tel.Attach(runtime.Options{InProcess: map[string]runtime.Plugin{
		"house": &sdk.Plugin{Name: "house", Version: "1.0.0", Hooks: []sdk.Hook{section("house_rules", "Be brief.")}},
	}})
	grants := phases.Grants{Contribute: []string{"prompt_section"}, Sections: []string{"house_rules"}}
	eng, err := runtime.New(ctx, &config.Config{Version: 1, Plugins: []config.Plugin{{Name: "house", Grants: grants}}}, opts)
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := tel.Watch(eng); err != nil {
		fmt.Println(err)
	}
	_, err = eng.CompileTurn(ctx, phases.Context{ThreadID: "t", TurnID: "1"}, runtime.CompileInput{UserText: "hello"})

	for _, s := range spans.GetSpans() {
		fmt.Println(s.Name)
	}
	var all metricdata.ResourceMetrics
	err = errors.Join(err, reader.Collect(ctx, &all))
	for _, m := range all.ScopeMetrics[0].Metrics {
		fmt.Println(m.Name, m.Unit)
	}
	if err := errors.Join(err, eng.Close(ctx), tel.Close(), tracers.Shutdown(ctx), meters.Shutdown(ctx)); err != nil {
		fmt.Println(err)
	}
	// Output:
	// execute_hook turn.pre_prompt_compile
	// grapnel.dispatch.duration s
	// grapnel.plugin.call.duration s
	// grapnel.plugin.queue.duration s
	// grapnel.run.count {run}
	// grapnel.plugin.restarts {restart}
	// grapnel.plugin.up 1
}
