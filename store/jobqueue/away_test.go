package jobqueue_test

import (
	"context"
	"database/sql"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
	"github.com/grapnelhq/grapnel/runtime/queuetest"
	"github.com/grapnelhq/grapnel/store/jobqueue"
	"github.com/grapnelhq/grapnel/store/sqldb"
	"github.com/grapnelhq/grapnel/store/storetest"
)

// TestServerAway has tests that end the server, which is not shared with other
// tests, so they run one after the other.
func TestServerAway(t *testing.T) {
	t.Parallel()

	pg, _ := server.Own(t)
	for _, tt := range []struct {
		name string
		test func(t *testing.T, pg *storetest.Postgres, dsn string)
	}{
		{"for a while", testAwayForAWhile},
		{"longer than a lease", testAwayForLong},
		{"as Serve begins", testAwayAtFirst},
		{"as Serve ends", testAwayAtLast},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dsn, err := pg.NewDSN(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			tt.test(t, pg, dsn)
		})
	}
}

// testAwayForAWhile ends the server under work, and brings it back. What was taken
// is done; the verdict of work that went on meanwhile is stored when it is back.
func testAwayForAWhile(t *testing.T, pg *storetest.Postgres, dsn string) {
	t.Helper()
	q := open(t, dsn, jobqueue.Options{})
	begun, finish := make(chan struct{}, 1), make(chan struct{})
	serve(t, q, func(_ context.Context, j runtime.Job, attempt int) runtime.Verdict {
		if j.Kind == "long" && attempt == 1 {
			begun <- struct{}{}
			either(t, finish)
		}
		return runtime.Verdict{Action: runtime.JobDone}
	})
	add(t, q, runtime.Job{Kind: "long", Plugin: "p"})
	<-begun
	if err := pg.Crash(t.Context()); err != nil {
		t.Fatal(err)
	}
	close(finish)
	wantCode(t, q.Add(t.Context(), runtime.Job{Plugin: "p"}), sqldb.CodeUnreachable)
	wantCode(t, q.Idle(t.Context()), sqldb.CodeUnreachable)
	_, err := q.Counts(t.Context())
	wantCode(t, err, sqldb.CodeUnreachable)
	_, err = q.List(t.Context(), jobqueue.Filter{Dead: true})
	wantCode(t, err, sqldb.CodeUnreachable)
	_, err = q.Remove(t.Context(), 1)
	wantCode(t, err, sqldb.CodeUnreachable)
	if err := pg.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	for n := range 20 {
		add(t, q, runtime.Job{Kind: strconv.Itoa(n), Plugin: "p"})
	}
	// A server that has started again before anybody noticed fails nobody.
	if err := errors.Join(pg.Crash(t.Context()), pg.Restart(t.Context())); err != nil {
		t.Fatal(err)
	}
	add(t, q, runtime.Job{Kind: "at once", Plugin: "p"})
	queuetest.Await(t, "no jobs", func() bool { return counts(t, q) == runtime.QueueCounts{} })
}

// testAwayForLong: when the server is away for longer than a lease, work is
// told before another process may have its job.
func testAwayForLong(t *testing.T, pg *storetest.Postgres, dsn string) {
	t.Helper()
	q := open(t, dsn, jobqueue.Options{Lease: 2 * time.Second})
	begun, told := make(chan time.Time, 2), make(chan error, 2)
	serve(t, q, func(ctx context.Context, _ runtime.Job, attempt int) runtime.Verdict {
		if attempt > 1 {
			return runtime.Verdict{Action: runtime.JobDone}
		}
		begun <- time.Now()
		<-ctx.Done()
		told <- context.Cause(ctx)
		return runtime.Verdict{Action: runtime.JobRequeue, Err: context.Cause(ctx)}
	})
	add(t, q, runtime.Job{Kind: "k", Plugin: "p"})
	<-begun
	if err := pg.Crash(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-told; err == nil || !strings.Contains(err.Error(), "lease") {
		t.Errorf("it was told %v", err)
	}
	if err := pg.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	queuetest.Await(t, "no jobs", func() bool { return counts(t, q) == runtime.QueueCounts{} })
}

// testAwayAtFirst: Serve waits for a server that is away as it begins, and
// ends with its context all the same.
func testAwayAtFirst(t *testing.T, pg *storetest.Postgres, dsn string) {
	t.Helper()
	q, idle := open(t, dsn, jobqueue.Options{}), open(t, dsn, jobqueue.Options{})
	add(t, q, runtime.Job{Kind: "k", Plugin: "p"})
	if err := pg.Crash(t.Context()); err != nil {
		t.Fatal(err)
	}
	end := serve(t, idle, done)
	ran := make(chan struct{})
	serve(t, q, func(context.Context, runtime.Job, int) runtime.Verdict {
		close(ran)
		return runtime.Verdict{Action: runtime.JobDone}
	})
	end()
	if err := pg.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-ran
}

// testAwayAtLast: the end of Serve does not wait for a server that is away.
func testAwayAtLast(t *testing.T, pg *storetest.Postgres, dsn string) {
	t.Helper()
	q := open(t, dsn, jobqueue.Options{})
	begun := make(chan struct{})
	end := serve(t, q, func(ctx context.Context, _ runtime.Job, _ int) runtime.Verdict {
		close(begun)
		<-ctx.Done()
		return runtime.Verdict{Action: runtime.JobRequeue, Err: context.Cause(ctx)}
	})
	add(t, q, runtime.Job{Kind: "k", Plugin: "p"})
	<-begun
	if err := pg.Crash(t.Context()); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	end()
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("it took %s", took)
	}
	if err := pg.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestLocked has somebody else who keeps the file locked. Adding says so after a
// while; work goes on when the lock is gone.
func TestLocked(t *testing.T) {
	t.Parallel()

	dsn := storetest.SQLite(t)
	q := on(t, openDB(t, dsn, sqldb.Options{LockTimeout: 300 * time.Millisecond}), jobqueue.Options{})
	serve(t, q, done)
	add(t, q, runtime.Job{Kind: "before", Plugin: "p"})
	other := openDB(t, dsn, sqldb.Options{})
	var holder *sql.Tx
	queuetest.Await(t, "a moment without a lock", func() (held bool) {
		var err error
		holder, err = other.Writer().BeginTx(t.Context(), nil)
		return err == nil
	})
	wantCode(t, q.Add(t.Context(), runtime.Job{Kind: "meanwhile", Plugin: "p"}), sqldb.CodeLocked)
	cause := errors.New("no more time")
	ctx, cancel := context.WithTimeoutCause(t.Context(), 50*time.Millisecond, cause)
	defer cancel()
	if err := q.Add(ctx, runtime.Job{Plugin: "p"}); !errors.Is(err, cause) {
		t.Errorf("a context that ends: %v", err)
	}
	counts(t, q) // reading goes on
	if err := holder.Rollback(); err != nil {
		t.Fatal(err)
	}
	add(t, q, runtime.Job{Kind: "after", Plugin: "p"})
	queuetest.Await(t, "no jobs", func() bool { return counts(t, q) == runtime.QueueCounts{} })
}

// TestFull fills a file that may not grow. What was taken is there, and done when
// there is room.
func TestFull(t *testing.T) {
	t.Parallel()

	dsn := storetest.SQLite(t)
	db := openDB(t, dsn, sqldb.Options{})
	q := on(t, db, jobqueue.Options{})
	if _, err := db.Writer().ExecContext(t.Context(), "PRAGMA max_page_count = 200"); err != nil {
		t.Fatal(err)
	}
	taken := 0
	job := runtime.Job{Kind: "k", Plugin: "p", Payload: []byte(`"` + strings.Repeat("x", 8000) + `"`)}
	var err error
	for ; err == nil; taken++ {
		err = q.Add(t.Context(), job)
	}
	taken--
	wantCode(t, err, sqldb.CodeFull)
	if c := counts(t, q); c.Waiting != taken || taken < 5 {
		t.Errorf("%d jobs were taken, there are %+v", taken, c)
	}
	if _, err := db.Writer().ExecContext(t.Context(), "PRAGMA max_page_count = 100000"); err != nil {
		t.Fatal(err)
	}
	serve(t, q, done)
	add(t, q, job)
	if err := q.Idle(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestClosed: a queue that is closed says so.
func TestClosed(t *testing.T) {
	t.Parallel()

	storetest.Both(t, server.NewDSN, func(t *testing.T, dsn string) {
		q := open(t, dsn, jobqueue.Options{})
		serve(t, q, done)()
		if err := q.Serve(t.Context(), simple(done)); err == nil || phases.CodeOf(err) == phases.CauseUnavailable {
			t.Errorf("a second Serve: %v", err)
		}
		for range 2 {
			if err := q.Close(); err != nil {
				t.Error(err)
			}
		}
		_, countErr := q.Counts(t.Context())
		_, listErr := q.List(t.Context(), jobqueue.Filter{Dead: true})
		_, jobErr := q.Job(t.Context(), 1)
		_, retryErr := q.Retry(t.Context(), 1)
		_, removeErr := q.Remove(t.Context(), 1)
		for name, err := range map[string]error{
			"Add": q.Add(t.Context(), runtime.Job{}), "Serve": q.Serve(t.Context(), simple(done)), "Counts": countErr,
			"List": listErr, "Job": jobErr, "Retry": retryErr, "Remove": removeErr,
		} {
			if phases.CodeOf(err) != phases.CauseUnavailable {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}
