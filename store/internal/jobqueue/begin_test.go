package jobqueue_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/internal/engine/jobs"
	"github.com/grapnelhq/grapnel/internal/sqldb"
	"github.com/grapnelhq/grapnel/internal/tests/storetest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/store/internal/jobqueue"
)

// TestBegunIsNotRepeated: an attempt that has begun work which must not be repeated, and
// has no result, is the last until an operator retries the job; it can then be
// interrupted again.
func TestBegunIsNotRepeated(t *testing.T) {
	t.Parallel()

	storetest.Both(t, server.NewDSN, func(t *testing.T, dsn string) {
		q := open(t, dsn, jobs.QueueOptions{Lease: 4 * shortLease}) // it is lost on a busy machine if shorter
		attempts := make(chan int, 9)
		serveAttempts(t, q, func(ctx context.Context, a jobs.Attempt) jobs.Result {
			if err := a.Begin(ctx); err != nil {
				t.Errorf("Begin: %v", err)
			}
			if attempts <- a.Number; len(attempts) < 3 {
				panic("as good as the end of the process")
			}
			return jobs.Result{Action: jobs.Done}
		})
		add(t, q, jobs.Job{Kind: "k", Plugin: "p", Attempts: 9})
		for n := range 2 {
			await(t, "a dead job", func() bool { return counts(t, q) == jobs.Counts{Dead: 1} })
			list, err := q.List(t.Context(), jobs.Filter{Dead: true})
			if err != nil || len(list) != 1 || list[0].Code != phases.CauseInterrupted || list[0].Attempts != 1 || !strings.Contains(list[0].Error, "may have been done") {
				t.Fatalf("dead: %+v, %v", list, err)
			}
			if len(attempts) != n+1 {
				t.Errorf("%d attempts", len(attempts))
			}
			wantIDs(t, q.Retry, []int64{list[0].ID}, list[0].ID)
		}
		await(t, "no jobs", func() bool { return counts(t, q) == jobs.Counts{} })
		if got := []int{<-attempts, <-attempts, <-attempts}; !cmp.Equal(got, []int{1, 1, 1}) || len(attempts) > 0 {
			t.Errorf("attempts %v and %d", got, len(attempts))
		}
	})
}

// TestBegunWithResult: a result counts, whether or not work had begun; a later attempt
// that never began may be repeated.
func TestBegunWithResult(t *testing.T) {
	t.Parallel()

	for _, action := range []jobs.Action{jobs.Requeue, jobs.Retry} {
		t.Run(string(action), func(t *testing.T) {
			t.Parallel()

			storetest.Both(t, server.NewDSN, func(t *testing.T, dsn string) {
				q := open(t, dsn, jobs.QueueOptions{Lease: 4 * shortLease}) // it is lost on a busy machine if shorter
				calls := make(chan int, 9)
				serveAttempts(t, q, func(ctx context.Context, a jobs.Attempt) jobs.Result {
					switch calls <- a.Requeued; len(calls) {
					case 1:
						if err := errors.Join(a.Begin(ctx), a.Begin(ctx)); err != nil {
							t.Errorf("Begin: %v", err)
						}
						return jobs.Result{Action: action, Err: errors.New("not now")}
					case 2:
						panic("as good as the end of the process")
					}
					return jobs.Result{Action: jobs.Done}
				})
				add(t, q, jobs.Job{Kind: "k", Plugin: "p", Attempts: 9, Backoff: time.Millisecond})
				await(t, "no jobs", func() bool { return counts(t, q) == jobs.Counts{} })
				want := []int{0, 1, 1}
				if action == jobs.Retry {
					want = []int{0, 0, 0}
				}
				if got := []int{<-calls, <-calls, <-calls}; !cmp.Equal(got, want) || len(calls) > 0 {
					t.Errorf("put off before each attempt: %v, want %v", got, want)
				}
			})
		})
	}
}

// TestBeginWithoutLease: a process that has lost the job must not begin.
func TestBeginWithoutLease(t *testing.T) {
	t.Parallel()

	storetest.Both(t, server.NewDSN, func(t *testing.T, dsn string) {
		q := open(t, dsn, jobs.QueueOptions{})
		begun := make(chan error, 1)
		serveAttempts(t, q, func(ctx context.Context, a jobs.Attempt) jobs.Result {
			if a.Number == 1 {
				execute(t, dsn, "UPDATE jobs SET attempt = 2") //nolint:contextcheck // of the test
				begun <- a.Begin(ctx)
			}
			return jobs.Result{Action: jobs.Done}
		})
		add(t, q, jobs.Job{Kind: "k", Plugin: "p"})
		if err := <-begun; err == nil || !strings.Contains(err.Error(), "lease") {
			t.Errorf("Begin = %v", err)
		}
		execute(t, dsn, "DELETE FROM jobs")
	})
}

// TestLook: an operator lists the jobs of a store without working on them, also if it is
// open for reading only.
func TestLook(t *testing.T) {
	t.Parallel()

	storetest.Both(t, server.NewDSN, func(t *testing.T, dsn string) {
		db := storetest.Open(t, dsn, sqldb.Options{})
		r := jobqueue.Look(db)
		list, err := r.List(t.Context(), jobs.Filter{})
		c, countErr := r.Counts(t.Context())
		if err := errors.Join(err, countErr); err != nil || len(list) != 0 || c != (jobs.Counts{}) {
			t.Errorf("no queue: %+v, %+v, %v", list, c, err)
		}
		_, err = r.Job(t.Context(), 1)
		wantCode(t, err, sqldb.CodeNotFound)
		wantIDs(t, r.Retry, []int64{1})

		q := on(t, db, jobs.QueueOptions{})
		running, end := make(chan struct{}), make(chan struct{})
		serve(t, q, func(_ context.Context, j jobs.Job, _ int) jobs.Result {
			if j.Kind == "dead" {
				return jobs.Result{Action: jobs.Discard, Err: phases.Errorf(phases.CauseForbidden, "no grant")}
			}
			close(running)
			either(t, end)
			return jobs.Result{Action: jobs.Done}
		})
		add(t, q, jobs.Job{Kind: "dead", Plugin: "p"})
		add(t, q, jobs.Job{Kind: "runs", Plugin: "p"})
		add(t, q, jobs.Job{Kind: "later", Plugin: "o", NotBefore: time.Now().Add(time.Hour)})
		<-running
		await(t, "a dead job", func() bool { return counts(t, q).Dead == 1 })
		seeAll(t, jobqueue.Look(storetest.Open(t, dsn, sqldb.Options{ReadOnly: true})))
		close(end)
	})
}

// seeAll lists a dead job, one that runs, and one that waits for its time.
func seeAll(t *testing.T, r *jobqueue.Records) {
	t.Helper()
	ids := map[string]int64{}
	for _, tt := range []struct {
		filter jobs.Filter
		want   string
	}{
		{jobs.Filter{}, "runs is running,later is scheduled"},
		{jobs.Filter{Limit: 1}, "runs is running"},
		{jobs.Filter{Plugin: "o"}, "later is scheduled"},
		{jobs.Filter{Plugin: "o", Dead: true}, ""},
		{jobs.Filter{Dead: true}, "dead is dead"},
	} {
		list, err := r.List(t.Context(), tt.filter)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, row := range list {
			got = append(got, row.Job.Kind+" is "+string(row.State))
			ids[row.Job.Kind] = row.ID
		}
		if text := strings.Join(got, ","); text != tt.want {
			t.Errorf("%+v: %q, want %q", tt.filter, text, tt.want)
		}
	}
	now := time.Now()
	near := func(at time.Time, off time.Duration) bool { return at.Sub(now.Add(off)).Abs() < 10*time.Minute }
	row, err := r.Job(t.Context(), ids["runs"])
	if err != nil || !near(row.Added, 0) || !near(row.Due, 0) || !near(row.Begun, 0) || !row.Ended.IsZero() || row.Attempts != 1 || strings.Count(row.Holder, "/") < 2 {
		t.Errorf("running: %+v, %v", row, err)
	}
	row, err = r.Job(t.Context(), ids["later"])
	if err != nil || !near(row.Due, time.Hour) || !row.Begun.IsZero() || row.Attempts != 0 || row.Holder != "" {
		t.Errorf("scheduled: %+v, %v", row, err)
	}
	row, err = r.Job(t.Context(), ids["dead"])
	if err != nil || !near(row.Ended, 0) || row.Code != phases.CauseForbidden || !strings.Contains(row.Error, "no grant") {
		t.Errorf("dead: %+v, %v", row, err)
	}
}
