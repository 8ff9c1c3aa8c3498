package jobqueue_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/internal/engine/jobs"
	"github.com/grapnelhq/grapnel/internal/sqldb"
	"github.com/grapnelhq/grapnel/internal/tests/storetest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/store/internal/jobqueue"
)

// TestOptions: what makes no sense is refused.
func TestOptions(t *testing.T) {
	t.Parallel()

	db := storetest.Open(t, storetest.SQLite(t), sqldb.Options{})
	for name, o := range map[string]jobs.QueueOptions{
		"workers":   {Workers: -1},
		"waiting":   {Waiting: -1},
		"lease":     {Lease: time.Millisecond},
		"keep done": {KeepDone: -time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			if _, err := jobqueue.Open(db, o); !sqldb.HasCode(err, sqldb.CodeInternal) || !strings.Contains(err.Error(), "queue options: ") {
				t.Errorf("Open = %v", err)
			}
		})
	}
}

// TestClosed: the queue of a store that is closed says so, and cannot be opened.
func TestClosed(t *testing.T) {
	t.Parallel()

	db := storetest.Open(t, storetest.SQLite(t), sqldb.Options{})
	q := on(t, db, jobs.QueueOptions{})
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	_, err := jobqueue.Open(db, jobs.QueueOptions{})
	for doing, err := range map[string]error{"Open": err, "Add": q.Add(t.Context(), jobs.Job{Plugin: "p"})} {
		if e, ok := errors.AsType[*phases.Error](err); !ok || e.Code != phases.CauseUnavailable {
			t.Errorf("%s = %v", doing, err)
		}
	}
}

// TestKeptForAWhile: what ended long ago is removed, and its key free again.
func TestKeptForAWhile(t *testing.T) {
	t.Parallel()

	storetest.Both(t, server.NewDSN, func(t *testing.T, dsn string) {
		q := open(t, dsn, jobs.QueueOptions{})
		job := jobs.Job{Kind: "k", Plugin: "p", IdempotencyKey: "once"}
		add(t, q, job)
		end := serve(t, q, done)
		if err := q.Idle(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := q.Add(t.Context(), job); !errors.Is(err, jobs.ErrDuplicate) {
			t.Errorf("a second one: %v", err)
		}
		end()
		execute(t, dsn, "UPDATE jobs SET ended = 1")
		serve(t, open(t, dsn, jobs.QueueOptions{}), done)
		await(t, "a key that is free again", func() bool { return q.Add(t.Context(), job) == nil })
	})
}

// TestDoneIsForgotten: nothing of a finished job's content is kept.
func TestDoneIsForgotten(t *testing.T) {
	t.Parallel()

	storetest.Both(t, server.NewDSN, func(t *testing.T, dsn string) {
		q := open(t, dsn, jobs.QueueOptions{})
		add(t, q, jobs.Job{Kind: "k", Plugin: "p", IdempotencyKey: "s3cret", Payload: []byte(`"s3cret"`)})
		add(t, q, jobs.Job{Kind: "without a key", Plugin: "p", Payload: []byte(`"s3cret"`)})
		serve(t, q, done)
		if err := q.Idle(t.Context()); err != nil {
			t.Fatal(err)
		}
		var n int
		var job, key string
		if err := storetest.Raw(t, dsn).QueryRowContext(t.Context(), "SELECT count(*), max(job), max(key) FROM jobs").Scan(&n, &job, &key); err != nil {
			t.Fatal(err)
		}
		if n != 1 || job != "" || len(key) != 64 {
			t.Errorf("%d jobs, %q, key %q", n, job, key)
		}
	})
}
