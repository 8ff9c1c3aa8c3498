package supervise

import (
	"context"
	"fmt"
	"time"
)

// The defaults of [Replacement].
const (
	DefaultReplaceDrain = time.Minute
	DefaultMinReplace   = 10 * time.Second
	DefaultMaxReplace   = 10 * time.Minute
)

// ageJitter is the part of Replacement.Age that is random: services that came up
// together do not all grow old in the same second.
const ageJitter = 0.2

// Replacement says when and how a service that runs well is replaced by a new
// start of it. The successor comes up while the one before still serves; that one
// then finishes what it has begun and is stopped. Neither counts as a failure. A
// successor that does not come up changes nothing but that the service is called
// degraded: the one that runs stays, and another is tried later. The zero value
// replaces only what [Supervisor.Replace] names.
type Replacement struct {
	// Age is how long an incarnation may run; 0 is for ever. A random fifth of it
	// at most is taken off.
	Age time.Duration
	// Alone is for services that cannot run twice at the same time: they are
	// recycled instead, stop before start.
	Alone bool
	// Limiter gives out the slots of successors; nil is Options.Limiter.
	Limiter Limiter
	// Drain bounds how long the one that was replaced may take to finish, if it is
	// a [Drainer].
	Drain time.Duration
	// MinRetry is the wait after a successor that did not come up; it doubles up
	// to MaxRetry. A failure of ClassPermanent is waited for the longest at once.
	MinRetry, MaxRetry time.Duration
}

// Drainer is a [Running] that can finish what it has begun before it is stopped.
type Drainer interface {
	// Drain returns when nothing is left to do or ctx has ended. The service gets
	// nothing new when it is called.
	Drain(ctx context.Context)
}

// withDefaults returns the settings with their zero fields filled.
func (p Replacement) withDefaults(starts Limiter) Replacement {
	setDefault(&p.Drain, DefaultReplaceDrain)
	setDefault(&p.MinRetry, DefaultMinReplace)
	setDefault(&p.MaxRetry, max(DefaultMaxReplace, p.MinRetry))
	if p.Limiter == nil {
		p.Limiter = starts
	}
	return p
}

// Replace starts a successor of an incarnation that is up and has it take over;
// see [Replacement]. Asking again before that changes nothing. It returns whether
// there is such an incarnation.
func (s *Supervisor) Replace(incarnation uint64, why string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.currentRun(incarnation)
	if r == nil || r.ordered {
		return false
	}
	select {
	case r.asked <- why:
	default: // it was asked for before
	}
	return true
}

// Expel cuts the drain of an incarnation that was replaced short, and waits until
// nothing is left of it. It fails when ctx ends before that.
func (s *Supervisor) Expel(ctx context.Context) error {
	s.mu.Lock()
	gone, hurry := s.gone, s.hurry
	s.mu.Unlock()
	if gone == nil {
		return nil
	}
	hurry()
	select {
	case <-gone:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("supervise: waiting for the end of the replaced incarnation of %s: %w", s.opts.Name, context.Cause(ctx))
	}
}

// Hurry cuts the drain of this incarnation short, if it was replaced and drains. It
// returns whether there is such an incarnation.
func (s *Supervisor) Hurry(incarnation uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone == nil || incarnation != s.replaced {
		return false
	}
	select {
	case <-s.gone:
		return false
	default:
		s.hurry()
		return true
	}
}

// succession is what a run knows of its successor. It belongs to the goroutine
// of Serve.
type succession struct {
	// why is the reason to replace the run; empty for none.
	why string
	// due fires when a successor is to be started: at the run's age, or when
	// another attempt is due.
	due *time.Timer
	// came gets the successor that was started; nil while none is on its way.
	came chan successor
	// failures counts the ones that did not come up; stuck tells of the first.
	failures int
	stuck    *reason
}

// successor is the outcome of one start beside a run.
type successor struct {
	number  uint64
	running Running
	failure *Failure
}

// newSuccession sets the timer of a run's age.
func (s *Supervisor) newSuccession() *succession {
	p := &s.opts.Replacement
	// A timer that is not set fires in some years.
	n := &succession{due: time.NewTimer(1<<63 - 1)}
	if p.Age > 0 {
		age := p.Age - time.Duration(ageJitter*min(max(s.opts.Policy.Random(), 0), 1)*float64(p.Age))
		n.due.Reset(age)
	}
	return n
}

// replace begins to replace the run. It returns the end of the run if it has to
// be stopped first.
func (s *Supervisor) replace(ctx context.Context, r *run, n *succession, why string) (ending, bool) {
	switch {
	case n.came != nil, why != "" && n.failures > 0:
		return ending{}, false // it is on its way, or to be tried again at its time
	case n.why != "":
	case why != "":
		n.why = why
	default:
		n.why = fmt.Sprintf("it ran for %s", s.opts.Replacement.Age)
	}
	if s.opts.Replacement.Alone {
		return ending{recycle: n.why}, true
	}
	s.number++
	came, number := make(chan successor), s.number
	n.came = came
	gone := s.leaving()
	r.checks.Go(func() { s.succeed(ctx, number, gone, came) })
	return ending{}, false
}

// leaving is closed when no replaced incarnation is left; nil if there is none.
func (s *Supervisor) leaving() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.gone
}

// succeed starts one successor and hands it over. Nobody takes it when the run
// that it should replace has ended meanwhile: then it is stopped.
func (s *Supervisor) succeed(ctx context.Context, number uint64, gone <-chan struct{}, came chan<- successor) {
	next := successor{number: number}
	if gone != nil { // never three at a time
		select {
		case <-gone:
		case <-ctx.Done():
			return
		}
	}
	release, err := s.opts.Replacement.Limiter.Acquire(ctx)
	if err != nil {
		next.failure = &Failure{Class: ClassResource, Code: CodeUnavailable, Detail: "no start slot", Err: err}
	} else {
		next.running, next.failure = s.start(ctx, number, release)
	}
	select {
	case came <- next:
	case <-ctx.Done():
		r := &run{incarnation: number, running: next.running}
		s.lost(r.stop(ctx, s.opts))
	}
}

// arrived looks at the outcome of a successor's start: it takes over, or another
// attempt is made later.
func (s *Supervisor) arrived(ctx context.Context, n *succession, next successor) (ending, bool) {
	n.came = nil
	if next.running != nil {
		select {
		case <-next.running.Done():
			next.failure = failureOf(next.running.Err(), CodeCrash, "ended without being asked to")
			r := &run{incarnation: next.number, running: next.running}
			s.lost(r.stop(ctx, s.opts))
		default:
			return ending{next: &next, recycle: n.why}, true
		}
	}
	p := &s.opts.Replacement
	n.failures++
	if n.stuck == nil {
		n.stuck = &reason{
			code:   next.failure.Code,
			detail: fmt.Sprintf("to be replaced (%s), and its successor did not come up: %s", n.why, next.failure.summary()),
		}
	}
	wait := doubled(p.MinRetry, p.MaxRetry, n.failures)
	if next.failure.Class == ClassPermanent {
		wait = p.MaxRetry
	}
	n.due.Reset(s.opts.Policy.jittered(wait))
	return ending{}, false
}

// takeOver makes the successor the current run and retires the one before. It
// fails if that one was given an order in this moment, which goes before.
func (s *Supervisor) takeOver(ctx context.Context, old *run, e ending) (*run, context.Context, bool) {
	ctx, end := context.WithCancelCause(ctx)
	next := newRun(e.next.number, end)
	next.running = e.next.running
	s.mu.Lock()
	if old.ordered {
		s.mu.Unlock()
		end(nil)
		return nil, nil, false
	}
	s.current = next
	s.mu.Unlock()
	s.change(e.recycle, func(st *Status) {
		st.State, st.Code, st.Detail = StateReady, "", ""
		st.Incarnation = next.incarnation
		st.Recycled++
	})
	return next, ctx, true
}

// retire lets a run that was replaced finish and stops it, in a goroutine that
// Serve waits for.
func (s *Supervisor) retire(ctx context.Context, old *run) {
	old.end(nil) // its health is of no interest any more
	drain, hurry := context.WithTimeout(ctx, s.opts.Replacement.Drain)
	gone := make(chan struct{})
	s.mu.Lock()
	s.gone, s.hurry, s.replaced = gone, hurry, old.incarnation
	s.mu.Unlock()
	s.retired.Go(func() {
		defer close(gone)
		defer hurry()
		if d, ok := old.running.(Drainer); ok {
			d.Drain(drain)
		}
		s.lost(old.stop(ctx, s.opts))
	})
}

// mostLost is how many errors of lost stops Serve returns; what follows is as a
// rule the same again.
const mostLost = 8

// lost keeps the error of a stop that nothing else waits for, for Serve's.
func (s *Supervisor) lost(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil && len(s.unstopped) < mostLost {
		s.unstopped = append(s.unstopped, err)
	}
}
