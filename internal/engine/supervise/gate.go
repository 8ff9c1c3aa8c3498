package supervise

import (
	"context"
	"fmt"
	"slices"
	"sync"
)

// Limiter makes supervisors that share a host take turns with starting; see [Gate].
type Limiter interface {
	// Acquire waits for a slot until ctx ends; release gives it back. An error while ctx lives counts as the host's
	// fault.
	Acquire(ctx context.Context) (release func(), err error)
}

// Gate lets a fixed number of starts happen at the same time. Waiting starts of required services go before those of
// optional ones; among equals the first to come goes first. It is safe for concurrent use.
type Gate struct {
	mu    sync.Mutex
	free  int
	lanes [2][]chan struct{} // the waiting starts: required, optional
}

// NewGate returns a gate with that many slots; less than one means one.
func NewGate(slots int) *Gate {
	return &Gate{free: max(slots, 1)}
}

// Required returns the gate for services that the host cannot do without.
func (g *Gate) Required() Limiter { return lane{g, 0} }

// Optional returns the gate for any other service.
func (g *Gate) Optional() Limiter { return lane{g, 1} }

type lane struct {
	gate  *Gate
	index int
}

var _ Limiter = lane{}

// Acquire implements [Limiter]. Its release may be called more than once.
func (l lane) Acquire(ctx context.Context) (func(), error) {
	if ctx.Err() == nil {
		turn := l.gate.enter(l.index)
		select {
		case <-turn:
			return sync.OnceFunc(l.gate.leave), nil
		case <-ctx.Done():
			l.gate.abandon(l.index, turn)
		}
	}
	return nil, fmt.Errorf("supervise: waiting for a start slot: %w", context.Cause(ctx))
}

// enter takes a slot or a place in the queue. The channel is closed once the slot belongs to the caller.
func (g *Gate) enter(index int) chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	turn := make(chan struct{})
	// A free slot implies an empty queue: leave hands slots on directly.
	if g.free > 0 {
		g.free--
		close(turn)
		return turn
	}
	g.lanes[index] = append(g.lanes[index], turn)
	return turn
}

// leave hands the slot to the first in the queue, or frees it.
func (g *Gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.pass()
}

// pass is leave for a caller that holds the lock.
func (g *Gate) pass() {
	for i, queue := range g.lanes {
		if len(queue) > 0 {
			g.lanes[i] = queue[1:]
			close(queue[0])
			return
		}
	}
	g.free++
}

// abandon leaves the queue. A slot that came in the same moment goes to the next one.
func (g *Gate) abandon(index int, turn chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if at := slices.Index(g.lanes[index], turn); at >= 0 {
		g.lanes[index] = slices.Delete(g.lanes[index], at, at+1)
		return
	}
	g.pass()
}
