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
	// kept is how many slots are never given out, because the plugin wants fewer
	// than the operator allows.
	kept atomic.Int32
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

// size is how many calls there may be at once.
func (s *slots) size() int { return cap(s.free) - int(s.kept.Load()) }

// lower keeps slots back until at most n are left. It is called before any slot
// has been given out; 0 and more than there are change nothing.
func (s *slots) lower(n int) {
	for n > 0 && s.size() > n {
		s.free <- struct{}{}
		s.kept.Add(1)
	}
}
