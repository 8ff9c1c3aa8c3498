package store_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/internal/sqldb"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/store"
)

// testEntries: two stores over one database agree on a thread's prompts, the last one, and what broke the cache, whoever
// of them has appended; blocked turns and records of events do not count as prompts.
func (x suite) testEntries(t *testing.T) {
	dsn := x.newDSN(t)
	stores := []*store.Store{open(t, dsn, store.Options{}), open(t, dsn, store.Options{})}
	add := func(by int, workspace string, n int, change func(m *manifest.Manifest)) *manifest.Manifest {
		t.Helper()
		m := sample(workspace, "t", n)
		change(m)
		keep(t, stores[by], m)
		return m
	}
	first := add(0, "w", 0, func(*manifest.Manifest) {})
	add(1, "w", 1, func(m *manifest.Manifest) { m.Blocked = true })
	changed := add(1, "w", 2, func(m *manifest.Manifest) { m.Sections[4].Hash = manifest.Hash("another text", nil) })
	events := add(0, "w", 3, func(m *manifest.Manifest) { m.Kind, m.Sections = manifest.KindEvents, nil })
	add(1, "v", 4, func(*manifest.Manifest) {})
	report(t, stores[0], usage(2, 1, epoch()))
	report(t, stores[1], usage(2, 2, epoch().Add(1)))

	for i, s := range stores {
		for _, tt := range []struct {
			name   string
			filter store.Filter
			want   []int
		}{
			{"a thread", store.Filter{Workspace: "w", Thread: "t"}, []int{0, 1, 2, 3}},
			{"the newest prompt and the one before it", store.Filter{Workspace: "w", Thread: "t", Limit: 1}, []int{0, 2}},
			{"of several workspaces", store.Filter{Thread: "t", Limit: 5}, []int{4, 0, 2}},
			{"no such thread", store.Filter{Workspace: "w", Thread: "none", Limit: 5}, nil},
		} {
			var got, want []string
			for e, err := range s.Entries(t.Context(), tt.filter) {
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, e.Outline.ManifestID)
				if reported := e.Usage != nil; reported != (e.Outline.ManifestID == changed.ManifestID) || reported && e.Usage.Rounds != 2 {
					t.Errorf("store %d, %s: usage of %s is %+v", i, tt.name, e.Outline.ManifestID, e.Usage)
				}
			}
			for _, n := range tt.want {
				want = append(want, sampleID(n))
			}
			if diff := cmp.Diff(got, want); diff != "" {
				t.Errorf("store %d, %s (-got +want):\n%s", i, tt.name, diff)
			}
		}
		last, err := s.Last(t.Context(), "w", "t")
		if err != nil || last == nil || last.ManifestID != changed.ManifestID {
			t.Errorf("store %d: the last prompt is %+v, %v", i, last, err)
		}
		for _, tt := range []struct {
			m     *manifest.Manifest
			cause manifest.Cause
			at    string
		}{{first, "", ""}, {changed, "section_text", "section_4"}, {events, "", ""}} {
			m := tt.m.Clone()
			if _, err := s.Judge(t.Context(), &m); err != nil || m.Cache.Cause != tt.cause || m.Cache.BrokeAt != tt.at {
				t.Errorf("store %d: %s was broken by %q at %q, %v; want %q at %q", i, m.ManifestID, m.Cache.Cause, m.Cache.BrokeAt, err, tt.cause, tt.at)
			}
		}
		if server := s.DB().Kind() == sqldb.Postgres; s.Shared() != server {
			t.Errorf("store %d: shared is %v", i, s.Shared())
		}
	}
}
