package runtime

import (
	"container/heap"
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/grapnelhq/grapnel/phases"
)

// Bounds of the queue in memory.
const (
	memoryQueueSize    = 1024
	memoryQueueWorkers = 4
	memoryQueueKeys    = 4096
	maxJobBackoff      = time.Minute
)

// memoryQueue is the queue of an engine without a store. What it holds is gone
// when the process ends; Serve tells each job that it gives up.
type memoryQueue struct {
	random func() float64
	tell   func(j Job, state string, err error)

	mu      sync.Mutex
	pending jobHeap
	running int
	// ended is why Serve has returned: nothing is taken any more.
	ended error
	// changed is closed and replaced whenever the fields above change.
	changed chan struct{}
	// keys are the idempotency keys seen lately, oldest first in keyOrder.
	keys     map[string]bool
	keyOrder []string
}

var _ Queue = (*memoryQueue)(nil)

func newMemoryQueue(random func() float64, tell func(j Job, state string, err error)) *memoryQueue {
	if random == nil {
		random = rand.Float64
	}
	return &memoryQueue{random: random, tell: tell, changed: make(chan struct{}), keys: map[string]bool{}}
}

// queuedJob is a job with the time of its next attempt.
type queuedJob struct {
	Job
	due     time.Time
	attempt int
}

// jobHeap orders jobs by when they are due.
type jobHeap []queuedJob

func (h jobHeap) Len() int           { return len(h) }
func (h jobHeap) Less(i, j int) bool { return h[i].due.Before(h[j].due) }
func (h jobHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }

// Push implements heap.Interface.
func (h *jobHeap) Push(x any) {
	if j, ok := x.(queuedJob); ok {
		*h = append(*h, j)
	}
}

// Pop implements heap.Interface.
func (h *jobHeap) Pop() any {
	old := *h
	last := old[len(old)-1]
	*h = old[:len(old)-1]
	return last
}

// Add implements Queue.
func (q *memoryQueue) Add(_ context.Context, j Job) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.ended != nil {
		return phases.Errorf(phases.CauseUnavailable, "background work has ended: %w", q.ended)
	}
	if len(q.pending) >= memoryQueueSize {
		return phases.Errorf(phases.CauseOverloaded, "%d background jobs wait already", memoryQueueSize)
	}
	if !q.firstOf(j.IdempotencyKey) {
		return nil
	}
	due := time.Now()
	if j.NotBefore.After(due) {
		due = j.NotBefore
	}
	heap.Push(&q.pending, queuedJob{Job: j, due: due})
	q.signal()
	return nil
}

// firstOf notes a key and reports whether it was not there yet.
func (q *memoryQueue) firstOf(key string) bool {
	if key == "" {
		return true
	}
	if q.keys[key] {
		return false
	}
	if len(q.keyOrder) >= memoryQueueKeys {
		delete(q.keys, q.keyOrder[0])
		q.keyOrder = q.keyOrder[1:]
	}
	q.keys[key] = true
	q.keyOrder = append(q.keyOrder, key)
	return true
}

// signal wakes everybody who waits for a change; the caller holds the lock.
func (q *memoryQueue) signal() {
	close(q.changed)
	q.changed = make(chan struct{})
}

// Serve implements Queue.
func (q *memoryQueue) Serve(ctx context.Context, work func(context.Context, Job) error) error {
	var workers sync.WaitGroup
	for range memoryQueueWorkers {
		workers.Go(func() {
			for {
				j, ok := q.next(ctx)
				if !ok {
					return
				}
				q.done(j, work(ctx, j.Job))
			}
		})
	}
	workers.Wait()
	q.mu.Lock()
	lost := q.pending
	q.pending, q.ended = nil, context.Cause(ctx)
	q.signal()
	q.mu.Unlock()
	for _, j := range lost {
		q.tell(j.Job, "lost", context.Cause(ctx))
	}
	return context.Cause(ctx)
}

// next waits for a job that is due and marks it as running.
func (q *memoryQueue) next(ctx context.Context) (queuedJob, bool) {
	for {
		q.mu.Lock()
		wait := time.Hour
		if len(q.pending) > 0 {
			wait = time.Until(q.pending[0].due)
		}
		if wait <= 0 && ctx.Err() == nil {
			j, ok := heap.Pop(&q.pending).(queuedJob)
			q.running++
			q.mu.Unlock()
			return j, ok
		}
		changed := q.changed
		q.mu.Unlock()
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return queuedJob{}, false
		case <-changed:
			timer.Stop()
		case <-timer.C:
		}
	}
}

// done ends an attempt; a failed one is repeated later, or given up.
func (q *memoryQueue) done(j queuedJob, err error) {
	state := "done"
	q.mu.Lock()
	q.running--
	if err != nil {
		state = "dead"
		if j.attempt++; j.attempt < j.Attempts {
			state = "retry"
			j.due = time.Now().Add(q.backoff(j))
			heap.Push(&q.pending, j)
		}
	}
	q.signal()
	q.mu.Unlock()
	q.tell(j.Job, state, err)
}

// backoff doubles with each attempt, up to a bound, with full jitter on its
// upper half.
func (q *memoryQueue) backoff(j queuedJob) time.Duration {
	d := min(max(j.Backoff, 10*time.Millisecond)<<min(j.attempt-1, 16), maxJobBackoff)
	return d/2 + time.Duration(q.random()*float64(d/2))
}

// Idle implements Queue.
func (q *memoryQueue) Idle(ctx context.Context) error {
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
