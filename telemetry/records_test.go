package telemetry_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/codes"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
	"github.com/grapnelhq/grapnel/telemetry"
)

// memory is a sink that keeps everything, or refuses it with err.
type memory struct {
	mu   sync.Mutex
	kept []*manifest.Manifest
	err  error
}

func (s *memory) Append(_ context.Context, m *manifest.Manifest, _ []manifest.Text) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept = append(s.kept, m)
	return s.err
}

func (s *memory) Last(context.Context, string, string) (*manifest.Manifest, error) { return nil, nil }

func (s *memory) Report(context.Context, manifest.Usage) error { return s.err }

// TestSinkSpans compiles a turn under a span of the host, reports its usage, and joins the spans with the records.
func TestSinkSpans(t *testing.T) {
	t.Parallel()
	for name, omit := range map[string]bool{"with ids": false, "without": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, sink := newRig(t, telemetry.Options{OmitIDs: omit}), &memory{}
			eng, err := runtime.New(t.Context(), &config.Config{Version: 1}, r.Attach(runtime.Options{Sink: sink}))
			if err != nil {
				t.Fatal(err)
			}
			ctx, request := r.tracers.Tracer("host").Start(t.Context(), "chat")
			c := phases.Context{WorkspaceID: "ws-secret", ThreadID: "thread-1", TurnID: "tu-secret", AgentID: "agent-1"}
			done, err := eng.CompileTurn(ctx, c, runtime.CompileInput{Model: "gemini-3-pro", Provider: "gemini"})
			if err != nil {
				t.Fatal(err)
			}
			usage := phases.Usage{InputTokens: 100, OutputTokens: 20, CacheReadTokens: 60, CacheWriteTokens: 5}
			if err := eng.ReportUsage(ctx, manifest.Usage{ManifestID: done.Manifest.ManifestID, Usage: usage}); err != nil {
				t.Fatal(err)
			}
			request.SetAttributes(r.Attributes(done.Manifest)...)
			request.End()
			if err := eng.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			about := []string{"gen_ai.provider.name=gcp.gemini", "gen_ai.request.model=gemini-3-pro"}
			if !omit {
				about = append([]string{"gen_ai.agent.id=agent-1", "gen_ai.conversation.id=thread-1"}, about...)
			}
			id := "grapnel.manifest.id=" + sink.kept[0].ManifestID
			about = append(about, id)
			got := map[string][]string{}
			for _, s := range r.spans.GetSpans() {
				got[s.Name] = attributes(s)
				if s.Name != "chat" && s.Parent.SpanID() != request.SpanContext().SpanID() {
					t.Errorf("%s is not under the host's span", s.Name)
				}
			}
			want := map[string][]string{
				"chat": about, "keep_manifest": append(slices.Clip(about), "grapnel.manifest.kind=prompt"),
				"report_usage": {
					"gen_ai.usage.cache_creation.input_tokens=5", "gen_ai.usage.cache_read.input_tokens=60", "gen_ai.usage.input_tokens=100",
					"gen_ai.usage.output_tokens=20", id,
				},
			}
			if diff := cmp.Diff(got, want); diff != "" {
				t.Errorf("attributes (-got +want):\n%s", diff)
			}
			for _, leak := range leaks(r.exported(t), "secret") {
				t.Errorf("exported: …%s…", leak)
			}
		})
	}
}

// TestSinkRefuses: a failure of the sink is that of the span, without its words.
func TestSinkRefuses(t *testing.T) {
	t.Parallel()
	r := newRig(t, telemetry.Options{})
	s := r.Sink(&memory{err: errors.New("secret")})
	m := manifest.New()
	if s.Append(t.Context(), &m, nil) == nil || s.Report(t.Context(), manifest.Usage{ReportedAt: time.Now()}) == nil {
		t.Error("the sink's failure is lost")
	}
	for _, span := range r.spans.GetSpans() {
		if span.Status.Code != codes.Error || span.Status.Description != "internal" {
			t.Errorf("%s: %+v", span.Name, span.Status)
		}
	}
	if len(leaks(r.exported(t), "secret")) > 0 {
		t.Error("the words of the failure were exported")
	}
	plain, err := telemetry.New(telemetry.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if sink := (&memory{}); plain.Sink(sink) != runtime.Sink(sink) {
		t.Error("without traces the sink is wrapped")
	}
}
