// Package supervise keeps one [Service] running: it starts it, watches it, and starts it again when it ends, at a
// pace that harms neither the service nor the host. It knows nothing of plugins, phases or processes.
//
//   - policy.go is the pure part: given past failures, the latest one and the time, it
//     says when to try again, or to give up.
//   - [Supervisor] is the loop that starts, waits, checks health, stops, and reports
//     each change of state.
//   - [Gate] limits how many supervisors of a host start at the same moment.
//   - [Breaker] refuses calls after too many of them failed. It is independent of the
//     supervisor: a service may be up and one kind of call to it be broken.
//
// # States
//
//	          +-------- recycle, via draining --------+
//	          v                                       |
//	declared -> starting -> ready <-> degraded -------+
//	             ^   |        |          |
//	             |   +--------+----------+--- failure
//	             |                             |
//	             +------- backoff <------------+-----> quarantined
//	             ^                                         |
//	             +---------------- release ----------------+
//
// A service that runs well can be replaced without leaving ready: see [Replacement]. Each state leads to stopped when
// the context of [Supervisor.Serve] ends, through draining if there is something to stop. Only readings of the
// monotonic clock are subtracted, so that setting the wall clock changes nothing.
//
// Stability: internal.
package supervise

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

const stopTimeout = 2300 * time.Millisecond

// Any stands for the current incarnation, whichever it is.
const Any uint64 = 0

var (
	// ErrServed is returned by a second call of [Supervisor.Serve].
	ErrServed = errors.New("supervise: Serve was called before")
	// ErrStopped is returned by [Supervisor.Wait] for a service that was stopped before it was ready or had failed.
	ErrStopped = errors.New("supervise: stopped before the first start ended")
)

var (
	errStartTimeout = errors.New("the start took too long")
	errStopTimeout  = errors.New("the stop took too long")
)

// Options are the settings of a [Supervisor]. Fields that are not positive have their defaults.
type Options struct {
	Name         string         // Name stands in events and errors
	Random       func() float64 // Random returns numbers in [0, 1) for jitter, concurrently; nil means math/rand/v2
	StartTimeout time.Duration  // StartTimeout bounds one start from the moment that it has its slot; 10 s if 0
	Limiter      Limiter        // Limiter gives out start slots; nil means that no slot is needed
	// SlotHold is the longest time for which one start keeps its slot: a start that hangs must not keep others from
	// theirs. 1 s if 0.
	SlotHold    time.Duration
	Health      Health      // the periodic check of the running service
	Replacement Replacement // how a service that runs well is replaced
	// OnEvent is called for each change, in order, by the goroutine of Serve and with no lock held. It must not block
	// or call Wait. May be nil.
	OnEvent func(Event)
}

func (o Options) withDefaults() Options {
	setDefault(&o.StartTimeout, 10*time.Second)
	setDefault(&o.SlotHold, time.Second)
	if o.Random == nil {
		o.Random = rand.Float64
	}
	o.Health = o.Health.withDefaults()
	if o.Limiter == nil {
		o.Limiter = NewGate(math.MaxInt).Optional()
	}
	setDefault(&o.Replacement.Drain, time.Minute)
	if o.Replacement.Limiter == nil {
		o.Replacement.Limiter = o.Limiter
	}
	if o.OnEvent == nil {
		o.OnEvent = func(Event) {}
	}
	return o
}

// Supervisor keeps one [Service] running.
//
//  1. Create it with [New].
//  2. Call [Supervisor.Serve] once, in a goroutine of the owner's. It starts the service
//     and returns when its context has ended and the service is stopped.
//  3. Meanwhile call the other methods from any goroutine. Only Wait and Expel block.
//
// Before and after Serve those methods are safe to call and do nothing.
type Supervisor struct {
	service Service
	opts    Options

	served  atomic.Bool
	status  atomic.Pointer[Status]
	history history // history and number, that of the latest start, belong to the goroutine of Serve
	number  uint64
	retired sync.WaitGroup // retired are the incarnations that were replaced and are being stopped

	settled chan struct{} // closed when the first start has ended; outcome is written before that
	outcome error

	mu      sync.Mutex
	current *run          // the run that orders are for; nil between two runs
	hold    chan struct{} // closed to end backoff or quarantine; nil at other times
	// gone is closed when the latest replaced incarnation, numbered replaced, is gone, and hurry ends its drain; nil
	// if there was none.
	gone      chan struct{}
	hurry     context.CancelFunc
	replaced  uint64
	unstopped []error // unstopped are the errors of stops beside the run, up to mostLost
}

// New returns a supervisor for service.
func New(service Service, o Options) *Supervisor {
	s := &Supervisor{service: service, opts: o.withDefaults(), settled: make(chan struct{})}
	s.status.Store(&Status{State: StateDeclared, Since: time.Now()})
	return s
}

// Status returns a snapshot. It takes no lock.
func (s *Supervisor) Status() Status { return *s.status.Load() }

// Wait blocks until the service is ready for the first time and returns nil, or has failed for the first time and
// returns the *Failure. It returns [ErrStopped] if neither ever happened, and the cause of ctx when that ends first.
func (s *Supervisor) Wait(ctx context.Context) error {
	if ctx.Err() != nil { // what is settled is returned even then
		select {
		case <-s.settled:
			return s.outcome
		default:
		}
	}
	select {
	case <-s.settled:
		return s.outcome
	case <-ctx.Done():
		return fmt.Errorf("supervise: waiting for %s: %w", s.opts.Name, context.Cause(ctx))
	}
}

// Report ends the incarnation with a failure that the supervisor cannot see by itself. It reports whether the order
// was taken: there is such an incarnation, starting or up, and no earlier order to end it.
func (s *Supervisor) Report(incarnation uint64, f Failure) bool {
	return s.order(incarnation, failureOf(&f, CodeInternal, ""))
}

// Recycle replaces the incarnation by a new one: stop, then start at once. It does not count as a failure. Its result
// is that of Report.
func (s *Supervisor) Recycle(incarnation uint64, reason string) bool {
	return s.order(incarnation, &recycled{reason: reason})
}

func (s *Supervisor) order(incarnation uint64, cause error) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.currentRun(incarnation)
	if r == nil || r.ordered {
		return false
	}
	r.ordered = true
	r.end(cause)
	return true
}

// Degrade marks the incarnation as degraded until Restore is called or the service is started again. It reports
// whether there is such an incarnation.
func (s *Supervisor) Degrade(incarnation uint64, code, detail string) bool {
	return s.mark(incarnation, &reason{code: code, detail: detail})
}

// Restore removes the mark of Degrade. It reports whether there is such an incarnation.
func (s *Supervisor) Restore(incarnation uint64) bool {
	return s.mark(incarnation, nil)
}

func (s *Supervisor) mark(incarnation uint64, why *reason) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.currentRun(incarnation)
	if r == nil {
		return false
	}
	r.mark.Store(why)
	select {
	case r.marked <- struct{}{}:
	default: // signalled already
	}
	return true
}

// currentRun returns the current run if it is the one that is meant; the caller holds the lock.
func (s *Supervisor) currentRun(incarnation uint64) *run {
	if s.current == nil || (incarnation != Any && incarnation != s.current.incarnation) {
		return nil
	}
	return s.current
}

// Release ends quarantine or backoff: the service is started at once and its failures are forgotten. It returns false
// in any other state.
func (s *Supervisor) Release() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hold == nil {
		return false
	}
	close(s.hold)
	s.hold = nil
	return true
}
