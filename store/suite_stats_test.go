package store_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/internal/tests/storetest"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/store"
)

// testSums: after random appends, reports, erasures and retention, stats by kept sums are those of all records, and
// count the breaks that blame names.
func (x suite) testSums(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	now := epoch()
	dsn := x.newDSN(t)
	s := open(t, dsn, store.Options{Now: func() time.Time { return now }})
	s.StopSettling() // SettleOnly does it
	ids, rounds := []string{}, map[string]int{}
	for n := range 100 {
		now = now.Add(time.Duration(r.IntN(int(2 * time.Hour))))
		switch op := r.IntN(20); {
		case op < 12:
			m := randomRecord(r, n, now, rounds)
			if err := s.Append(t.Context(), m, []manifest.Text{{Hash: manifest.Hash(m.ThreadID, nil), Text: m.ThreadID}}); err != nil {
				t.Fatal(err)
			}
			ids = append(ids, m.ManifestID)
		case op < 17 && len(ids) > 0:
			u := manifest.Usage{ManifestID: ids[max(0, len(ids)-1-r.IntN(12))], Rounds: 1, ReportedAt: now, Usage: phases.Usage{InputTokens: 2000, CacheReadTokens: r.IntN(2) * 900}}
			if err := s.Report(t.Context(), u); err != nil && !store.HasCode(err, store.CodeNotFound) {
				t.Fatal(err)
			}
		case op == 17:
			if _, err := s.Erase(t.Context(), store.Erasing{Scope: store.Scope{WorkspaceID: "w1"}, By: "user:ada", Reason: "asked"}); err != nil {
				t.Fatal(err)
			}
		case op == 18:
			if _, err := s.Prune(t.Context(), store.Retention{Count: 10 + r.IntN(30), Age: time.Duration(1+r.IntN(9)) * 24 * time.Hour}, now); err != nil {
				t.Fatal(err)
			}
		default:
			if err := s.SettleOnly(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if n%25 == 24 {
			wantStats(t, s, store.Filter{}, time.Time{}, time.Time{})
			from := epoch().Add(time.Duration(r.Int64N(int64(now.Sub(epoch())))))
			wantStats(t, s, store.Filter{Workspace: "w1"}, from, time.Time{})
			wantStats(t, s, store.Filter{Workspace: "w0", Thread: "t1"}, time.Time{}, from)
			wantStats(t, s, store.Filter{}, from, from.Add(time.Duration(r.IntN(int(60*time.Hour)))))
		}
	}
	storetest.Exec(t, dsn, "UPDATE day_sums SET sums = ''")
	if _, err := s.Stats(t.Context(), store.Filter{}, time.Time{}, time.Time{}, func() {}); !store.HasCode(err, store.CodeDamaged) {
		t.Errorf("damaged sums: %v", err)
	}
	if _, err := s.Prune(t.Context(), store.Retention{}, now); err != nil {
		t.Fatal(err)
	}
	wantStats(t, s, store.Filter{}, time.Time{}, time.Time{})
}

// randomRecord is a prompt, also a blocked one or of a later round, or a record of events.
func randomRecord(r *rand.Rand, n int, now time.Time, rounds map[string]int) *manifest.Manifest {
	m := sample(fmt.Sprint("w", r.IntN(2)), fmt.Sprint("t", r.IntN(3)), n)
	m.CreatedAt, m.Sections, m.Runs = now, m.Sections[:3], m.Runs[:2+r.IntN(4)]
	thread := m.WorkspaceID + m.ThreadID
	if rounds[thread] = (rounds[thread] + 1) * r.IntN(2); rounds[thread] > 0 {
		m.TurnID, m.Round = "long", rounds[thread]
	}
	switch r.IntN(6) {
	case 0:
		m.Kind, m.Sections = manifest.KindEvents, nil
	case 1:
		m.Blocked = true
	case 2:
		m.Runs[0].State, m.Runs[1].Cut = phases.StateFailed, []phases.Cut{{}}
		m.Omitted = []phases.Omitted{{ID: "banner", Owner: "house"}, {ID: "house.rules#1", Owner: "house"}}
	case 3:
		m.Sections[r.IntN(3)].Hash = manifest.Hash(strconv.Itoa(n), nil)
	case 4:
		m.Epoch = n
	}
	return m
}

// wantStats compares stats with a sum over all records.
func wantStats(t *testing.T, s *store.Store, f store.Filter, since, until time.Time) {
	t.Helper()
	all, err := s.Manifests(t.Context(), store.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	before, total, breaks := map[string]*manifest.Entry{}, manifest.NewCounter(), 0
	var want manifest.Stats
	var first, end time.Time
	for _, m := range all {
		e := &manifest.Entry{Outline: m.Outline()}
		if reports, err := s.Usage(t.Context(), m.ManifestID); err == nil && len(reports) > 0 {
			e.Usage = &reports[len(reports)-1]
		}
		c, thread := manifest.NewCounter(), m.WorkspaceID+m.ThreadID
		if b := before[thread]; b != nil {
			c.Follow(b)
		}
		if m.Sent() {
			before[thread] = e
		}
		if f.Workspace != "" && m.WorkspaceID != f.Workspace || f.Thread != "" && m.ThreadID != f.Thread ||
			m.CreatedAt.Before(since) || !until.IsZero() && !m.CreatedAt.Before(until) {
			continue
		}
		c.AddRecord(m)
		c.AddEntry(e)
		total.Merge(c.Sums, 1)
		if first.IsZero() || m.CreatedAt.Before(first) {
			first = m.CreatedAt
		}
		if m.CreatedAt.After(end) {
			end = m.CreatedAt
		}
	}
	want = total.Stats()
	want.First, want.Last = first, end
	got, err := s.Stats(t.Context(), f, since, until, func() {})
	if diff := cmp.Diff(got, want); diff != "" || err != nil {
		t.Fatalf("%+v from %s to %s: %v (-got +want):\n%s", f, since, until, err, diff)
	}
	if since.IsZero() && until.IsZero() {
		for row, err := range manifest.Blame(s.Entries(t.Context(), f)) {
			if err == nil && row.Broke() {
				breaks++
			}
		}
		owners, days := 0, 0
		for _, o := range got.Owners {
			owners += o.Breaks
		}
		for _, d := range got.Days {
			days += d.Breaks
		}
		if owners != breaks || days != breaks {
			t.Errorf("%d breaks by plugin and %d by day, blame has %d", owners, days, breaks)
		}
	}
}
