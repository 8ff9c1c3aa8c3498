package supervise

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
)

// run is one incarnation, from the wait for its slot to the end of its stop.
type run struct {
	incarnation uint64

	// end ends the run's context. The cause is the order: a *Failure or a
	// *recycled.
	end context.CancelCauseFunc
	// ordered says that an order was given. Guarded by Supervisor.mu.
	ordered bool

	// mark is the owner's reason to call the run degraded, or nil; marked tells
	// the loop that it has changed.
	mark   atomic.Pointer[reason]
	marked chan struct{}
	// asked has the reason of Replace until the loop looks at it.
	asked chan string

	// running is nil until the start has succeeded and after the stop.
	running Running
	// checks are the health checks of this run, and the start of its successor.
	checks sync.WaitGroup
}

// newRun returns a run that end ends.
func newRun(incarnation uint64, end context.CancelCauseFunc) *run {
	return &run{incarnation: incarnation, end: end, marked: make(chan struct{}, 1), asked: make(chan string, 1)}
}

// reason is a code with a detail.
type reason struct{ code, detail string }

// recycled is the cause that ends the context of a run which is to be replaced.
type recycled struct{ reason string }

var _ error = (*recycled)(nil)

// Error implements error.
func (r *recycled) Error() string { return "recycled: " + r.reason }

// ending says how a run has ended: with a failure, with a successor that takes
// over, or else to be recycled. When Serve's context has ended too, that is what
// counts.
type ending struct {
	failure *Failure
	next    *successor
	recycle string
}

// failed is the ending by a failure.
func failed(f *Failure) ending { return ending{failure: f} }

// orderedEnding reads the order out of the run's context, which has ended.
func orderedEnding(ctx context.Context) ending {
	cause := context.Cause(ctx)
	if r, ok := errors.AsType[*recycled](cause); ok {
		return ending{recycle: r.reason}
	}
	return failed(failureOf(cause, CodeInternal, ""))
}

// stop stops what runs, once, and waits for the run's checks. The context that
// it hands on is bounded, and does not end with ctx: the usual reason to stop is
// that ctx has ended.
func (r *run) stop(ctx context.Context, o Options) error {
	if r.running == nil {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), o.StopTimeout, errStopTimeout)
	defer cancel()
	err := r.running.Stop(ctx)
	r.running = nil
	// Only now: a check that waits for an answer in spite of its deadline gets
	// free when the service is gone, and must not keep it from being stopped.
	r.checks.Wait()
	if err != nil {
		return fmt.Errorf("supervise: stopping incarnation %d of %s: %w", r.incarnation, o.Name, err)
	}
	return nil
}
