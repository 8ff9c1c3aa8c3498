package runtime

import (
	"context"
	"sync/atomic"

	"github.com/grapnelhq/grapnel/phases"
)

// maxWaiting is how many calls may wait for a slot of one plugin.
const maxWaiting = 1024

// slots bound the calls that one plugin works on at once. A slot is taken
// before a call and given back when the plugin has answered or ended, never at
// the deadline: what a plugin still works on still counts.
type slots struct {
	free    chan struct{}
	waiting atomic.Int32
}

func newSlots(n int) *slots {
	return &slots{free: make(chan struct{}, n)}
}

// acquire takes a slot, waiting for one until ctx ends. It fails at once with
// CauseOverloaded when too many wait already.
func (s *slots) acquire(ctx context.Context) error {
	if s.tryAcquire() {
		return nil
	}
	if s.waiting.Add(1) > maxWaiting {
		s.waiting.Add(-1)
		return phases.Errorf(phases.CauseOverloaded, "%d calls wait for the plugin already", maxWaiting)
	}
	defer s.waiting.Add(-1)
	select {
	case s.free <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// tryAcquire takes a slot if one is free.
func (s *slots) tryAcquire() bool {
	select {
	case s.free <- struct{}{}:
		return true
	default:
		return false
	}
}

func (s *slots) release() { <-s.free }

func (s *slots) size() int { return cap(s.free) }
