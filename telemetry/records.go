package telemetry

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

// Attributes returns what joins a span with the log: the id of a manifest, and the conversation, agent, provider and
// model that it is about. A host sets them on its own span of the request that it sends the prompt with.
func (t *Telemetry) Attributes(m *manifest.Manifest) []attribute.KeyValue {
	list := []attribute.KeyValue{
		keyManifest.String(plain(m.ManifestID)), keyProvider.String(plain(m.Cache.GenAIProvider())), keyRequestModel.String(plain(m.Cache.Model)),
	}
	if !t.omitIDs {
		list = append(list, keyConversation.String(m.ThreadID), keyAgent.String(m.AgentID))
	}
	return filled(list)
}

// Sink returns a sink with a span for each record that next keeps, and for each report of a provider. [Telemetry.Attach]
// does so with the sink of its options.
func (t *Telemetry) Sink(next runtime.Sink) runtime.Sink {
	if next == nil || t.tracer == nil {
		return next
	}
	return &tracedSink{next, t}
}

type tracedSink struct {
	runtime.Sink
	t *Telemetry
}

func (s *tracedSink) Append(ctx context.Context, m *manifest.Manifest, texts []manifest.Text) error {
	kind := keyKind.String(closed(s.t.words.kinds, m.Kind))
	return s.spanned(ctx, "keep_manifest", append(s.t.Attributes(m), kind), func(ctx context.Context) error { return s.Sink.Append(ctx, m, texts) })
}

func (s *tracedSink) Report(ctx context.Context, u manifest.Usage) error {
	return s.spanned(ctx, "report_usage", []attribute.KeyValue{
		keyManifest.String(plain(u.ManifestID)), keyInputTokens.Int(u.InputTokens), keyOutputTokens.Int(u.OutputTokens),
		keyCacheRead.Int(u.CacheReadTokens), keyCacheWrite.Int(u.CacheWriteTokens),
	}, func(ctx context.Context) error { return s.Sink.Report(ctx, u) })
}

func (s *tracedSink) spanned(ctx context.Context, name string, list []attribute.KeyValue, do func(ctx context.Context) error) error {
	ctx, span := s.t.tracer.Start(ctx, name, trace.WithSpanKind(trace.SpanKindInternal), trace.WithAttributes(list...))
	defer span.End()
	err := do(ctx)
	if err != nil {
		cause := closed(s.t.words.causes, phases.CodeOf(err))
		span.SetAttributes(keyError.String(cause))
		span.SetStatus(codes.Error, cause)
	}
	return err
}
