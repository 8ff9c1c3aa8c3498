package supervise

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// The defaults of [Options].
const (
	DefaultStartTimeout = 10 * time.Second
	DefaultStopTimeout  = 2300 * time.Millisecond
	DefaultSlotHold     = time.Second
)

// Any stands for whichever incarnation is current, for orders that mean the
// service as a whole.
const Any uint64 = 0

var (
	// ErrServed is returned by a second call of [Supervisor.Serve].
	ErrServed = errors.New("supervise: Serve was called before")
	// ErrStopped is returned by [Supervisor.Wait] when the service was stopped
	// before it was ready or had failed.
	ErrStopped = errors.New("supervise: stopped before the first start ended")
)

// Causes with which contexts handed to a service end.
var (
	errStartTimeout = errors.New("the start took too long")
	errStopTimeout  = errors.New("the stop took too long")
)

// Options are the settings of a [Supervisor]. The zero value has the defaults.
type Options struct {
	// Name stands in events and errors.
	Name string
	// Policy decides about restarts.
	Policy Policy
	// StartTimeout bounds one start. It runs from the moment that the start has
	// its slot.
	StartTimeout time.Duration
	// StopTimeout bounds one stop.
	StopTimeout time.Duration
	// Limiter gives out start slots; nil means that no slot is needed.
	Limiter Limiter
	// SlotHold is the longest time for which one start keeps its slot. A slot
	// spreads the burst of work at the beginning of starts; a start that hangs
	// must not keep others from theirs.
	SlotHold time.Duration
	// Health is the periodic check of the running service; off by default.
	Health Health
	// Replacement is how a service that runs well is replaced.
	Replacement Replacement
	// OnEvent is told each change, in order, by the goroutine of Serve and with
	// no lock held. It may call any method of the supervisor but Wait. It must
	// not block: the service is not watched meanwhile. May be nil.
	OnEvent func(Event)
}

// withDefaults returns the options with their zero fields filled.
func (o Options) withDefaults() Options {
	setDefault(&o.StartTimeout, DefaultStartTimeout)
	setDefault(&o.StopTimeout, DefaultStopTimeout)
	setDefault(&o.SlotHold, DefaultSlotHold)
	o.Policy = o.Policy.withDefaults()
	o.Health = o.Health.withDefaults()
	if o.Limiter == nil {
		o.Limiter = noLimit{}
	}
	o.Replacement = o.Replacement.withDefaults(o.Limiter)
	if o.OnEvent == nil {
		o.OnEvent = func(Event) {}
	}
	return o
}

// noLimit is the limiter that always has a slot.
type noLimit struct{}

var _ Limiter = noLimit{}

// Acquire implements [Limiter].
func (noLimit) Acquire(context.Context) (func(), error) { return func() {}, nil }

// Supervisor keeps one [Service] running.
//
//  1. Create it with [New]; it is then declared and can be asked for its Status.
//  2. Call [Supervisor.Serve] once, in a goroutine of the owner's. It starts the
//     service at once and returns when its context has ended and the service is
//     stopped.
//  3. Meanwhile, from any goroutine: Status, Wait, Report, Recycle, Replace,
//     Hurry, Degrade, Restore, Release, Expel. None of them blocks, except Wait and Expel.
//
// Before and after Serve those methods are safe to call and do nothing.
type Supervisor struct {
	service Service
	opts    Options

	served atomic.Bool
	status atomic.Pointer[Status]
	// history and number, which is that of the latest start, belong to the
	// goroutine of Serve.
	history History
	number  uint64
	// retired are the incarnations that were replaced and are being stopped.
	retired sync.WaitGroup

	// settled is closed when the first start has ended; outcome is written
	// before that and read after it.
	settled chan struct{}
	outcome error

	mu sync.Mutex
	// current is the run that orders are for; nil between two runs.
	current *run
	// hold is closed to end backoff or quarantine; nil at other times.
	hold chan struct{}
	// gone is closed when the latest replaced incarnation is gone, and hurry ends
	// its drain; nil if there was none.
	gone  chan struct{}
	hurry context.CancelFunc
	// replaced is the number of that incarnation.
	replaced uint64
	// unstopped are the errors of stops beside the run, up to mostLost.
	unstopped []error
}

// New returns a supervisor for service. It fails if service is nil or a
// duration is negative.
func New(service Service, o Options) (*Supervisor, error) {
	if service == nil {
		return nil, fmt.Errorf("supervise: %s: no service", o.Name)
	}
	if err := o.validate(); err != nil {
		return nil, fmt.Errorf("supervise: %s: %w", o.Name, err)
	}
	s := &Supervisor{
		service: service,
		opts:    o.withDefaults(),
		settled: make(chan struct{}),
	}
	s.status.Store(&Status{State: StateDeclared, Since: time.Now()})
	return s, nil
}

// validate names the first setting that cannot be meant.
func (o Options) validate() error {
	for _, d := range []struct {
		name  string
		value time.Duration
	}{
		{"StartTimeout", o.StartTimeout},
		{"StopTimeout", o.StopTimeout},
		{"SlotHold", o.SlotHold},
		{"Health.Interval", o.Health.Interval},
		{"Health.Timeout", o.Health.Timeout},
		{"Health.Misses", time.Duration(o.Health.Misses)},
		{"Replacement.Age", o.Replacement.Age},
		{"Replacement.Drain", o.Replacement.Drain},
		{"Replacement.MinRetry", o.Replacement.MinRetry},
		{"Replacement.MaxRetry", o.Replacement.MaxRetry},
		{"Policy.MinBackoff", o.Policy.MinBackoff},
		{"Policy.MaxBackoff", o.Policy.MaxBackoff},
		{"Policy.MinMemory", o.Policy.MinMemory},
		{"Policy.MaxMemory", o.Policy.MaxMemory},
		{"Policy.ResetAfter", o.Policy.ResetAfter},
		{"Policy.Limit", time.Duration(o.Policy.Limit)},
		{"Policy.Window", o.Policy.Window},
	} {
		if d.value < 0 {
			return fmt.Errorf("%s is negative", d.name)
		}
	}
	return nil
}

// Status returns a snapshot. It takes no lock.
func (s *Supervisor) Status() Status { return *s.status.Load() }

// Wait blocks until the service is ready for the first time and returns nil, or
// until it has failed for the first time and returns the *Failure. Later calls
// return the same: what is true now is told by Status. It returns [ErrStopped]
// if neither ever happened, and the cause of ctx when that ends first.
func (s *Supervisor) Wait(ctx context.Context) error {
	select {
	case <-s.settled:
		return s.outcome
	default:
	}
	select {
	case <-s.settled:
		return s.outcome
	case <-ctx.Done():
		return fmt.Errorf("supervise: waiting for %s: %w", s.opts.Name, context.Cause(ctx))
	}
}

// Report tells the supervisor that the incarnation has failed in a way that the
// supervisor cannot see by itself. The service is stopped, the failure counts
// like any other, and what follows is up to the policy.
//
// It returns whether the order was taken: there is such an incarnation,
// starting or up, and no earlier order to end it.
func (s *Supervisor) Report(incarnation uint64, f Failure) bool {
	return s.order(incarnation, failureOf(&f, CodeInternal, ""))
}

// Recycle replaces the incarnation by a new one: stop, then start at once. This
// is no failure and does not count as one, however often it is done. Its result
// is that of Report.
func (s *Supervisor) Recycle(incarnation uint64, reason string) bool {
	return s.order(incarnation, &recycled{reason: reason})
}

// order ends the current run with cause, once.
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

// Degrade marks the incarnation as degraded although its health checks pass,
// until Restore is called or the service is started anew. It returns whether
// there is such an incarnation.
func (s *Supervisor) Degrade(incarnation uint64, code, detail string) bool {
	return s.mark(incarnation, &reason{code: code, detail: detail})
}

// Restore takes the mark of Degrade away. It returns whether there is such an
// incarnation.
func (s *Supervisor) Restore(incarnation uint64) bool {
	return s.mark(incarnation, nil)
}

// mark sets the mark of the current run and has Serve look at it.
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
	default: // Serve has not looked since the last time and will see both
	}
	return true
}

// currentRun returns the current run if it is the one that is meant. The caller
// holds the lock.
func (s *Supervisor) currentRun(incarnation uint64) *run {
	if s.current == nil || (incarnation != Any && incarnation != s.current.incarnation) {
		return nil
	}
	return s.current
}

// Release ends quarantine, or the wait of a backoff: the service is started at
// once and its failures are forgotten. It is for an operator's word, a changed
// configuration, a new binary. It returns false in any other state.
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
