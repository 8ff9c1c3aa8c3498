package jobqueue_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/internal/engine/jobs"
	"github.com/grapnelhq/grapnel/internal/tests/storetest"
	"github.com/grapnelhq/grapnel/store/internal/jobqueue"
)

// shortLease is as short as it may be.
const shortLease = 400 * time.Millisecond

// TestShared: two engines on one database share the work, and do each job once.
func TestShared(t *testing.T) {
	t.Parallel()

	storetest.Both(t, server.NewDSN, func(t *testing.T, dsn string) {
		const total = 80
		var mu sync.Mutex
		runs := map[string]int{}
		begun := []chan struct{}{make(chan struct{}), make(chan struct{})}
		var queues []*jobqueue.Queue
		for n := range begun {
			q := open(t, dsn, jobs.QueueOptions{Workers: 2})
			queues = append(queues, q)
			var once sync.Once
			serve(t, q, func(ctx context.Context, j jobs.Job, _ int) jobs.Result {
				mu.Lock()
				runs[j.Kind]++
				mu.Unlock()
				once.Do(func() { close(begun[n]) })
				select { // neither goes on before the other has begun
				case <-begun[1-n]:
				case <-ctx.Done():
				}
				return jobs.Result{Action: jobs.Done}
			})
		}
		for n := range total {
			add(t, queues[n%2], jobs.Job{Kind: strconv.Itoa(n), Plugin: "p"})
		}
		for _, q := range queues {
			if err := q.Idle(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		mu.Lock()
		defer mu.Unlock()
		for n := range total {
			if runs[strconv.Itoa(n)] != 1 {
				t.Errorf("job %d ran %d times", n, runs[strconv.Itoa(n)])
			}
		}
	})
}

// TestLongWork: work that takes longer than a lease is not offered to others.
func TestLongWork(t *testing.T) {
	t.Parallel()

	storetest.Both(t, server.NewDSN, func(t *testing.T, dsn string) {
		var mu sync.Mutex
		runs := 0
		work := func(ctx context.Context, _ jobs.Job, _ int) jobs.Result {
			mu.Lock()
			runs++
			mu.Unlock()
			select {
			case <-time.After(10 * shortLease):
				return jobs.Result{Action: jobs.Done}
			case <-ctx.Done():
				t.Error("it was interrupted: ", context.Cause(ctx))
				return jobs.Result{Action: jobs.Requeue}
			}
		}
		var q *jobqueue.Queue
		for range 2 {
			// A machine that is very busy may miss the shortest.
			q = open(t, dsn, jobs.QueueOptions{Lease: 5 * shortLease})
			serve(t, q, work)
		}
		add(t, q, jobs.Job{Kind: "k", Plugin: "p"})
		if err := q.Idle(t.Context()); err != nil {
			t.Fatal(err)
		}
		mu.Lock()
		defer mu.Unlock()
		if runs != 1 {
			t.Errorf("it ran %d times", runs)
		}
	})
}

// TestLostLease: the work of a process that has lost its lease is cancelled, and its
// result has no effect: only the result of the new holder counts.
func TestLostLease(t *testing.T) {
	t.Parallel()

	for _, late := range []jobs.Action{jobs.Done, jobs.Discard, jobs.Requeue, jobs.Retry} {
		t.Run(string(late), func(t *testing.T) {
			t.Parallel()

			storetest.Both(t, server.NewDSN, func(t *testing.T, dsn string) {
				loseLease(t, dsn, late)
			})
		})
	}
}

// either waits for a channel, or for the end of a test that has failed.
func either(t *testing.T, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-t.Context().Done():
	}
}

func loseLease(t *testing.T, dsn string, late jobs.Action) {
	t.Helper()
	// The slow one works on one job, so that it does not take the job again.
	slow, other := open(t, dsn, jobs.QueueOptions{Lease: 4 * time.Second, Workers: 1}), open(t, dsn, jobs.QueueOptions{Lease: 4 * time.Second})
	causes, stored := make(chan error, 1), make(chan struct{})
	begun, taken, finish := make(chan struct{}), make(chan int, 8), make(chan struct{})
	endSlow := serve(t, slow, func(ctx context.Context, _ jobs.Job, _ int) jobs.Result {
		close(begun)
		<-ctx.Done()
		causes <- context.Cause(ctx)
		either(t, stored)
		return jobs.Result{Action: late, Err: errors.New("too late")}
	})
	add(t, slow, jobs.Job{Kind: "k", Plugin: "p", Attempts: 5, Backoff: time.Millisecond})
	<-begun
	serve(t, other, func(_ context.Context, _ jobs.Job, attempt int) jobs.Result {
		taken <- attempt
		either(t, finish)
		return jobs.Result{Action: jobs.Done}
	})
	// As if the process had been asleep for long. It wakes up at times, and renews its
	// lease where it still has it.
	await(t, "somebody else who took the job", func() bool {
		execute(t, dsn, "UPDATE jobs SET renewed = 1 WHERE attempt = 1")
		return len(taken) > 0
	})
	if n := <-taken; n != 2 {
		t.Errorf("attempt %d, want the second: the lost one counts", n)
	}
	if err := <-causes; err == nil || !strings.Contains(err.Error(), "lease") {
		t.Errorf("it was cancelled with %v", err)
	}
	close(stored)
	endSlow()
	if diff := cmp.Diff(counts(t, other), jobs.Counts{Running: 1}); diff != "" {
		t.Errorf("after the late result (-got +want):\n%s", diff)
	}
	close(finish)
	await(t, "no jobs", func() bool { return counts(t, other) == jobs.Counts{} })
	if len(taken) > 0 {
		t.Errorf("it ran again, as attempt %d", <-taken)
	}
}

// TestJobThatKillsItsHost: a job whose attempts never have a result is discarded.
func TestJobThatKillsItsHost(t *testing.T) {
	t.Parallel()

	storetest.Both(t, server.NewDSN, func(t *testing.T, dsn string) {
		q := open(t, dsn, jobs.QueueOptions{Lease: shortLease})
		var mu sync.Mutex
		var attempts []int
		serve(t, q, func(_ context.Context, _ jobs.Job, attempt int) jobs.Result {
			mu.Lock()
			attempts = append(attempts, attempt)
			mu.Unlock()
			panic("as good as killing it")
		})
		add(t, q, jobs.Job{Kind: "k", Plugin: "p", Attempts: 2})
		await(t, "a dead job", func() bool { return counts(t, q).Dead == 1 })
		mu.Lock()
		defer mu.Unlock()
		slices.Sort(attempts)
		if n := len(attempts); n > 7 || len(slices.Compact(attempts)) != n { // a busy machine may not get as far as beginning each
			t.Errorf("attempts %v", attempts)
		}
		list, err := q.List(t.Context(), jobs.Filter{Dead: true})
		if err != nil || len(list) != 1 || list[0].Attempts != 7 || !strings.Contains(list[0].Error, "without a result") {
			t.Errorf("dead: %+v, %v", list, err)
		}
	})
}

// TestUnreadable: a row that is not a job of ours is discarded, not tried for ever.
func TestUnreadable(t *testing.T) {
	t.Parallel()

	storetest.Both(t, server.NewDSN, func(t *testing.T, dsn string) {
		q := open(t, dsn, jobs.QueueOptions{Lease: shortLease})
		add(t, q, jobs.Job{Kind: "k", Plugin: "p"})
		execute(t, dsn, "UPDATE jobs SET job = 'nothing'")
		serve(t, q, done)
		await(t, "a dead job", func() bool { return counts(t, q).Dead == 1 })
		list, err := q.List(t.Context(), jobs.Filter{Dead: true})
		if err != nil || len(list) != 1 || !strings.Contains(list[0].Error, "cannot be read") {
			t.Errorf("dead: %+v, %v", list, err)
		}
	})
}
