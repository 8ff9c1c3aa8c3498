package pool

import (
	"context"
	"fmt"
	"sync"

	"github.com/grapnelhq/grapnel/internal/engine/supervise"
)

// startGate stands before the starts of one plugin: unless it is closed, it passes them
// on to the gate that all plugins share. A supervisor that waits here has stopped what
// ran before; so a plugin makes room for its successor and can still come back.
type startGate struct {
	next  supervise.Limiter
	asked chan struct{} // closed when the first start has come
	first sync.Once

	mu      sync.Mutex
	barrier *barrier // what starts wait at; nil while it is open
}

type barrier struct {
	reached chan struct{}
	once    sync.Once
	lifted  chan struct{}
}

var _ supervise.Limiter = (*startGate)(nil)

func newStartGate(next supervise.Limiter) *startGate {
	return &startGate{next: next, asked: make(chan struct{})}
}

func (g *startGate) Acquire(ctx context.Context) (release func(), err error) {
	g.first.Do(func() { close(g.asked) })
	for b := g.shut(); b != nil; b = g.shut() {
		b.once.Do(func() { close(b.reached) })
		select {
		case <-b.lifted:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	return g.next.Acquire(ctx)
}

func (g *startGate) shut() *barrier {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.barrier
}

func (g *startGate) close() *barrier {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.barrier == nil {
		g.barrier = &barrier{reached: make(chan struct{}), lifted: make(chan struct{})}
	}
	return g.barrier
}

func (g *startGate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.barrier != nil {
		close(g.barrier.lifted)
		g.barrier = nil
	}
}

// Park stops the plugin and waits until nothing of it runs. It stays so until Unpark.
func (in *Instance) Park(ctx context.Context) error {
	b := in.gate.close()
	in.sup.Recycle(supervise.Any, "it makes room for its successor")
	in.hasten()
	select {
	case <-b.reached:
	case <-in.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("waiting for the end of the plugin %s: %w", in.Declared.Name, context.Cause(ctx))
	}
	return in.sup.Expel(ctx) // a replaced process may still drain
}

// Unpark lets the plugin start again.
func (in *Instance) Unpark() { in.gate.open() }

// hasten ends backoff or quarantine of a plugin that is being parked: only the next
// start, which does not pass the gate, shows that nothing is left of the last one.
func (in *Instance) hasten() {
	if in.gate.shut() != nil {
		in.sup.Release()
	}
}
