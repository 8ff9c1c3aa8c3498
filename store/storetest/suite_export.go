package storetest

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/store"
)

func (x suite) testLatest(t *testing.T) {
	s := open(t, x.newDSN(t), store.Options{})
	_, err := s.Latest(t.Context(), store.Filter{})
	wantCode(t, err, store.CodeNotFound)
	_, err = s.Find(t.Context(), "", store.Filter{})
	wantCode(t, err, store.CodeNotFound)
	fill(t, s, "w", "t", 5, 6)
	fill(t, s, "w", "u", 2, 3) // made earlier, appended later
	for thread, want := range map[string]string{"": "u", "t": "t"} {
		if x, err := s.Find(t.Context(), "", store.Filter{Thread: thread}); err != nil || x.ThreadID != want || x.Bytes == 0 {
			t.Errorf("the newest of %q: %+v, %v", thread, x, err)
		}
	}
	if m, err := s.Latest(t.Context(), store.Filter{}); err != nil || m.ThreadID != "u" {
		t.Errorf("latest: %v", err)
	}
	if m, err := s.Latest(t.Context(), store.Filter{Thread: "t"}); err != nil || m.ThreadID != "t" {
		t.Errorf("latest of a thread: %v", err)
	}
}

func (x suite) testExport(t *testing.T) {
	s := open(t, x.newDSN(t), store.Options{})
	fill(t, s, "w", "t", 0, 6)
	fill(t, s, "w", "u", 6, 8)
	var out strings.Builder
	if n, err := s.Export(t.Context(), &out, store.Filter{Thread: "t"}); err != nil || n != 6 {
		t.Fatalf("exported %d, %v", n, err)
	}
	lines := slices.Collect(strings.Lines(out.String()))
	for i, line := range lines {
		m, err := manifest.Parse([]byte(line))
		if err != nil || m.ManifestID != ID(i) || !strings.HasSuffix(line, "}\n") {
			t.Errorf("line %d: %v", i, err)
			continue
		}
		if sum, err := manifest.RecordHash(&m, nil); err != nil || sum != m.Hash {
			t.Errorf("line %d has not the bytes that were hashed: %v", i, err)
		}
	}
	if len(lines) != 6 {
		t.Errorf("%d lines", len(lines))
	}
	n := 0
	for _, err := range s.Records(t.Context(), store.Filter{}) {
		if n++; err != nil || n == 3 {
			break
		}
	}
	fill(t, s, "w", "t", 8, 9) // nothing is held by a stream that was left
	if _, err := s.Export(t.Context(), failing{}, store.Filter{}); err == nil {
		t.Error("a writer that fails was not noticed")
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errors.New("no") }
