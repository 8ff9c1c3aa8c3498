package jobqueue

import (
	"context"
	"database/sql"
	"path/filepath"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/internal/engine/jobs"
	"github.com/grapnelhq/grapnel/internal/sqldb"
	"github.com/grapnelhq/grapnel/internal/sqldb/schema"
)

// inside opens a database and its queue.
func inside(t *testing.T) (*sqldb.DB, *Queue) {
	t.Helper()
	db, err := sqldb.Open(t.Context(), "sqlite:"+filepath.Join(t.TempDir(), "x.db"), sqldb.Options{Schema: schema.Current()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	q, err := Open(db, jobs.QueueOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return db, q
}

// TestClockSetForward: a clock that is set forward makes leases look old. A process takes over no job before it has
// watched the clock for a lease without a step, in which a process that lives renews its own.
func TestClockSetForward(t *testing.T) {
	t.Parallel()

	db, q := inside(t)
	if err := q.Add(t.Context(), jobs.Job{Kind: "k", Plugin: "p"}); err != nil {
		t.Fatal(err)
	}
	err := db.Join(t.Context(), "taking the job long ago", func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "UPDATE jobs SET state = 'running', attempt = 1, holder = 'another', renewed = 1")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	watched := func() { q.clock.since = time.Now().Add(-q.opts.Lease) }
	for _, step := range []struct {
		name string
		do   func()
		want jobs.Counts
	}{
		{"at the first look", func() {}, jobs.Counts{Running: 1}},
		{"after a step of an hour", func() { watched(); q.clock.wall -= 3600 }, jobs.Counts{Running: 1}},
		{"after a lease without a step", watched, jobs.Counts{Waiting: 1}},
	} {
		step.do()
		if err := q.rescue(t.Context()); err != nil {
			t.Fatal(err)
		}
		got, err := q.Counts(t.Context())
		if got.OldestSeconds = 0; got != step.want || err != nil {
			t.Errorf("%s: %+v, %v", step.name, got, err)
		}
	}
}

// TestLeaseOfTheSameNumber: a job comes back with the number of an attempt that has not released its lease yet.
func TestLeaseOfTheSameNumber(t *testing.T) {
	t.Parallel()

	l, end := leases{held: map[attempt]*lease{}}, func(error) {}
	before, after := l.hold(attempt{id: 1}, end), l.hold(attempt{id: 1}, end)
	if l.release(before); len(l.all()) != 1 {
		t.Fatal("the lease of the next attempt was released")
	}
	if l.release(after); len(l.all()) != 0 {
		t.Error("a lease was not released")
	}
}
