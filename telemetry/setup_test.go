package telemetry_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"
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

// rig is a Telemetry with the SDK behind it, which keeps what it exports.
type rig struct {
	*telemetry.Telemetry

	tracers *sdktrace.TracerProvider
	spans   *tracetest.InMemoryExporter
	reader  *sdkmetric.ManualReader
}

// newRig makes one; the providers of o are its own.
func newRig(tb testing.TB, o telemetry.Options) *rig {
	tb.Helper()
	r := &rig{spans: tracetest.NewInMemoryExporter(), reader: sdkmetric.NewManualReader()}
	r.tracers = sdktrace.NewTracerProvider(sdktrace.WithSyncer(r.spans))
	meters := sdkmetric.NewMeterProvider(sdkmetric.WithReader(r.reader))
	o.TracerProvider, o.MeterProvider = r.tracers, meters
	tel, err := telemetry.New(o)
	if err != nil {
		tb.Fatalf("New: %v", err)
	}
	r.Telemetry = tel
	tb.Cleanup(func() {
		ctx := context.Background()
		for _, err := range []error{tel.Close(), tel.Close(), r.tracers.Shutdown(ctx), meters.Shutdown(ctx)} {
			if err != nil {
				tb.Errorf("close: %v", err)
			}
		}
	})
	return r
}

// collect reads all metrics.
func (r *rig) collect(tb testing.TB) metricdata.ResourceMetrics {
	tb.Helper()
	var all metricdata.ResourceMetrics
	if err := r.reader.Collect(context.Background(), &all); err != nil {
		tb.Fatalf("Collect: %v", err)
	}
	return all
}

// metrics writes the named metrics down, sorted: "name value key=value …" a point. Of
// a histogram the value is "count×sum".
func (r *rig) metrics(tb testing.TB, names ...string) []string {
	tb.Helper()
	lines := []string{}
	for _, scope := range r.collect(tb).ScopeMetrics {
		for _, m := range scope.Metrics {
			if slices.Contains(names, m.Name) {
				lines = append(lines, points(m)...)
			}
		}
	}
	slices.Sort(lines)
	return lines
}

func points(m metricdata.Metrics) []string {
	var lines []string
	add := func(set attribute.Set, format string, values ...any) {
		words := []string{m.Name, fmt.Sprintf(format, values...)}
		for _, kv := range set.ToSlice() {
			words = append(words, strings.TrimPrefix(string(kv.Key), "grapnel.")+"="+kv.Value.String())
		}
		lines = append(lines, strings.Join(words, " "))
	}
	switch data := m.Data.(type) {
	case metricdata.Sum[int64]:
		for _, p := range data.DataPoints {
			add(p.Attributes, "%d", p.Value)
		}
	case metricdata.Histogram[int64]:
		for _, p := range data.DataPoints {
			add(p.Attributes, "%d×%d", p.Count, p.Sum)
		}
	case metricdata.Histogram[float64]:
		for _, p := range data.DataPoints {
			add(p.Attributes, "%d×%.6g", p.Count, p.Sum)
		}
	}
	return lines
}

// names lists the metrics that have points.
func (r *rig) names(tb testing.TB) []string {
	tb.Helper()
	var list []string
	for _, scope := range r.collect(tb).ScopeMetrics {
		for _, m := range scope.Metrics {
			list = append(list, m.Name)
		}
	}
	slices.Sort(list)
	return list
}

// exported is everything that left, as one text: spans with all their parts, and
// metrics with theirs.
func (r *rig) exported(tb testing.TB) string {
	tb.Helper()
	var b strings.Builder
	for _, s := range r.spans.GetSpans() {
		fmt.Fprintf(&b, "%s %v %v %v %v %+v\n", s.Name, s.Attributes, s.Events, s.Links, s.Status, s.Resource)
	}
	text, err := json.Marshal(r.collect(tb))
	if err != nil {
		tb.Fatalf("metrics: %v", err)
	}
	for _, scope := range r.collect(tb).ScopeMetrics {
		for _, m := range scope.Metrics {
			fmt.Fprintln(&b, points(m))
		}
	}
	return b.String() + string(text)
}

// attributes writes the attributes of a span down, sorted.
func attributes(s tracetest.SpanStub) []string {
	lines := []string{}
	for _, kv := range s.Attributes {
		lines = append(lines, string(kv.Key)+"="+kv.Value.String())
	}
	slices.Sort(lines)
	return lines
}

// spanNames lists the spans, sorted.
func (r *rig) spanNames() []string {
	names := []string{}
	for _, s := range r.spans.GetSpans() {
		names = append(names, s.Name)
	}
	slices.Sort(names)
	return names
}

// noon is when the events of the tests are told.
func noon() time.Time { return time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC) }

// ran is the event of a run.
func ran(run phases.Run) runtime.Event {
	return runtime.Event{
		Kind: runtime.EventRun, Time: noon(), Plugin: run.Plugin, Subscription: run.Subscription, Phase: run.Phase,
		State: string(run.State), Code: run.Code, Run: &run,
	}
}

// tell lets the rig know of a run, as an engine does.
func (r *rig) tell(run phases.Run) {
	_, _, end := r.BeginRun(context.Background(), phases.Trace{}, &run)
	r.OnEvent(ran(run))
	end(&run, noon())
}

// answered is the row of a hook that a process has answered.
func answered() phases.Run {
	return phases.Run{
		Subscription: "house.rules", Hook: "rules", Plugin: "house", PluginVersion: "1.2.0", Generation: 3, Incarnation: 2,
		Phase: phases.PrePromptCompile, Stage: phases.RoleContribute, State: phases.StateSucceeded, Attempts: 1,
		QueueMS: 0.5, DurationMS: 2, BytesIn: 100, BytesOut: 2000, Contributions: []string{"xxh64:0123456789abcdef"}, Cut: []phases.Cut{},
	}
}

// with is answered with a change.
func with(change func(*phases.Run)) phases.Run {
	run := answered()
	change(&run)
	return run
}

// failed is a hook that was asked and failed.
func failed(state phases.RunState, code phases.Cause) phases.Run {
	return with(func(r *phases.Run) { r.State, r.Code = state, string(code) })
}

// unasked is a hook that was not asked.
func unasked(state phases.RunState, code string) phases.Run {
	return phases.Run{
		Subscription: "house.rules", Hook: "rules", Plugin: "house", PluginVersion: "1.2.0", Generation: 3,
		Phase: phases.PrePromptCompile, Stage: phases.RoleContribute, State: state, Code: code,
	}
}

// tool is the row of a call of a tool.
func tool(name string, attempts int) phases.Run {
	run := phases.Run{
		Subscription: "house." + name, Hook: name, Plugin: "house", PluginVersion: "1.2.0", Generation: 3, Phase: phases.PhaseToolCall,
		Stage: phases.StageTool, State: phases.StateSucceeded, Attempts: attempts,
	}
	if attempts > 0 {
		run.Incarnation, run.DurationMS = 2, 4
	}
	return run
}

// modelCall is the row of a call that a hook made of the host's model.
func modelCall() phases.Run {
	return phases.Run{
		Subscription: "house.rules/model.complete", Hook: "model.complete", Plugin: "house", PluginVersion: "1.2.0", Generation: 3, Incarnation: 2,
		Phase: phases.PhaseHostCall, Stage: phases.StageHost, State: phases.StateSucceeded, Attempts: 1, DurationMS: 800, BytesIn: 50, BytesOut: 60,
		Model: "small-1", Usage: phases.Usage{InputTokens: 40, OutputTokens: 7},
	}
}

// everything is what the tests' operator grants.
func everything() phases.Grants {
	all := []string{"*"}
	return phases.Grants{
		Contribute: all, Sections: all, StableSections: all, Policies: all, Domains: all, Tools: all, Host: all, See: all,
	}
}

// started is an engine with plugins inside the host, told to tel unless that is nil.
// Plugins may be overridden by subscription.
func started(tb testing.TB, tel *telemetry.Telemetry, overrides map[string]phases.Override, plugins ...*sdk.Plugin) *runtime.Engine {
	tb.Helper()
	cfg := &config.Config{Version: 1}
	opts := runtime.Options{InProcess: map[string]runtime.Plugin{}}
	for _, p := range plugins {
		declared := config.Plugin{Name: p.Name, Grants: everything(), Subscriptions: map[string]phases.Override{}}
		for id, o := range overrides {
			if name, _, _ := strings.Cut(id, "."); name == p.Name {
				declared.Subscriptions[id] = o
			}
		}
		cfg.Plugins = append(cfg.Plugins, declared)
		opts.InProcess[p.Name] = p
	}
	if tel != nil {
		opts = tel.Attach(opts)
	}
	eng, err := runtime.New(tb.Context(), cfg, opts)
	if err != nil {
		tb.Fatalf("runtime.New: %v", err)
	}
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := eng.Close(ctx); err != nil {
			tb.Errorf("Close: %v", err)
		}
	})
	return eng
}

// section is a hook that contributes a section.
func section(name, content string) sdk.Hook {
	return sdk.Hook{
		Name: name, Kinds: []phases.Kind{phases.KindPromptSection},
		PrePromptCompile: func(context.Context, *sdk.Call, *phases.PrePromptCompileInput) ([]phases.Contribution, error) {
			return sdk.Reply(&phases.PromptSection{SectionID: name, Title: name, Content: content})
		},
	}
}

// turn is the context of the tests' dispatches.
func turn() phases.Context {
	return phases.Context{WorkspaceID: "w", ThreadID: "t", TurnID: "1", Mode: phases.ModeAgent}
}

// only are the spans of one name.
func (r *rig) only(name string) tracetest.SpanStubs {
	return slices.DeleteFunc(r.spans.GetSpans(), func(s tracetest.SpanStub) bool { return s.Name != name })
}

var update = flag.Bool("update", false, "write the expectations of testdata again")

// golden compares lines with those of a file in testdata.
func golden(t *testing.T, name string, got []string) {
	t.Helper()
	file, text := filepath.Join("testdata", name+".txt"), strings.Join(got, "\n")+"\n"
	if *update {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if diff := cmp.Diff(text, string(want)); diff != "" || err != nil {
		t.Errorf("%s (-got +want), %v:\n%s", file, err, diff)
	}
}
