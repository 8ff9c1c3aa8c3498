package store_test

import (
	"database/sql"
	"sync"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/internal/tests/storetest"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/store"
)

// testSettle: two stores that append and settle at once leave nothing unsettled but what they will settle.
func (x suite) testSettle(t *testing.T) {
	const each = 100
	dsn := x.newDSN(t)
	var all sync.WaitGroup
	for _, thread := range []string{"a", "b"} {
		s := open(t, dsn, store.Options{})
		all.Go(func() {
			for n := range each {
				offset := 0
				if thread == "b" {
					offset = each
				}
				if err := s.Append(t.Context(), sample("w", thread, offset+n), nil); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	raw := storetest.Raw(t, dsn)
	for began := time.Now(); unsettled(t, raw) >= 2*each; {
		if time.Since(began) > time.Minute {
			t.Fatal("nothing was settled beside the appends")
		}
	}
	if err := open(t, dsn, store.Options{}).Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	if left := unsettled(t, raw); left != 0 {
		t.Errorf("%d records are unsettled after Settle", left)
	}
}

func unsettled(t *testing.T, db *sql.DB) (n int) {
	t.Helper()
	if err := db.QueryRowContext(t.Context(), "SELECT count(*) FROM pending").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// testTimes: within a thread no record is from before the one in front of it, whatever the clock does.
func (x suite) testTimes(t *testing.T) {
	s := open(t, x.newDSN(t), store.Options{})
	fillThread(t, s, "w", "t", 5, 6)
	fillThread(t, s, "w", "t", 2, 4) // the clock was put back
	fillThread(t, s, "w", "t", 7, 8)
	list, err := s.List(t.Context(), store.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []int{5, 5, 5, 7} {
		if at := epoch().Add(time.Duration(want) * time.Second); !list[i].CreatedAt.Equal(at) {
			t.Errorf("record %d is from %s, want %s", i, list[i].CreatedAt, at)
		}
	}
	wantGood(t, s, 4)
}

// testIdleThread: a thread that nobody uses any more keeps its own texts, and not those of others.
func (x suite) testIdleThread(t *testing.T) {
	s := open(t, x.newDSN(t), store.Options{})
	text := func(s string) manifest.Text { return manifest.Text{Hash: manifest.Hash(s, nil), Text: s} }
	keep(t, s, sample("w", "idle", 0), text("of both"), text("of the idle thread"))
	keep(t, s, sample("w", "busy", 1), text("of both"), text("old"))
	keep(t, s, sample("w", "busy", 2), text("new"))
	done, err := s.Prune(t.Context(), store.Retention{Count: 1}, epoch())
	if err != nil || done.Manifests != 1 || done.Texts != 1 {
		t.Errorf("pruned %+v, %v, want one manifest and its text", done, err)
	}
	for name, kept := range map[string]bool{"of both": true, "of the idle thread": true, "old": false, "new": true} {
		if _, err := s.Text(t.Context(), text(name).Hash); (err == nil) != kept {
			t.Errorf("the text %q: %v, want kept = %v", name, err, kept)
		}
	}
}
