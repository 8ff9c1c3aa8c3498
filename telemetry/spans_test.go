package telemetry_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/telemetry"
)

func TestSpan(t *testing.T) {
	t.Parallel()
	for name, run := range map[string]phases.Run{
		"hook": answered(), "missing_hook": unasked(phases.StateUnavailable, "quarantined"), "tool": tool("search", 1),
		"made_up_tool": tool("read_the_secret", 0), "model": modelCall(),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, telemetry.Options{})
			r.tell(run)
			spans := r.spans.GetSpans()
			if len(spans) != 1 {
				t.Fatalf("%d spans, want 1", len(spans))
			}
			s := spans[0]
			if s.SpanKind != trace.SpanKindInternal || s.Parent.IsValid() || !s.EndTime.Equal(noon()) {
				t.Errorf("kind %v, parent %v, end %v; want internal, none, noon", s.SpanKind, s.Parent, s.EndTime)
			}
			golden(t, "span_"+name, append([]string{s.Name, strings.TrimSpace(s.Status.Code.String() + " " + s.Status.Description)}, attributes(s)...))
		})
	}
}

// TestSpanOutcome has what each state of the ledger makes of a span: which is an
// error, and which has no span at all.
func TestSpanOutcome(t *testing.T) {
	t.Parallel()
	toolError := with(func(r *phases.Run) { r.Code = phases.CodeToolError })
	for _, tt := range []struct {
		name string
		run  phases.Run
		// want is "state/cause/error.type/status", or "none".
		want string
	}{
		{"succeeded", answered(), "succeeded/-/-/Unset"},
		{"denied", failed(phases.StateDenied, phases.CauseDenied), "denied/denied/-/Unset"},
		{"cancelled", failed(phases.StateCancelled, phases.CauseCancelled), "cancelled/cancelled/-/Unset"},
		{"the phase had failed", unasked(phases.StateCancelled, "phase_failed"), "cancelled/phase_failed/-/Unset"},
		{"cached", unasked(phases.StateCached, ""), "cached/-/-/Unset"},
		{"shadowed", failed(phases.StateShadowed, ""), "shadowed/-/-/Unset"},
		{"failed", failed(phases.StateFailed, phases.CausePluginError), "failed/plugin_error/plugin_error/Error"},
		{"timed out", failed(phases.StateTimedOut, phases.CauseTimeout), "timed_out/timeout/timeout/Error"},
		{"unavailable", unasked(phases.StateUnavailable, "breaker_open"), "unavailable/breaker_open/breaker_open/Error"},
		{"no time", unasked(phases.StateBudgetExhausted, "budget_exhausted"), "budget_exhausted/budget_exhausted/budget_exhausted/Error"},
		{"a tool's own failure", toolError, "succeeded/tool_error/tool_error/Error"},
		{"a failure without a cause", failed(phases.StateFailed, ""), "failed/-/_OTHER/Error"},
		{"a cause that there is not", failed(phases.StateFailed, "Der Kunde heißt Müller"), "failed/_OTHER/_OTHER/Error"},
		{"a state that there is not", failed("thinking", ""), "_OTHER/-/-/Unset"},
		{"filtered", unasked(phases.StateFiltered, ""), "none"},
		{"disabled", unasked(phases.StateDisabled, "operator"), "none"},
		{"queued", unasked(phases.StateQueued, ""), "none"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, telemetry.Options{})
			r.tell(tt.run)
			if got := spanOutcome(r); got != tt.want {
				t.Errorf("the span says %q, want %q", got, tt.want)
			}
			all := newRig(t, telemetry.Options{AllRuns: true})
			if all.tell(tt.run); spanOutcome(all) == "none" {
				t.Error("there is no span with AllRuns")
			}
		})
	}
}

// spanOutcome writes the outcome of the only span down.
func spanOutcome(r *rig) string {
	spans := r.spans.GetSpans()
	if len(spans) == 0 {
		return "none"
	}
	words := map[string]string{"grapnel.state": "-", "grapnel.cause": "-", "error.type": "-"}
	for _, kv := range spans[0].Attributes {
		if _, ok := words[string(kv.Key)]; ok {
			words[string(kv.Key)] = kv.Value.String()
		}
	}
	return words["grapnel.state"] + "/" + words["grapnel.cause"] + "/" + words["error.type"] + "/" + spans[0].Status.Code.String()
}

// TestBeginRunWithoutSpan hands the host's trace on where no span is made.
func TestBeginRunWithoutSpan(t *testing.T) {
	t.Parallel()
	state, err := trace.ParseTraceState("vendor=1")
	if err != nil {
		t.Fatal(err)
	}
	hosts := trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceFlags: trace.FlagsSampled, TraceState: state, Remote: true,
	})
	inTrace := trace.ContextWithRemoteSpanContext(context.Background(), hosts)
	want := phases.Trace{Parent: "00-01000000000000000000000000000000-0200000000000000-01", State: "vendor=1"}
	bare, err := telemetry.New(telemetry.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		tel  *telemetry.Telemetry
		ctx  context.Context
		run  phases.Run
		want phases.Trace
	}{
		{"no provider", bare, inTrace, answered(), want},
		{"no provider and no trace", bare, context.Background(), answered(), phases.Trace{}},
		{"a hook that is off", newRig(t, telemetry.Options{}).Telemetry, inTrace, unasked(phases.StateDisabled, "operator"), want},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			ctx, told, end := tt.tel.BeginRun(tt.ctx, phases.Trace{}, &tt.run)
			end(&tt.run, noon())
			if diff := cmp.Diff(told, tt.want); diff != "" {
				t.Errorf("told (-got +want):\n%s", diff)
			}
			if ctx != tt.ctx {
				t.Error("the context is another one")
			}
		})
	}
}

// TestSampledOut makes no attributes for a span that nobody records, and still tells
// the plugin that the trace is not sampled.
func TestSampledOut(t *testing.T) {
	t.Parallel()
	tracers := sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.NeverSample()))
	tel, err := telemetry.New(telemetry.Options{TracerProvider: tracers})
	if err != nil {
		t.Fatal(err)
	}
	run := answered()
	_, told, end := tel.BeginRun(context.Background(), phases.Trace{}, &run)
	end(&run, noon())
	if got := told.Parent; len(got) != 55 || got[53:] != "00" {
		t.Errorf("traceparent %q, want one that is not sampled", got)
	}
}
