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

	"github.com/grapnelhq/grapnel/internal/engine/jobs"
	"github.com/grapnelhq/grapnel/internal/sqldb"
	"github.com/grapnelhq/grapnel/internal/tests/storetest"
	"github.com/grapnelhq/grapnel/store/internal/jobqueue"
)

// TestDead: dead jobs are listed whole, page by page; a retried one starts again, and a
// removed one is gone with its key.
func TestDead(t *testing.T) {
	t.Parallel()

	storetest.Both(t, server.NewDSN, func(t *testing.T, dsn string) {
		const total = 5
		q := open(t, dsn, jobs.QueueOptions{})
		end := serve(t, q, func(_ context.Context, j jobs.Job, attempt int) jobs.Result {
			if attempt == 1 {
				return jobs.Result{Action: jobs.Retry, Err: errors.New("for now")}
			}
			return jobs.Result{Action: jobs.Discard, Err: fmt.Errorf("hopeless: %s", j.Kind)}
		})
		start := time.Now().Add(-time.Minute) // clocks differ
		for n := range total {
			add(t, q, deadOne(n))
		}
		await(t, "dead jobs", func() bool { return counts(t, q) == jobs.Counts{Dead: total} })
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
		if err := q.Add(t.Context(), deadOne(0)); !errors.Is(err, jobs.ErrDuplicate) {
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
		if diff := cmp.Diff(counts(t, q), jobs.Counts{Waiting: 2, Dead: total - 2}); diff != "" {
			t.Errorf("counts (-got +want):\n%s", diff)
		}
		again := make(chan string, 2)
		serve(t, open(t, dsn, jobs.QueueOptions{}), func(_ context.Context, j jobs.Job, attempt int) jobs.Result {
			again <- fmt.Sprint(j.Kind, " ", attempt)
			return jobs.Result{Action: jobs.Done}
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

func deadOne(n int) jobs.Job {
	return jobs.Job{
		Kind: strconv.Itoa(n), Plugin: "p", Subscription: "p.s", IdempotencyKey: fmt.Sprint("key", n),
		Payload: []byte(`{"b":1,"a":2}`), Attempts: 2, Backoff: time.Millisecond,
	}
}

// pages lists dead jobs in pages, whose form it checks.
func pages(t *testing.T, q *jobqueue.Queue, size int) []jobs.Row {
	t.Helper()
	var all []jobs.Row
	for after := int64(0); ; after = all[len(all)-1].ID {
		page, err := q.List(t.Context(), jobs.Filter{Dead: true, After: after, Limit: size})
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
