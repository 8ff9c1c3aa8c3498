package jobqueue_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/internal/engine/jobs"
	"github.com/grapnelhq/grapnel/internal/sqldb"
	"github.com/grapnelhq/grapnel/internal/tests/storetest"
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
// is done; the result of work that continued meanwhile is stored when it is back.
func testAwayForAWhile(t *testing.T, pg *storetest.Postgres, dsn string) {
	t.Helper()
	q := open(t, dsn, jobs.QueueOptions{})
	begun, finish := make(chan struct{}, 1), make(chan struct{})
	serve(t, q, func(_ context.Context, j jobs.Job, attempt int) jobs.Result {
		if j.Kind == "long" && attempt == 1 {
			begun <- struct{}{}
			either(t, finish)
		}
		return jobs.Result{Action: jobs.Done}
	})
	add(t, q, jobs.Job{Kind: "long", Plugin: "p"})
	<-begun
	if err := pg.Crash(t.Context()); err != nil {
		t.Fatal(err)
	}
	close(finish)
	wantCode(t, q.Add(t.Context(), jobs.Job{Plugin: "p"}), sqldb.CodeUnreachable)
	wantCode(t, q.Idle(t.Context()), sqldb.CodeUnreachable)
	_, err := q.Counts(t.Context())
	wantCode(t, err, sqldb.CodeUnreachable)
	_, err = q.List(t.Context(), jobs.Filter{Dead: true})
	wantCode(t, err, sqldb.CodeUnreachable)
	_, err = q.Remove(t.Context(), 1)
	wantCode(t, err, sqldb.CodeUnreachable)
	if err := pg.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	for n := range 20 {
		add(t, q, jobs.Job{Kind: strconv.Itoa(n), Plugin: "p"})
	}
	// A server that has started again before anybody noticed fails nobody.
	if err := errors.Join(pg.Crash(t.Context()), pg.Restart(t.Context())); err != nil {
		t.Fatal(err)
	}
	add(t, q, jobs.Job{Kind: "at once", Plugin: "p"})
	await(t, "no jobs", func() bool { return counts(t, q) == jobs.Counts{} })
}

// testAwayForLong: when the server is down for longer than a lease, work is cancelled
// before another process may take its job.
func testAwayForLong(t *testing.T, pg *storetest.Postgres, dsn string) {
	t.Helper()
	q := open(t, dsn, jobs.QueueOptions{Lease: 2 * time.Second})
	begun, causes := make(chan time.Time, 2), make(chan error, 2)
	serve(t, q, func(ctx context.Context, _ jobs.Job, attempt int) jobs.Result {
		if attempt > 1 {
			return jobs.Result{Action: jobs.Done}
		}
		begun <- time.Now()
		<-ctx.Done()
		causes <- context.Cause(ctx)
		return jobs.Result{Action: jobs.Requeue, Err: context.Cause(ctx)}
	})
	add(t, q, jobs.Job{Kind: "k", Plugin: "p"})
	<-begun
	if err := pg.Crash(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-causes; err == nil || !strings.Contains(err.Error(), "lease") {
		t.Errorf("it was cancelled with %v", err)
	}
	if err := pg.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	await(t, "no jobs", func() bool { return counts(t, q) == jobs.Counts{} })
}

// testAwayAtFirst: Serve waits for a server that is down as it begins, and still ends
// with its context.
func testAwayAtFirst(t *testing.T, pg *storetest.Postgres, dsn string) {
	t.Helper()
	q, idle := open(t, dsn, jobs.QueueOptions{}), open(t, dsn, jobs.QueueOptions{})
	add(t, q, jobs.Job{Kind: "k", Plugin: "p"})
	if err := pg.Crash(t.Context()); err != nil {
		t.Fatal(err)
	}
	end := serve(t, idle, done)
	ran := make(chan struct{})
	serve(t, q, func(context.Context, jobs.Job, int) jobs.Result {
		close(ran)
		return jobs.Result{Action: jobs.Done}
	})
	end()
	if err := pg.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-ran
}

// testAwayAtLast: the end of Serve does not wait for a server that is down.
func testAwayAtLast(t *testing.T, pg *storetest.Postgres, dsn string) {
	t.Helper()
	q := open(t, dsn, jobs.QueueOptions{})
	begun := make(chan struct{})
	end := serve(t, q, func(ctx context.Context, _ jobs.Job, _ int) jobs.Result {
		close(begun)
		<-ctx.Done()
		return jobs.Result{Action: jobs.Requeue, Err: context.Cause(ctx)}
	})
	add(t, q, jobs.Job{Kind: "k", Plugin: "p"})
	<-begun
	if err := pg.Crash(t.Context()); err != nil {
		t.Fatal(err)
	}
	end()
	if err := pg.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestServedOnce: a queue has one engine.
func TestServedOnce(t *testing.T) {
	t.Parallel()

	q := open(t, storetest.SQLite(t), jobs.QueueOptions{})
	serve(t, q, done)()
	if err := q.Serve(t.Context(), simple(done)); err == nil || t.Context().Err() != nil {
		t.Errorf("a second Serve: %v", err)
	}
}
