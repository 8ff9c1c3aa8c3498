package jobqueue_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/runtime"
	"github.com/grapnelhq/grapnel/runtime/queuetest"
	"github.com/grapnelhq/grapnel/store/jobqueue"
	"github.com/grapnelhq/grapnel/store/sqldb"
	"github.com/grapnelhq/grapnel/store/storetest"
)

// TestDead: dead jobs are listed whole, page by page; one that is retried begins
// anew, and one that is removed is gone, with its key.
func TestDead(t *testing.T) {
	t.Parallel()

	storetest.Both(t, server.NewDSN, func(t *testing.T, dsn string) {
		const jobs = 5
		q := open(t, dsn, jobqueue.Options{})
		end := serve(t, q, func(_ context.Context, j runtime.Job, attempt int) runtime.Verdict {
			if attempt == 1 {
				return runtime.Verdict{Action: runtime.JobRetry, Err: errors.New("for now")}
			}
			return runtime.Verdict{Action: runtime.JobDead, Err: fmt.Errorf("hopeless: %s", j.Kind)}
		})
		start := time.Now().Add(-time.Minute) // clocks differ
		for n := range jobs {
			add(t, q, deadOne(n))
		}
		queuetest.Await(t, "dead jobs", func() bool { return counts(t, q) == runtime.QueueCounts{Dead: jobs} })
		end()
		list := pages(t, q, 2)
		for n, d := range list {
			if diff := cmp.Diff(d.Job, deadOne(n)); diff != "" {
				t.Errorf("job %d (-got +want):\n%s", n, diff)
			}
			if d.Attempts != 2 || d.Error != fmt.Sprint("hopeless: ", n) || d.Ended.Before(start) {
				t.Errorf("job %d: %+v", n, d)
			}
		}
		if err := q.Add(t.Context(), deadOne(0)); !errors.Is(err, runtime.ErrDuplicateJob) {
			t.Errorf("the key of a dead job: %v", err)
		}

		wantIDs(t, q.Retry, []int64{list[0].ID, 1 << 40}, list[0].ID)
		wantIDs(t, q.Remove, []int64{list[1].ID, list[0].ID}, list[1].ID)
		for _, change := range []func(context.Context, ...int64) ([]int64, error){q.Retry, q.Remove} {
			wantIDs(t, change, []int64{list[0].ID, list[1].ID, 1 << 40})
			wantIDs(t, change, nil)
		}
		_, err := q.Job(t.Context(), list[1].ID)
		wantCode(t, err, sqldb.CodeNotFound)
		add(t, q, deadOne(1))
		if diff := cmp.Diff(counts(t, q), runtime.QueueCounts{Waiting: 2, Dead: jobs - 2}); diff != "" {
			t.Errorf("counts (-got +want):\n%s", diff)
		}
		again := make(chan string, 2)
		serve(t, open(t, dsn, jobqueue.Options{}), func(_ context.Context, j runtime.Job, attempt int) runtime.Verdict {
			again <- fmt.Sprint(j.Kind, " ", attempt)
			return runtime.Verdict{Action: runtime.JobDone}
		})
		got := map[string]bool{<-again: true, <-again: true}
		if diff := cmp.Diff(got, map[string]bool{"0 1": true, "1 1": true}); diff != "" {
			t.Errorf("attempts (-got +want):\n%s", diff)
		}
	})
}

// wantIDs changes jobs, and checks which were.
func wantIDs(t *testing.T, change func(context.Context, ...int64) ([]int64, error), ids []int64, want ...int64) {
	t.Helper()
	got, err := change(t.Context(), ids...)
	slices.Sort(got)
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("of %d: %d, %v, want %d", ids, got, err, want)
	}
}

func deadOne(n int) runtime.Job {
	return runtime.Job{
		Kind: strconv.Itoa(n), Plugin: "p", Subscription: "p.s", IdempotencyKey: fmt.Sprint("key", n),
		Payload: []byte(`{"b":1,"a":2}`), Attempts: 2, Backoff: time.Millisecond,
	}
}

// pages lists dead jobs in pages, whose form it checks.
func pages(t *testing.T, q *jobqueue.Queue, size int) []jobqueue.Row {
	t.Helper()
	var all []jobqueue.Row
	for after := int64(0); ; after = all[len(all)-1].ID {
		page, err := q.List(t.Context(), jobqueue.Filter{Dead: true, After: after, Limit: size})
		if err != nil {
			t.Fatal(err)
		}
		if len(page) > size {
			t.Errorf("a page of %d", len(page))
		}
		all = append(all, page...)
		if len(page) < size {
			return all
		}
	}
}
