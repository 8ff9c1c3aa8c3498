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
	// end ends the run's context. The cause is the order: a *Failure or a *recycled.
	end     context.CancelCauseFunc
	ordered bool // ordered says that an order was given. Guarded by Supervisor.mu.

	mark   atomic.Pointer[reason] // why the owner calls the run degraded, or nil; marked signals a change
	marked chan struct{}
	asked  chan string // asked has the reason of Replace until the loop looks at it

	running Running        // nil until the start has succeeded and after the stop
	checks  sync.WaitGroup // checks are the health checks of this run, and the start of its successor
}

func newRun(incarnation uint64, end context.CancelCauseFunc) *run {
	return &run{incarnation: incarnation, end: end, marked: make(chan struct{}, 1), asked: make(chan string, 1)}
}

type reason struct{ code, detail string }

type recycled struct{ reason string }

var _ error = (*recycled)(nil)

func (r *recycled) Error() string { return "recycled: " + r.reason }

// ending says how a run has ended: by a failure, by a successor that takes over, or else to be recycled. The end of
// Serve's context takes precedence.
type ending struct {
	failure *Failure
	next    *successor
	recycle string
}

func failed(f *Failure) ending { return ending{failure: f} }

// orderedEnding reads the order from the run's context, which has ended.
func orderedEnding(ctx context.Context) ending {
	cause := context.Cause(ctx)
	if r, ok := errors.AsType[*recycled](cause); ok {
		return ending{recycle: r.reason}
	}
	return failed(failureOf(cause, CodeInternal, ""))
}

// stop stops the run once and waits for its checks. The end of ctx does not end the stop: it is the usual reason for
// it.
func (r *run) stop(ctx context.Context, o Options) error {
	if r.running == nil {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), stopTimeout, errStopTimeout)
	defer cancel()
	err := r.running.Stop(ctx)
	r.running = nil
	// Only now: a check that ignores its deadline returns when the service is gone.
	r.checks.Wait()
	if err != nil {
		return fmt.Errorf("supervise: stopping incarnation %d of %s: %w", r.incarnation, o.Name, err)
	}
	return nil
}
