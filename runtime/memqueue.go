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
	// memoryQueueShare is how many jobs of one plugin may wait.
	memoryQueueShare = memoryQueueSize / 4
	minJobBackoff    = 10 * time.Millisecond
	maxJobBackoff    = time.Minute
	// requeueBackoff is the first wait of a job that was not tried, and
	// maxRequeueBackoff the longest: what it waits for is usually a plugin that is
	// being started.
	requeueBackoff    = 100 * time.Millisecond
	maxRequeueBackoff = 10 * time.Second
)

// memoryQueue is the queue of an engine without a store. What it holds is gone
// when Serve ends; it tells each job that it gives up.
type memoryQueue struct {
	random func() float64
	// lost is told each job that Serve gives up at its end.
	lost func(j Job, why error)

	mu      sync.Mutex
	pending jobHeap
	// waiting counts the pending jobs of each plugin.
	waiting map[string]int
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

func newMemoryQueue(random func() float64, lost func(j Job, why error)) *memoryQueue {
	if random == nil {
		random = rand.Float64
	}
	return &memoryQueue{random: random, lost: lost, changed: make(chan struct{}), waiting: map[string]int{}, keys: map[string]bool{}}
}

// queuedJob is a job with the time of its next attempt.
type queuedJob struct {
	Job
	due time.Time
	// failed counts attempts, requeued what was not one.
	failed, requeued int
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
	if q.waiting[j.Plugin] >= memoryQueueShare {
		return phases.Errorf(phases.CauseOverloaded, "%d background jobs of %s wait already", memoryQueueShare, j.Plugin)
	}
	if !q.firstOf(j.Key()) {
		return ErrDuplicateJob
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
func (q *memoryQueue) push(j queuedJob) {
	heap.Push(&q.pending, j)
	q.waiting[j.Plugin]++
}

func (q *memoryQueue) pop() (queuedJob, bool) {
	j, ok := heap.Pop(&q.pending).(queuedJob)
	if q.waiting[j.Plugin]--; q.waiting[j.Plugin] == 0 {
		delete(q.waiting, j.Plugin)
	}
	return j, ok
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
func (q *memoryQueue) Serve(ctx context.Context, work func(context.Context, Attempt) Verdict) error {
	var workers sync.WaitGroup
	for range memoryQueueWorkers {
		workers.Go(func() {
			for {
				j, ok := q.next(ctx)
				if !ok {
					return
				}
				q.done(j, work(ctx, Attempt{Job: j.Job, Number: j.failed + 1, Requeued: j.requeued}))
			}
		})
	}
	workers.Wait()
	q.mu.Lock()
	left := q.pending
	q.pending, q.ended = nil, context.Cause(ctx)
	q.signal()
	q.mu.Unlock()
	for _, j := range left {
		q.lost(j.Job, context.Cause(ctx))
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
			j, ok := q.pop()
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

// done ends an attempt. What is to be tried again goes back, also when Serve is
// about to end: then it is among what is lost.
func (q *memoryQueue) done(j queuedJob, v Verdict) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.running--
	switch v.Action {
	case JobDone, JobDead:
	case JobRequeue:
		j.requeued++
		j.due = time.Now().Add(q.backoff(requeueBackoff, j.requeued, maxRequeueBackoff))
		q.push(j)
	default:
		j.failed++
		j.due = time.Now().Add(q.backoff(max(j.Backoff, minJobBackoff), j.failed, maxJobBackoff))
		q.push(j)
	}
	q.signal()
}

// backoff doubles from first with each time, up to a bound, with full jitter on
// its upper half.
func (q *memoryQueue) backoff(first time.Duration, times int, most time.Duration) time.Duration {
	d := min(first, most)
	for range times - 1 {
		if d = min(2*d, most); d == most {
			break
		}
	}
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
