package pool

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/grapnelhq/grapnel/internal/engine/supervise"
	"github.com/grapnelhq/grapnel/phases"
)

// MaxWaiting is how many calls may wait for a slot of one plugin.
const MaxWaiting = 1024

// slots bound the calls that one plugin works on at once. Only an answer or the plugin's end gives a slot back, never
// a deadline: what a plugin still works on counts.
type slots struct {
	free    chan struct{}
	waiting atomic.Int32
	kept    atomic.Int32 // kept slots are never given out: the plugin wants fewer than the operator allows
}

func newSlots(n int) *slots { return &slots{free: make(chan struct{}, n)} }

func (s *slots) acquire(ctx context.Context) error {
	if s.tryAcquire() {
		return nil
	}
	if s.waiting.Add(1) > MaxWaiting {
		s.waiting.Add(-1)
		return phases.Errorf(phases.CauseOverloaded, "%d calls wait for the plugin already", MaxWaiting)
	}
	defer s.waiting.Add(-1)
	select {
	case s.free <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (s *slots) tryAcquire() bool {
	select {
	case s.free <- struct{}{}:
		return true
	default:
		return false
	}
}

func (s *slots) release() { <-s.free }

func (s *slots) size() int { return cap(s.free) - int(s.kept.Load()) }

// lower keeps slots back until at most n are left; 0 changes nothing. It is called before any slot has been given
// out.
func (s *slots) lower(n int) {
	for n > 0 && s.size() > n {
		s.free <- struct{}{}
		s.kept.Add(1)
	}
}

func (s *slots) taken() int { return len(s.free) - int(s.kept.Load()) }

// Lease is one call of a plugin, as a rule with a slot. The zero value holds nothing.
type Lease struct {
	in   *Instance
	slot bool
	// inc is the incarnation whose call was abandoned; returned runs when the plugin lets go of it. Both are set
	// before the state says so.
	inc      *Incarnation
	returned func()
	state    atomic.Int32
}

// The states of a lease.
const (
	leaseHeld = iota
	leaseAbandoned
	leaseFreed
)

// TryTake takes a slot of the instance if one is free.
func (l *Lease) TryTake(in *Instance) bool {
	if !in.slots.tryAcquire() {
		return false
	}
	l.hold(in, true)
	return true
}

// Take takes a slot of the instance, waiting for one until ctx ends. It fails at once with CauseOverloaded when too
// many wait already.
func (l *Lease) Take(ctx context.Context, in *Instance) error {
	if err := in.slots.acquire(ctx); err != nil {
		return err
	}
	l.hold(in, true)
	return nil
}

// Borrow holds no slot, for a call of a plugin that has one already: waiting for a second one could deadlock.
func (l *Lease) Borrow(in *Instance) { l.hold(in, false) }

func (l *Lease) hold(in *Instance, slot bool) {
	l.in, l.slot = in, slot
	l.state.Store(leaseHeld)
}

// Free gives the slot back. It is called exactly once, when the plugin lets go of the call, or when the call was not
// made.
func (l *Lease) Free() {
	if l.state.Swap(leaseFreed) == leaseAbandoned {
		l.returned()
		l.in.comeBack(l.inc)
	}
	if l.slot {
		l.in.slots.release()
	}
}

// Abandon is called when the caller stops waiting. Unless the plugin has let go of the call already, it runs
// abandoned and counts the call against the incarnation; returned runs when the plugin lets go after all.
func (l *Lease) Abandon(inc *Incarnation, abandoned, returned func()) {
	l.inc, l.returned = inc, returned
	if l.state.CompareAndSwap(leaseHeld, leaseAbandoned) {
		abandoned()
		l.in.abandon(inc)
	}
}

// codeAbandoned: a plugin inside the host does not answer.
const codeAbandoned = "abandoned"

// abandon counts an abandoned call. A process with too many is replaced, or stopped early if it was replaced already.
// A plugin inside the host is degraded until enough of them are answered.
func (in *Instance) abandon(inc *Incarnation) {
	in.known.mu.Lock()
	defer in.known.mu.Unlock()
	in.known.abandoned++
	n := int(inc.abandoned.Add(1))
	if inc.local != nil {
		n = in.known.abandoned
	}
	switch {
	case n < in.mostAbandoned():
	case inc.local != nil:
		in.sup.Degrade(inc.Number, codeAbandoned, unansweredText(n))
	case !in.sup.Recycle(inc.Number, unansweredText(n)):
		in.sup.Hurry(inc.Number)
	}
}

func (in *Instance) comeBack(inc *Incarnation) {
	in.known.mu.Lock()
	defer in.known.mu.Unlock()
	in.known.abandoned--
	inc.abandoned.Add(-1)
	if inc.local != nil && in.known.abandoned == in.mostAbandoned()-1 {
		in.sup.Restore(inc.Number)
	}
}

func unansweredText(calls int) string {
	return fmt.Sprintf("%d calls were not answered in time", calls)
}

func (in *Instance) mostAbandoned() int {
	return min(in.slots.size(), max(4, in.slots.size()/2))
}

// TryEnter is Await that does not wait: it returns nil if no incarnation takes calls right now.
func (in *Instance) TryEnter() *Incarnation {
	if inc := in.live.Load(); inc != nil && inc.visits.enter() {
		return inc
	}
	return nil
}

// Await returns the incarnation that takes calls; the caller must call its Leave. A plugin that is just being
// replaced is waited for until the given time or the end of ctx; in other states Await fails at once. A patient
// caller also waits for the next start of a plugin that has failed.
func (in *Instance) Await(ctx context.Context, until time.Time, patient bool) (*Incarnation, *phases.Error) {
	for {
		changed := in.changes()
		inc := in.live.Load()
		dead := patient && inc != nil && inc.dead()
		switch {
		case inc != nil && !dead && inc.visits.enter():
			return inc, nil
		case inc != nil && !dead, inc != in.live.Load():
			continue // its successor is up
		}
		if !in.comesBack(patient) {
			return nil, in.Unavailable()
		}
		timer := time.NewTimer(time.Until(until))
		select {
		case <-changed:
			timer.Stop()
		case <-timer.C:
			return nil, in.Unavailable()
		case <-ctx.Done():
			timer.Stop()
			return nil, in.Unavailable()
		}
	}
}

// startSlack is how long AwaitStart waits beyond the time of a start: for the previous start's slot, and the end of
// what has failed.
const startSlack = 5 * time.Second

// AwaitStart waits until the start after an incarnation has succeeded, failed or taken too long, and returns the
// state then.
func (in *Instance) AwaitStart(ctx context.Context, before uint64) supervise.Status {
	ctx, cancel := context.WithTimeout(ctx, StartTimeout(&in.Declared)+startSlack)
	defer cancel()
	for {
		changed := in.changes()
		st := in.sup.Status()
		switch {
		case st.State == supervise.StateStopped:
			return st
		case st.Incarnation > before && st.State != supervise.StateStarting && st.State != supervise.StateDraining:
			return st
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return in.sup.Status()
		}
	}
}

func (in *Instance) comesBack(patient bool) bool {
	s := in.sup.Status().State
	if patient {
		return s != supervise.StateQuarantined && s != supervise.StateStopped
	}
	return s == supervise.StateDraining || s == supervise.StateStarting || s.Up()
}

func (inc *Incarnation) dead() bool {
	if inc.process == nil {
		return false
	}
	select {
	case <-inc.process.Done():
		return true
	default:
		return false
	}
}

// changes returns a channel that is closed at the next change of state.
func (in *Instance) changes() <-chan struct{} {
	in.known.mu.Lock()
	defer in.known.mu.Unlock()
	return in.known.changed
}

func (in *Instance) signal() {
	in.known.mu.Lock()
	defer in.known.mu.Unlock()
	close(in.known.changed)
	in.known.changed = make(chan struct{})
}
