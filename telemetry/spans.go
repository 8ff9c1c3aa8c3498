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

// BeginRun is runtime.Options.BeginRun, for hosts that compose their options themselves. It starts the span of a run,
// under the span in ctx, or under from if that is a trace context: that of a run that queued this one. It returns the
// context for the run, the W3C trace context for the plugin, and a function that ends the span with the settled row
// at the given time, which must be called once.
//
// The row's names, phase, stage and generation must be set at the start, and the first attempt of a tool call. A run
// without a span (see [Options].AllRuns) has its state at the start, and passes its parent's trace on.
func (t *Telemetry) BeginRun(ctx context.Context, from phases.Trace, run *phases.Run) (context.Context, phases.Trace, func(*phases.Run, time.Time)) {
	if from.Parent != "" {
		ctx = propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{traceParent: from.Parent, traceState: from.State})
	}
	if !t.spanned(run) {
		return ctx, traceOf(ctx), func(*phases.Run, time.Time) {}
	}
	ctx, span := t.tracer.Start(ctx, spanName(run), trace.WithSpanKind(trace.SpanKindInternal), trace.WithAttributes(t.known(run)...))
	return ctx, traceOf(ctx), func(run *phases.Run, end time.Time) { t.endSpan(span, run, end) }
}

func (t *Telemetry) endSpan(span trace.Span, run *phases.Run, end time.Time) {
	if span.IsRecording() {
		span.SetAttributes(t.settled(run)...)
		if failure := t.words.failureOf(run); failure != "" {
			span.SetStatus(codes.Error, failure)
		}
	}
	span.End(trace.WithTimestamp(end))
}

// spanned reports whether a run gets a span.
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

// toolOf returns the name of a tool that was called, empty if a model made it up.
func toolOf(run *phases.Run) string {
	if !named(run) {
		return ""
	}
	return plain(run.Hook)
}

// known returns the attributes at the start, for samplers.
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
	if ref := run.DecisionRef; ref != nil {
		list = append(list, keyDecisionRef.String(plain(ref.String())), keyManifest.String(plain(ref.ManifestID)))
	}
	if run.QueueMS > 0 {
		list = append(list, keyQueued.Float64(inSeconds(run.QueueMS)))
	}
	return filled(append(list, keyModel.String(plain(run.Model))))
}

// The names of a trace context's fields.
const traceParent, traceState = "traceparent", "tracestate"

func traceOf(ctx context.Context) phases.Trace {
	c := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, c)
	return phases.Trace{Parent: c[traceParent], State: c[traceState]}
}
