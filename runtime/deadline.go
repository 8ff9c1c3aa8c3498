package runtime

import (
	"container/heap"
	"context"
	"sync"
	"time"
)

// deadlines ends the contexts of calls when their time is over. All calls share
// one timer: it is set to the earliest deadline and left alone when a call ends
// before. A timer for each call would be set and stopped thousands of times a
// second, and each setting may wake the thread that waits for the network, which
// costs more than the rest of the engine.
type deadlines struct {
	mu    sync.Mutex
	calls callHeap
	timer *time.Timer
	// armed is when the timer fires; zero when it is not set.
	armed time.Time
}

// add watches a call until remove.
func (d *deadlines) add(c *callContext) {
	d.mu.Lock()
	defer d.mu.Unlock()
	heap.Push(&d.calls, c)
	if d.armed.IsZero() || c.deadline.Before(d.armed) {
		d.arm(c.deadline)
	}
}

// remove forgets a call. The timer stays: most of them end long before it.
func (d *deadlines) remove(c *callContext) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if c.place >= 0 {
		heap.Remove(&d.calls, c.place)
	}
}

// arm sets the timer; the caller holds the lock.
func (d *deadlines) arm(at time.Time) {
	d.armed = at
	if d.timer == nil {
		d.timer = time.AfterFunc(time.Until(at), d.fire)
		return
	}
	d.timer.Reset(time.Until(at))
}

// fire ends the calls whose time is over, and sets the timer to the next one.
func (d *deadlines) fire() {
	d.mu.Lock()
	var over []*callContext
	now := time.Now()
	for len(d.calls) > 0 && !d.calls[0].deadline.After(now) {
		if c, ok := heap.Pop(&d.calls).(*callContext); ok {
			over = append(over, c)
		}
	}
	d.armed = time.Time{}
	if len(d.calls) > 0 {
		d.arm(d.calls[0].deadline)
	}
	d.mu.Unlock()
	for _, c := range over {
		c.end(context.DeadlineExceeded)
	}
}

// stop ends the timer of an engine that is closed.
func (d *deadlines) stop() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timer != nil {
		d.timer.Stop()
	}
}

// callHeap orders calls by deadline.
type callHeap []*callContext

func (h callHeap) Len() int           { return len(h) }
func (h callHeap) Less(i, j int) bool { return h[i].deadline.Before(h[j].deadline) }
func (h callHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = i, j
}

// Push implements heap.Interface.
func (h *callHeap) Push(x any) {
	if c, ok := x.(*callContext); ok {
		c.place = len(*h)
		*h = append(*h, c)
	}
}

// Pop implements heap.Interface.
func (h *callHeap) Pop() any {
	old := *h
	last := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	last.place = -1
	return last
}

// callContext is the context of one call of a plugin: the caller's, with the
// call's own deadline, and a link of the call chain.
type callContext struct {
	chain
	deadline time.Time
	done     chan struct{}
	place    int // in the heap; -1 when it is not there
	watch    *deadlines
	// release ends the watch of the caller's context.
	release func() bool

	mu  sync.Mutex
	err error
}

var _ context.Context = (*callContext)(nil)

// callContext returns the context of one call. It must be cancelled.
func (e *Engine) callContext(ctx context.Context, at site, deadline time.Time) *callContext {
	c := &callContext{chain: newChain(ctx, at), deadline: deadline, done: make(chan struct{}), watch: &e.deadlines, place: -1}
	if err := ctx.Err(); err != nil {
		c.end(err)
		return c
	}
	if ctx.Done() != nil {
		c.release = context.AfterFunc(ctx, func() { c.end(ctx.Err()) })
	}
	c.watch.add(c)
	return c
}

// cancel ends the context when the call has returned.
func (c *callContext) cancel() {
	c.watch.remove(c)
	if c.release != nil {
		c.release()
	}
	c.end(context.Canceled)
}

// end ends the context once.
func (c *callContext) end(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.err = err
		close(c.done)
	}
}

// Deadline implements context.Context.
func (c *callContext) Deadline() (time.Time, bool) { return c.deadline, true }

// Done implements context.Context.
func (c *callContext) Done() <-chan struct{} { return c.done }

// Err implements context.Context.
func (c *callContext) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Value implements context.Context.
func (c *callContext) Value(key any) any {
	if key == (chainKey{}) {
		return &c.chain
	}
	return c.Context.Value(key)
}
