package runtime

import (
	"context"
	"fmt"
	"sync"

	"github.com/grapnelhq/grapnel/internal/supervise"
)

// entrance stands before the starts of one plugin: it hands them on to the gate
// that all plugins share, unless it is shut. A supervisor that waits here has
// stopped what ran before, which is how a plugin makes room for its successor
// and can still come back.
type entrance struct {
	gate supervise.Limiter
	// asked is closed when the first start has come.
	asked chan struct{}
	first sync.Once

	mu sync.Mutex
	// barrier is what starts wait at; nil while it is open.
	barrier *barrier
}

// barrier is one time of being shut.
type barrier struct {
	reached chan struct{}
	once    sync.Once
	lifted  chan struct{}
}

var _ supervise.Limiter = (*entrance)(nil)

func newEntrance(gate supervise.Limiter) *entrance {
	return &entrance{gate: gate, asked: make(chan struct{})}
}

// Acquire implements supervise.Limiter.
func (n *entrance) Acquire(ctx context.Context) (release func(), err error) {
	n.first.Do(func() { close(n.asked) })
	for b := n.shut(); b != nil; b = n.shut() {
		b.once.Do(func() { close(b.reached) })
		select {
		case <-b.lifted:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	return n.gate.Acquire(ctx)
}

// shut returns the barrier, or nil.
func (n *entrance) shut() *barrier {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.barrier
}

// close makes all starts wait until open is called.
func (n *entrance) close() *barrier {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.barrier == nil {
		n.barrier = &barrier{reached: make(chan struct{}), lifted: make(chan struct{})}
	}
	return n.barrier
}

// open lets starts pass again.
func (n *entrance) open() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.barrier != nil {
		close(n.barrier.lifted)
		n.barrier = nil
	}
}

// park stops the plugin and waits until nothing of it runs any more. It stays so
// until its entrance is opened.
func (in *instance) park(ctx context.Context) error {
	b := in.entrance.close()
	in.sup.Recycle(supervise.Any, "it makes room for its successor")
	in.hasten()
	select {
	case <-b.reached:
	case <-in.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("waiting for the end of the plugin %s: %w", in.declared.Name, context.Cause(ctx))
	}
	return in.sup.Expel(ctx) // one that was replaced and may still drain
}

// hasten ends backoff or quarantine if the plugin is being parked: only the next
// start shows that the last one has left nothing behind, and it does not get past
// the entrance.
func (in *instance) hasten() {
	if in.entrance.shut() != nil {
		in.sup.Release()
	}
}
