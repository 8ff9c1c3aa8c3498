package jobqueue_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/runtime"
	"github.com/grapnelhq/grapnel/runtime/queuetest"
	"github.com/grapnelhq/grapnel/store/jobqueue"
	"github.com/grapnelhq/grapnel/store/storetest"
)

// shortLease is as short as it may be.
const shortLease = 400 * time.Millisecond

// TestShared: two engines on one database share the work, and do each job once.
func TestShared(t *testing.T) {
	t.Parallel()

	storetest.Both(t, server.NewDSN, func(t *testing.T, dsn string) {
		const jobs = 80
		var mu sync.Mutex
		runs := map[string]int{}
		begun := []chan struct{}{make(chan struct{}), make(chan struct{})}
		var queues []*jobqueue.Queue
		for n := range begun {
			q := open(t, dsn, jobqueue.Options{Workers: 2})
			queues = append(queues, q)
			var once sync.Once
			serve(t, q, func(ctx context.Context, j runtime.Job, _ int) runtime.Verdict {
				mu.Lock()
				runs[j.Kind]++
				mu.Unlock()
				once.Do(func() { close(begun[n]) })
				select { // neither goes on before the other has begun
				case <-begun[1-n]:
				case <-ctx.Done():
				}
				return runtime.Verdict{Action: runtime.JobDone}
			})
		}
		for n := range jobs {
			add(t, queues[n%2], runtime.Job{Kind: strconv.Itoa(n), Plugin: "p"})
		}
		for _, q := range queues {
			if err := q.Idle(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		mu.Lock()
		defer mu.Unlock()
		for n := range jobs {
			if runs[strconv.Itoa(n)] != 1 {
				t.Errorf("job %d ran %d times", n, runs[strconv.Itoa(n)])
			}
		}
	})
}

// TestOneTakesOver: what an engine that ends has not done, another does.
func TestOneTakesOver(t *testing.T) {
	t.Parallel()

	storetest.Both(t, server.NewDSN, func(t *testing.T, dsn string) {
		first, second := open(t, dsn, jobqueue.Options{}), open(t, dsn, jobqueue.Options{})
		begun := make(chan struct{})
		end := serve(t, first, func(ctx context.Context, _ runtime.Job, _ int) runtime.Verdict {
			close(begun)
			<-ctx.Done()
			return runtime.Verdict{Action: runtime.JobRequeue, Err: context.Cause(ctx)}
		})
		add(t, first, runtime.Job{Kind: "k", Plugin: "p"})
		<-begun
		end()
		attempts := make(chan int, 1)
		serve(t, second, func(_ context.Context, _ runtime.Job, attempt int) runtime.Verdict {
			attempts <- attempt
			return runtime.Verdict{Action: runtime.JobDone}
		})
		if n := <-attempts; n != 1 {
			t.Errorf("attempt %d, want the first once more", n)
		}
	})
}

// TestLongWork: work that takes longer than a lease is not offered to others.
func TestLongWork(t *testing.T) {
	t.Parallel()

	storetest.Both(t, server.NewDSN, func(t *testing.T, dsn string) {
		var mu sync.Mutex
		runs := 0
		work := func(ctx context.Context, _ runtime.Job, _ int) runtime.Verdict {
			mu.Lock()
			runs++
			mu.Unlock()
			select {
			case <-time.After(4 * shortLease):
				return runtime.Verdict{Action: runtime.JobDone}
			case <-ctx.Done():
				t.Error("it was interrupted: ", context.Cause(ctx))
				return runtime.Verdict{Action: runtime.JobRequeue}
			}
		}
		var q *jobqueue.Queue
		for range 2 {
			// A machine that is very busy may miss the shortest.
			q = open(t, dsn, jobqueue.Options{Lease: 2 * shortLease})
			serve(t, q, work)
		}
		add(t, q, runtime.Job{Kind: "k", Plugin: "p"})
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

// TestLostLease: who has lost his lease is told, and his verdict is of no effect:
// that of the one who has the job now counts.
func TestLostLease(t *testing.T) {
	t.Parallel()

	for _, late := range []runtime.JobAction{runtime.JobDone, runtime.JobDead, runtime.JobRequeue, runtime.JobRetry} {
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

func loseLease(t *testing.T, dsn string, late runtime.JobAction) {
	t.Helper()
	// The slow one works on one job, so that it does not take the job again.
	slow, other := open(t, dsn, jobqueue.Options{Lease: 4 * time.Second, Workers: 1}), open(t, dsn, jobqueue.Options{Lease: 4 * time.Second})
	told, stored := make(chan error, 1), make(chan struct{})
	begun, taken, finish := make(chan struct{}), make(chan int, 8), make(chan struct{})
	endSlow := serve(t, slow, func(ctx context.Context, _ runtime.Job, _ int) runtime.Verdict {
		close(begun)
		<-ctx.Done()
		told <- context.Cause(ctx)
		either(t, stored)
		return runtime.Verdict{Action: late, Err: errors.New("too late")}
	})
	add(t, slow, runtime.Job{Kind: "k", Plugin: "p", Attempts: 5, Backoff: time.Millisecond})
	<-begun
	serve(t, other, func(_ context.Context, _ runtime.Job, attempt int) runtime.Verdict {
		taken <- attempt
		either(t, finish)
		return runtime.Verdict{Action: runtime.JobDone}
	})
	// As if the process had been asleep for long. It wakes up at times, and renews its
	// lease where it still has it.
	queuetest.Await(t, "somebody else who took the job", func() bool {
		execute(t, dsn, "UPDATE {job} SET attempted_at = '2001-01-01 00:00:00' WHERE attempt = 1")
		return len(taken) > 0
	})
	if n := <-taken; n != 2 {
		t.Errorf("attempt %d, want the second: the lost one counts", n)
	}
	if err := <-told; err == nil || !strings.Contains(err.Error(), "lease") {
		t.Errorf("it was told %v", err)
	}
	close(stored)
	endSlow()
	if diff := cmp.Diff(counts(t, other), runtime.QueueCounts{Running: 1}); diff != "" {
		t.Errorf("after the late verdict (-got +want):\n%s", diff)
	}
	close(finish)
	queuetest.Await(t, "no jobs", func() bool { return counts(t, other) == runtime.QueueCounts{} })
	if len(taken) > 0 {
		t.Errorf("it ran again, as attempt %d", <-taken)
	}
}

// TestJobThatKillsItsHost: a job whose attempts never have a verdict is given up.
func TestJobThatKillsItsHost(t *testing.T) {
	t.Parallel()

	storetest.Both(t, server.NewDSN, func(t *testing.T, dsn string) {
		q := open(t, dsn, jobqueue.Options{Lease: shortLease})
		var mu sync.Mutex
		var attempts []int
		serve(t, q, func(_ context.Context, _ runtime.Job, attempt int) runtime.Verdict {
			mu.Lock()
			attempts = append(attempts, attempt)
			mu.Unlock()
			panic("as good as killing it")
		})
		add(t, q, runtime.Job{Kind: "k", Plugin: "p", Attempts: 2})
		queuetest.Await(t, "a dead job", func() bool { return counts(t, q).Dead == 1 })
		mu.Lock()
		defer mu.Unlock()
		if diff := cmp.Diff(attempts, []int{1, 2, 3, 4, 5, 6, 7}); diff != "" {
			t.Errorf("attempts (-got +want):\n%s", diff)
		}
		list, err := q.List(t.Context(), jobqueue.Filter{Dead: true})
		if err != nil || len(list) != 1 || list[0].Attempts != 7 || !strings.Contains(list[0].Error, "without a verdict") {
			t.Errorf("dead: %+v, %v", list, err)
		}
	})
}

// TestUnreadable: what stands in the database and is no job of ours is given up, not
// tried for ever.
func TestUnreadable(t *testing.T) {
	t.Parallel()

	storetest.Both(t, server.NewDSN, func(t *testing.T, dsn string) {
		q := open(t, dsn, jobqueue.Options{Lease: shortLease})
		add(t, q, runtime.Job{Kind: "k", Plugin: "p"})
		execute(t, dsn, `UPDATE {job} SET args = '{"job": "nothing"}'`)
		serve(t, q, done)
		queuetest.Await(t, "a dead job", func() bool { return counts(t, q).Dead == 1 })
		list, err := q.List(t.Context(), jobqueue.Filter{Dead: true})
		if err != nil || len(list) != 1 || !strings.Contains(list[0].Error, "cannot be read") {
			t.Errorf("dead: %+v, %v", list, err)
		}
	})
}

// TestLaterJobs: jobs that are far away are brought back by River's scheduler.
func TestLaterJobs(t *testing.T) {
	t.Parallel()

	storetest.Both(t, server.NewDSN, func(t *testing.T, dsn string) {
		q := open(t, dsn, jobqueue.Options{})
		ran := make(chan string, 3)
		serve(t, q, func(_ context.Context, j runtime.Job, attempt int) runtime.Verdict {
			if attempt == 1 && j.Kind == "fails" {
				return runtime.Verdict{Action: runtime.JobRetry, Err: errors.New("not now")}
			}
			ran <- j.Kind
			return runtime.Verdict{Action: runtime.JobDone}
		})
		add(t, q, runtime.Job{Kind: "later", Plugin: "p", NotBefore: time.Now().Add(time.Hour)})
		add(t, q, runtime.Job{Kind: "fails", Plugin: "p", Attempts: 2, Backoff: time.Hour})
		queuetest.Await(t, "two jobs that wait for their time", func() bool { return counts(t, q) == runtime.QueueCounts{Scheduled: 2} })
		if strings.HasPrefix(dsn, "sqlite:") {
			execute(t, dsn, "UPDATE {job} SET scheduled_at = datetime('now', '-1 second') WHERE state IN ('scheduled', 'retryable')")
		} else {
			execute(t, dsn, "UPDATE {job} SET scheduled_at = now() - interval '1 second' WHERE state IN ('scheduled', 'retryable')")
		}
		got := map[string]bool{<-ran: true, <-ran: true}
		if diff := cmp.Diff(got, map[string]bool{"later": true, "fails": true}); diff != "" {
			t.Errorf("jobs (-got +want):\n%s", diff)
		}
	})
}
