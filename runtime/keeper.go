package runtime

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/grapnelhq/grapnel/phases"
)

// The bounds of what the sink may cost a turn, and the engine.
const (
	// sinkTime is the longest that a call of the sink may hold a turn up.
	sinkTime = 500 * time.Millisecond
	// sinkGrace is how much of it is left to a sink for noticing that its context
	// has ended.
	sinkGrace = 50 * time.Millisecond
	// sinkCalls bounds the calls of the sink at one time; further ones wait.
	sinkCalls = 64
	// sinkHanging is how many of them may have been given up and not have
	// returned. Beyond it the sink is taken to hang: calls fail at once.
	sinkHanging = 8
)

// keeper calls the sink. Whatever that does (a disk may hang in a way that no
// context ends) it holds nobody up for longer than sinkTime, and cannot make the
// engine pile up more than sinkCalls goroutines.
type keeper struct {
	sink  Sink
	slots chan struct{}
	// hanging counts the calls that were given up and have not returned.
	hanging atomic.Int64
	closed  atomic.Bool
	counts  keeperCounts
}

// keeperCounts are the counters behind Stats.
type keeperCounts struct {
	kept, notKept, keptLate, usage, usageLost, audits, auditsLost atomic.Uint64
}

// newKeeper returns nil without a sink.
func newKeeper(sink Sink) *keeper {
	if sink == nil {
		return nil
	}
	return &keeper{sink: sink, slots: make(chan struct{}, sinkCalls)}
}

// sinkCall is one call of the sink, on its way or over.
type sinkCall struct {
	state atomic.Int32
	done  chan error
	// late is told how the call ended after it was given up; nil is nobody.
	late func(error)
}

// The states of a call of the sink.
const (
	sinkCalled int32 = iota
	sinkReturned
	sinkGivenUp
)

// call runs do, which calls the sink, on a goroutine of its own, and waits for it
// no longer than sinkTime. It goes on when the caller's context has ended: what a
// turn did is worth keeping above all when the turn was broken off. What becomes
// of a call that was given up is told to late, if that is set.
func (k *keeper) call(ctx context.Context, do func(ctx context.Context) error, late func(error)) error {
	if k.closed.Load() {
		return ErrClosed
	}
	if n := k.hanging.Load(); n >= sinkHanging {
		return phases.Errorf(phases.CauseOverloaded, "the sink hangs: %d calls of it have not returned", n)
	}
	giveUp := time.NewTimer(sinkTime)
	defer giveUp.Stop()
	select {
	case k.slots <- struct{}{}:
	case <-giveUp.C:
		return phases.Errorf(phases.CauseOverloaded, "the sink is busy with %d calls", sinkCalls)
	}
	c := &sinkCall{done: make(chan error, 1), late: late}
	go k.run(context.WithoutCancel(ctx), c, do)
	select {
	case err := <-c.done:
		return err
	case <-giveUp.C:
		return k.giveUp(c)
	}
}

// run makes the call and frees its slot.
func (k *keeper) run(ctx context.Context, c *sinkCall, do func(context.Context) error) {
	defer func() { <-k.slots }()
	ctx, cancel := context.WithTimeout(ctx, sinkTime-sinkGrace)
	defer cancel()
	err := unpanicked(ctx, do)
	if c.state.CompareAndSwap(sinkCalled, sinkReturned) {
		c.done <- err
		return
	}
	if c.late != nil {
		c.late(err)
	}
	k.hanging.Add(-1)
}

// giveUp leaves a call to itself, unless it has just returned.
func (k *keeper) giveUp(c *sinkCall) error {
	k.hanging.Add(1)
	if c.state.CompareAndSwap(sinkCalled, sinkGivenUp) {
		return phases.Errorf(phases.CauseTimeout, "the sink has not answered within %s", sinkTime)
	}
	k.hanging.Add(-1)
	return <-c.done
}

// unpanicked makes a panic an error.
func unpanicked(ctx context.Context, do func(context.Context) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = phases.Errorf(phases.CauseInternal, "the sink panicked: %v\n%s", p, debug.Stack())
		}
	}()
	return do(ctx)
}

// close lets the calls that are on their way end, for a bounded time, and takes
// no more. It fails when some of them hang. They get that time whatever is left
// of ctx, which plugins may have used up.
func (k *keeper) close(ctx context.Context) error {
	if k == nil || k.closed.Swap(true) {
		return nil
	}
	return takeAll(ctx, k.slots, "the sink")
}

// takeAll takes all slots of a function of the host's for good, waiting a moment
// for calls that are on their way.
func takeAll(ctx context.Context, slots chan struct{}, whose string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sinkTime)
	defer cancel()
	for n := range cap(slots) {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			return fmt.Errorf("%d calls of %s have not returned: %w", cap(slots)-n, whose, context.Cause(ctx))
		}
	}
	return nil
}
