package runtime

import (
	"context"
	"time"
)

// QueueCounts are how many jobs a queue holds in which state.
type QueueCounts struct {
	// Waiting are due, Scheduled wait for their time or their next attempt. Together
	// they are what a queue's bounds are about.
	Waiting   int `json:"waiting"`
	Scheduled int `json:"scheduled"`
	Running   int `json:"running"`
	// Dead are given up, and wait for an operator.
	Dead int `json:"dead"`
	// OldestSeconds is for how long the oldest of the waiting has been due.
	OldestSeconds float64 `json:"oldest_seconds"`
}

// QueueCounter is what a [Queue] may also be: one that knows what it holds.
type QueueCounter interface {
	Counts(ctx context.Context) (QueueCounts, error)
}

// QueueStatus is how background work stands.
type QueueStatus struct {
	// Durable says that jobs outlive this process; if not, they are in its memory.
	Durable bool `json:"durable"`
	QueueCounts

	// Error says why the counts are not known: they are zeros then.
	Error string `json:"error,omitempty"`
}

// Queue tells how background work stands; of a queue that several engines share, all
// of it. It asks the queue, which may have to ask a database: ctx bounds that.
func (e *Engine) Queue(ctx context.Context) QueueStatus {
	_, inMemory := e.queue.(*memoryQueue)
	s := QueueStatus{Durable: !inMemory}
	counter, ok := e.queue.(QueueCounter)
	if !ok {
		s.Error = "the host's queue cannot be counted"
		return s
	}
	counts, err := counter.Counts(ctx)
	if err != nil {
		s.Error = err.Error()
		return s
	}
	s.QueueCounts = counts
	return s
}

var _ QueueCounter = (*memoryQueue)(nil)

// Counts implements QueueCounter. What is dead is told and not kept.
func (q *memoryQueue) Counts(context.Context) (QueueCounts, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	c := QueueCounts{Running: q.running}
	now := time.Now()
	for i := range q.pending {
		age := now.Sub(q.pending[i].due)
		if age < 0 {
			c.Scheduled++
			continue
		}
		c.Waiting++
		c.OldestSeconds = max(c.OldestSeconds, age.Seconds())
	}
	return c, nil
}

// notKept says what an operator who has named a store does not get from a host
// without a sink.
func (e *Engine) notKept() string {
	if e.opts.Queue == nil {
		return "this host has no store: manifests are not kept, and background work is lost when this process ends"
	}
	return "manifests are not kept: this host has no store for them"
}
