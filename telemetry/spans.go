package telemetry

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/grapnelhq/grapnel/phases"
)

// BeginRun begins the span of a run, under the span that ctx carries, or under from
// where that is not empty: a run that waited in a queue belongs to the trace of who
// put it there. It returns the context with which the run goes on, so that what
// happens in it is below its span; the W3C trace context that the plugin is to be
// told; and the function that ends the span with the settled row at the given time,
// which must be called once. The row is read and not kept. Its names, phase, stage and
// generation must be there at the begin, and of a call of a tool the first attempt;
// the rest is read at the end.
//
// A run that is not to have a span (see [Options].AllRuns) says so by its state at
// the begin. The trace that is handed on is then the one that it would be under. The
// same holds without a TracerProvider: a plugin is still told of the host's trace. A
// text in from that is no trace context counts as none.
//
// It is runtime.Options.BeginRun, for hosts that compose their options themselves.
func (t *Telemetry) BeginRun(ctx context.Context, from phases.Trace, run *phases.Run) (context.Context, phases.Trace, func(*phases.Run, time.Time)) {
	if from.Parent != "" {
		c := carrier(from)
		ctx = propagation.TraceContext{}.Extract(ctx, &c)
	}
	if !t.spanned(run) {
		return ctx, traceOf(ctx), func(*phases.Run, time.Time) {}
	}
	ctx, span := t.tracer.Start(ctx, spanName(run), trace.WithSpanKind(trace.SpanKindInternal), trace.WithAttributes(t.known(run)...))
	return ctx, traceOf(ctx), func(run *phases.Run, end time.Time) { t.endSpan(span, run, end) }
}

// endSpan writes down what became of the run.
func (t *Telemetry) endSpan(span trace.Span, run *phases.Run, end time.Time) {
	if span.IsRecording() {
		span.SetAttributes(t.settled(run)...)
		if failure := t.words.failureOf(run); failure != "" {
			span.SetStatus(codes.Error, failure)
		}
	}
	span.End(trace.WithTimestamp(end))
}

// spanned reports whether a run gets a span: it ran, or should have.
func (t *Telemetry) spanned(run *phases.Run) bool {
	if t.tracer == nil {
		return false
	}
	switch run.State {
	case phases.StateFiltered, phases.StateDisabled, phases.StateQueued:
		return t.allRuns
	}
	return true
}

// spanName has few values: a backend groups by it.
func spanName(run *phases.Run) string {
	switch run.Phase {
	case phases.PhaseToolCall:
		if tool := toolOf(run); tool != "" {
			return "execute_tool " + tool
		}
		return "execute_tool"
	case phases.PhaseHostCall:
		return "host_call " + plain(run.Hook)
	default:
		return "execute_hook " + plain(string(run.Phase))
	}
}

// toolOf is the name of a tool that was called; what a model merely made up is none.
func toolOf(run *phases.Run) string {
	if !named(run) {
		return ""
	}
	return plain(run.Hook)
}

// known are the attributes that a sampler may ask for.
func (t *Telemetry) known(run *phases.Run) []attribute.KeyValue {
	list := make([]attribute.KeyValue, 0, 9)
	list = append(list,
		keyPhase.String(plain(string(run.Phase))), keyStage.String(closed(t.words.stages, run.Stage)),
		keyGeneration.Int64(int64(run.Generation)), //nolint:gosec // it counts from 1
	)
	if named(run) {
		list = append(list, keyPlugin.String(plain(run.Plugin)), keyVersion.String(plain(run.PluginVersion)))
	}
	switch {
	case run.Phase != phases.PhaseToolCall:
		list = append(list, keySubscription.String(plain(run.Subscription)))
	case named(run):
		list = append(list, keyTool.String(toolOf(run)))
	}
	if run.Phase == phases.PhaseToolCall {
		list = append(list, keyOperation.String("execute_tool"))
	}
	return filled(list)
}

// settled are the attributes of a run that is over.
func (t *Telemetry) settled(run *phases.Run) []attribute.KeyValue {
	list := make([]attribute.KeyValue, 0, 12)
	list = append(list,
		keyState.String(closed(t.words.states, run.State)), keyCause.String(closed(t.words.causes, run.Code)),
		keyError.String(t.words.failureOf(run)), keyAttempts.Int(run.Attempts),
	)
	for _, n := range []struct {
		key   attribute.Key
		value int
	}{
		{keyIncarnation, int(run.Incarnation)}, //nolint:gosec // it counts from 1
		{keyRequestSize, run.BytesIn},
		{keyReplySize, run.BytesOut},
		{keyContributions, len(run.Contributions)},
		{keyCuts, len(run.Cut)},
		{keyInputTokens, run.Usage.InputTokens},
		{keyOutputTokens, run.Usage.OutputTokens},
	} {
		if n.value != 0 {
			list = append(list, n.key.Int(n.value))
		}
	}
	if run.QueueMS > 0 {
		list = append(list, keyQueued.Float64(inSeconds(run.QueueMS)))
	}
	return filled(append(list, keyModel.String(plain(run.Model))))
}

// traceOf is the trace context of the span in ctx; zero where there is none.
func traceOf(ctx context.Context) phases.Trace {
	var c carrier
	propagation.TraceContext{}.Inject(ctx, &c)
	return phases.Trace(c)
}

// carrier lets the propagator read and write a phases.Trace: the wire has the two
// fields of W3C and no others.
type carrier phases.Trace

var _ propagation.TextMapCarrier = (*carrier)(nil)

// Get implements propagation.TextMapCarrier.
func (c *carrier) Get(key string) string {
	switch key {
	case "traceparent":
		return c.Parent
	case "tracestate":
		return c.State
	}
	return ""
}

// Set implements propagation.TextMapCarrier.
func (c *carrier) Set(key, value string) {
	switch key {
	case "traceparent":
		c.Parent = value
	case "tracestate":
		c.State = value
	}
}

// Keys implements propagation.TextMapCarrier.
func (c *carrier) Keys() []string { return []string{"traceparent", "tracestate"} }
