package runtime_test

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

// memorySink keeps manifests in chains, as a store does.
type memorySink struct {
	// before, if set, is asked before each call, by the name of its method.
	before func(ctx context.Context, method string) error

	mu      sync.Mutex
	records []*manifest.Manifest
	texts   map[string]string
	usage   []manifest.Usage
	calls   map[string]int
}

var _ runtime.Sink = (*memorySink)(nil)

func (s *memorySink) called(ctx context.Context, method string) error {
	s.mu.Lock()
	if s.calls == nil {
		s.calls, s.texts = map[string]int{}, map[string]string{}
	}
	s.calls[method]++
	s.mu.Unlock()
	if s.before == nil {
		return nil
	}
	return s.before(ctx, method)
}

func (s *memorySink) Append(ctx context.Context, m *manifest.Manifest, texts []manifest.Text) error {
	if err := s.called(ctx, "Append"); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var link *manifest.Link
	if last := s.last(m.WorkspaceID, m.ThreadID); last != nil {
		l := last.Link()
		link = &l
	}
	if err := manifest.Seal(m, link, nil); err != nil {
		return err
	}
	s.records = append(s.records, m)
	for _, text := range texts {
		s.texts[text.Hash] = text.Text
	}
	return nil
}

func (s *memorySink) last(workspace, thread string) *manifest.Manifest {
	for _, m := range slices.Backward(s.records) {
		if m.WorkspaceID == workspace && m.ThreadID == thread {
			return m
		}
	}
	return nil
}

func (s *memorySink) Last(ctx context.Context, workspace, thread string) (*manifest.Manifest, error) {
	if err := s.called(ctx, "Last"); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range slices.Backward(s.records) {
		if m.WorkspaceID == workspace && m.ThreadID == thread && m.Kind == manifest.KindPrompt {
			return m, nil
		}
	}
	return nil, nil
}

// prompts are the records that are not of events.
func (s *memorySink) prompts() (list []*manifest.Manifest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.records {
		if m.Kind == manifest.KindPrompt {
			list = append(list, m)
		}
	}
	return list
}

func (s *memorySink) Report(ctx context.Context, u manifest.Usage) error {
	if err := s.called(ctx, "Report"); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.ContainsFunc(s.records, func(m *manifest.Manifest) bool { return m.ManifestID == u.ManifestID }) {
		return errors.New("no such manifest")
	}
	s.usage = append(s.usage, u)
	return nil
}

// failingAt fails the calls of one method.
func failingAt(method string, err error) func(context.Context, string) error {
	return func(_ context.Context, called string) error {
		if called == method {
			return err
		}
		return nil
	}
}

// hangingAt ignores the context of one method's calls until it is released.
func hangingAt(method string, release <-chan struct{}) func(context.Context, string) error {
	return func(_ context.Context, called string) error {
		if called == method {
			<-release
		}
		return nil
	}
}

// noted lists the codes of diagnostics.
func noted(list []phases.Diagnostic) []string {
	out := []string{}
	for _, d := range list {
		out = append(out, d.Code)
	}
	return out
}
