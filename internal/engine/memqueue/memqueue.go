// Package memqueue keeps jobs in memory, for an engine without a store: they end with it. Start at [New].
//
// Stability: internal.
package memqueue

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/grapnelhq/grapnel/internal/engine/jobs"
	"github.com/grapnelhq/grapnel/phases"
)

// Bounds of a queue.
const (
	queueSize    = 1024
	queueWorkers = 4
	queueKeys    = 4096
	// queueShare is how many jobs of one plugin may wait.
	queueShare = queueSize / 4
)

// queue is safe for concurrent use.
type queue struct {
	random func() float64
	lost   func(j jobs.Job, why error)

	mu      sync.Mutex
	pending []queuedJob    // by due
	waiting map[string]int // the pending jobs of each plugin
	running int
	ended   error         // why Serve has returned
	changed chan struct{} // closed and replaced whenever the fields above change
	// keys are recent idempotency keys, oldest first in keyOrder.
	keys     map[string]bool
	keyOrder []string
}

var (
	_ jobs.Queue   = (*queue)(nil)
	_ jobs.Counter = (*queue)(nil)
)

// New makes an empty queue. Lost is called for each job that is pending when Serve ends.
func New(random func() float64, lost func(j jobs.Job, why error)) jobs.Queue {
	return &queue{random: random, lost: lost, changed: make(chan struct{}), waiting: map[string]int{}, keys: map[string]bool{}}
}

type queuedJob struct {
	jobs.Job
	due              time.Time
	failed, requeued int
}

func (q *queue) Add(_ context.Context, j jobs.Job) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.ended != nil {
		return phases.Errorf(phases.CauseUnavailable, "background work has ended: %w", q.ended)
	}
	if len(q.pending) >= queueSize {
		return phases.Errorf(phases.CauseOverloaded, "%d background jobs are waiting already", queueSize)
	}
	if q.waiting[j.Plugin] >= queueShare {
		return phases.Errorf(phases.CauseOverloaded, "%d background jobs of %s are waiting already", queueShare, j.Plugin)
	}
	if !q.firstOf(j.Key()) {
		return jobs.ErrDuplicate
	}
	due := time.Now()
	if j.NotBefore.After(due) {
		due = j.NotBefore
	}
	q.push(queuedJob{Job: j, due: due})
	q.signal()
	return nil
}

// push and pop keep the counts; the caller holds the lock.
func (q *queue) push(j queuedJob) {
	i, _ := slices.BinarySearchFunc(q.pending, j.due, func(other queuedJob, due time.Time) int {
		if other.due.After(due) {
			return 1
		}
		return -1 // behind those of the same time
	})
	q.pending = slices.Insert(q.pending, i, j)
	q.waiting[j.Plugin]++
}

func (q *queue) pop() queuedJob {
	j := q.pending[0]
	q.pending = slices.Delete(q.pending, 0, 1)
	if q.waiting[j.Plugin]--; q.waiting[j.Plugin] == 0 {
		delete(q.waiting, j.Plugin)
	}
	return j
}

func (q *queue) firstOf(key string) bool {
	if key == "" {
		return true
	}
	if q.keys[key] {
		return false
	}
	if len(q.keyOrder) >= queueKeys {
		delete(q.keys, q.keyOrder[0])
		q.keyOrder = q.keyOrder[1:]
	}
	q.keys[key] = true
	q.keyOrder = append(q.keyOrder, key)
	return true
}

// signal wakes all waiters; the caller holds the lock.
func (q *queue) signal() {
	close(q.changed)
	q.changed = make(chan struct{})
}

func (q *queue) Serve(ctx context.Context, work func(context.Context, jobs.Attempt) jobs.Result) error {
	var workers sync.WaitGroup
	for range queueWorkers {
		workers.Go(func() {
			for {
				j, ok := q.next(ctx)
				if !ok {
					return
				}
				q.finish(j, work(ctx, jobs.Attempt{Job: j.Job, Number: j.failed + 1, Requeued: j.requeued}))
			}
		})
	}
	workers.Wait()
	q.mu.Lock()
	pending := q.pending
	q.pending, q.ended = nil, context.Cause(ctx)
	q.signal()
	q.mu.Unlock()
	for _, j := range pending {
		q.lost(j.Job, context.Cause(ctx))
	}
	return context.Cause(ctx)
}

func (q *queue) next(ctx context.Context) (queuedJob, bool) {
	for {
		q.mu.Lock()
		wait := time.Hour
		if len(q.pending) > 0 {
			wait = time.Until(q.pending[0].due)
		}
		if wait <= 0 && ctx.Err() == nil {
			j := q.pop()
			q.running++
			q.mu.Unlock()
			return j, true
		}
		changed := q.changed
		q.mu.Unlock()
		select {
		case <-ctx.Done():
			return queuedJob{}, false
		case <-changed:
		case <-time.After(wait):
		}
	}
}

// finish ends an attempt. A job to retry goes back, even if Serve is about to end and reports it as lost.
func (q *queue) finish(j queuedJob, r jobs.Result) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.running--
	switch r.Action {
	case jobs.Done, jobs.Discard:
	case jobs.Requeue:
		j.requeued++
		j.due = time.Now().Add(jobs.RequeueWait(j.requeued, q.random))
		q.push(j)
	default:
		j.failed++
		j.due = time.Now().Add(j.RetryWait(j.failed, q.random))
		q.push(j)
	}
	q.signal()
}

func (q *queue) Idle(ctx context.Context) error {
	for {
		q.mu.Lock()
		busy := q.running > 0 || len(q.pending) > 0 && !q.pending[0].due.After(time.Now())
		changed := q.changed
		q.mu.Unlock()
		if !busy {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Counts implements jobs.Counter. Discarded jobs are not kept.
func (q *queue) Counts(context.Context) (jobs.Counts, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	c := jobs.Counts{Running: q.running}
	for i := range q.pending {
		if age := time.Since(q.pending[i].due); age < 0 {
			c.Scheduled++
		} else {
			c.Waiting++
			c.OldestSeconds = max(c.OldestSeconds, age.Seconds())
		}
	}
	return c, nil
}
