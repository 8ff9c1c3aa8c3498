package telemetry_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
	"github.com/grapnelhq/grapnel/telemetry"
)

func TestSpan(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		run    phases.Run
		span   string
		status sdktrace.Status
		want   []string
	}{
		{
			"a hook", answered(), "execute_hook turn.pre_prompt_compile",
			sdktrace.Status{},
			[]string{
				"grapnel.attempts=1", "grapnel.contributions=1", "grapnel.generation=3", "grapnel.incarnation=2",
				"grapnel.phase=turn.pre_prompt_compile", "grapnel.plugin.version=1.2.0", "grapnel.plugin=house", "grapnel.queue.duration=0.0005",
				"grapnel.reply.size=2000", "grapnel.request.size=100", "grapnel.stage=contribute", "grapnel.state=succeeded",
				"grapnel.subscription=house.rules",
			},
		},
		{
			"a hook that was not there", unasked(phases.StateUnavailable, "quarantined"),
			"execute_hook turn.pre_prompt_compile",
			sdktrace.Status{Code: codes.Error, Description: "quarantined"},
			[]string{
				"error.type=quarantined", "grapnel.attempts=0", "grapnel.cause=quarantined", "grapnel.generation=3",
				"grapnel.phase=turn.pre_prompt_compile", "grapnel.plugin.version=1.2.0", "grapnel.plugin=house", "grapnel.stage=contribute",
				"grapnel.state=unavailable", "grapnel.subscription=house.rules",
			},
		},
		{
			"a tool", tool("search", 1), "execute_tool search",
			sdktrace.Status{},
			[]string{
				"gen_ai.operation.name=execute_tool", "gen_ai.tool.name=search", "grapnel.attempts=1", "grapnel.generation=3",
				"grapnel.incarnation=2", "grapnel.phase=tool.call", "grapnel.plugin.version=1.2.0", "grapnel.plugin=house", "grapnel.stage=tool",
				"grapnel.state=succeeded",
			},
		},
		{
			"a tool that a model made up", tool("read_the_secret", 0), "execute_tool",
			sdktrace.Status{},
			[]string{
				"gen_ai.operation.name=execute_tool", "grapnel.attempts=0", "grapnel.generation=3", "grapnel.phase=tool.call",
				"grapnel.stage=tool", "grapnel.state=succeeded",
			},
		},
		{
			"the model", modelCall(), "host_call model.complete",
			sdktrace.Status{},
			[]string{
				"gen_ai.response.model=small-1", "gen_ai.usage.input_tokens=40", "gen_ai.usage.output_tokens=7", "grapnel.attempts=1",
				"grapnel.generation=3", "grapnel.incarnation=2", "grapnel.phase=host.call", "grapnel.plugin.version=1.2.0", "grapnel.plugin=house",
				"grapnel.reply.size=60", "grapnel.request.size=50", "grapnel.stage=host", "grapnel.state=succeeded",
				"grapnel.subscription=house.rules/model.complete",
			},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, telemetry.Options{})
			r.tell(tt.run)
			spans := r.spans.GetSpans()
			if len(spans) != 1 {
				t.Fatalf("%d spans, want 1", len(spans))
			}
			s := spans[0]
			if s.Name != tt.span || s.SpanKind != trace.SpanKindInternal || s.Parent.IsValid() {
				t.Errorf("span %q, kind %v, parent %v; want %q, internal, none", s.Name, s.SpanKind, s.Parent, tt.span)
			}
			if diff := cmp.Diff(s.Status, tt.status); diff != "" {
				t.Errorf("status (-got +want):\n%s", diff)
			}
			if diff := cmp.Diff(attributes(s), tt.want); diff != "" {
				t.Errorf("attributes (-got +want):\n%s", diff)
			}
			if !s.EndTime.Equal(noon()) {
				t.Errorf("it ends at %v, want noon", s.EndTime)
			}
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

func TestAllRuns(t *testing.T) {
	t.Parallel()
	r := newRig(t, telemetry.Options{AllRuns: true})
	for _, state := range []phases.RunState{phases.StateFiltered, phases.StateDisabled, phases.StateQueued} {
		r.tell(unasked(state, ""))
	}
	if got := len(r.spans.GetSpans()); got != 3 {
		t.Errorf("%d spans, want 3", got)
	}
}

// TestBeginRun has the span under the host's, told to the plugin, and around what
// happens in the run.
func TestBeginRun(t *testing.T) {
	t.Parallel()
	r := newRig(t, telemetry.Options{})
	tracer := r.tracers.Tracer("host")
	ctx, hosts := tracer.Start(context.Background(), "turn")
	before := with(func(r *phases.Run) { r.State, r.Attempts, r.Incarnation = "", 0, 0 })
	inside, told, end := r.BeginRun(ctx, phases.Trace{}, &before)
	_, below := tracer.Start(inside, "inside the plugin")
	below.End()
	after, at := failed(phases.StateTimedOut, phases.CauseTimeout), time.Now().Add(time.Second)
	end(&after, at)
	hosts.End()

	spans := r.spans.GetSpans()
	if len(spans) != 3 {
		t.Fatalf("%d spans, want 3", len(spans))
	}
	child, run, parent := spans[0], spans[1], spans[2]
	if run.Parent.SpanID() != parent.SpanContext.SpanID() || child.Parent.SpanID() != run.SpanContext.SpanID() {
		t.Errorf("the run is below %v and above %v; want %v and %v",
			run.Parent.SpanID(), child.Parent.SpanID(), parent.SpanContext.SpanID(), run.SpanContext.SpanID())
	}
	want := phases.Trace{Parent: "00-" + parent.SpanContext.TraceID().String() + "-" + run.SpanContext.SpanID().String() + "-01"}
	if diff := cmp.Diff(told, want); diff != "" {
		t.Errorf("the plugin is told (-got +want):\n%s", diff)
	}
	if got := spanOutcome(&rig{spans: r.only(t, run.Name)}); got != "timed_out/timeout/timeout/Error" {
		t.Errorf("the run's span says %q", got)
	}
	if !run.EndTime.Equal(at) {
		t.Errorf("it ends at %v, want %v", run.EndTime, at)
	}
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

// TestBeginRunOfQueue has a run under the trace that it was queued in, and under the
// caller's where that says nothing.
func TestBeginRunOfQueue(t *testing.T) {
	t.Parallel()
	const parent = "00-01000000000000000000000000000000-0200000000000000-01"
	for _, tt := range []struct {
		name string
		from phases.Trace
		// want is the trace and the parent of the run's span, and the state that is
		// handed on.
		want string
	}{
		{"queued", phases.Trace{Parent: parent, State: "vendor=1"}, "01000000000000000000000000000000 0200000000000000 vendor=1"},
		{"not queued", phases.Trace{}, "09000000000000000000000000000000 0900000000000000 "},
		{"no trace context", phases.Trace{Parent: "Der Kunde heißt Müller"}, "09000000000000000000000000000000 0900000000000000 "},
		{"a state that cannot be read", phases.Trace{Parent: parent, State: "\x00"}, "01000000000000000000000000000000 0200000000000000 "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, telemetry.Options{})
			callers := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{9}, SpanID: trace.SpanID{9}, TraceFlags: trace.FlagsSampled})
			run := answered()
			_, told, end := r.BeginRun(trace.ContextWithSpanContext(context.Background(), callers), tt.from, &run)
			end(&run, noon())
			span := r.spans.GetSpans()[0]
			if got := span.SpanContext.TraceID().String() + " " + span.Parent.SpanID().String() + " " + told.State; got != tt.want {
				t.Errorf("the span is at %q, want %q", got, tt.want)
			}
			if want := "00-" + span.SpanContext.TraceID().String() + "-" + span.SpanContext.SpanID().String() + "-01"; told.Parent != want {
				t.Errorf("told %q, want %q", told.Parent, want)
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

func TestEventsWithoutRun(t *testing.T) {
	t.Parallel()
	r := newRig(t, telemetry.Options{})
	for _, kind := range []runtime.EventKind{runtime.EventRun, runtime.EventPlugin, runtime.EventLog, runtime.EventAudit, "another", ""} {
		r.OnEvent(runtime.Event{Kind: kind, Time: noon(), Plugin: "house"})
	}
	if got := r.spanNames(); len(got) != 0 {
		t.Errorf("spans %q, want none", got)
	}
	if got := r.names(t); len(got) != 0 {
		t.Errorf("metrics %q, want none", got)
	}
}
