package supervise

import (
	"context"
	"fmt"
	"time"
)

const (
	// ageJitter is the random part of Replacement.Age, so that services which came up together are not all replaced in
	// the same second.
	ageJitter = 0.2
	// minReplace is the wait after a successor that did not come up; it doubles up to maxReplace. After a failure of
	// ClassPermanent it is maxReplace at once.
	minReplace, maxReplace = 10 * time.Second, 10 * time.Minute
)

// Replacement says when and how a service that runs well is replaced. The successor comes up while its predecessor
// still serves; that one then finishes what it has begun and is stopped. A successor that does not come up only makes
// the service degraded; another one is tried later. Neither counts as a failure. The zero value replaces only what
// [Supervisor.Replace] names.
type Replacement struct {
	Age     time.Duration // how long an incarnation may run, less a random fifth at most; 0 is for ever
	Alone   bool          // for services that cannot run twice at the same time: stop before start
	Limiter Limiter       // Limiter gives out the slots of successors; nil is Options.Limiter
	Drain   time.Duration // Drain bounds how long the predecessor may take to finish, if it is a [Drainer]
}

// Drainer is a [Running] that can finish what it has begun before it is stopped.
type Drainer interface {
	// Drain returns when nothing is left to do or ctx has ended. The service gets nothing new from then on.
	Drain(ctx context.Context)
}

// Replace starts a successor of an incarnation that is up; see [Replacement]. Asking again before it takes over
// changes nothing. It reports whether there is such an incarnation.
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

// Expel ends the drain of a replaced incarnation and waits until nothing is left of it, or ctx ends.
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

// Hurry ends the drain of this incarnation, if it was replaced and drains; it reports whether it does.
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

// succession is what a run knows of its successor. It belongs to the goroutine of Serve.
type succession struct {
	why      string         // the reason to replace the run; empty for none
	due      *time.Timer    // due fires at the run's age, or when another attempt is due
	came     chan successor // came receives the started successor; nil while none is on its way
	failures int            // failures counts the successors that did not come up; stuck explains the first
	stuck    *reason
}

type successor struct {
	number  uint64
	running Running
	failure *Failure
}

func (s *Supervisor) newSuccession() *succession {
	p := &s.opts.Replacement
	// A timer that is not set fires in some years.
	n := &succession{due: time.NewTimer(1<<63 - 1)}
	if p.Age > 0 {
		n.due.Reset(p.Age - time.Duration(ageJitter*s.opts.Random()*float64(p.Age)))
	}
	return n
}

// replace begins to replace the run. It returns the run's ending if it must be stopped first.
func (s *Supervisor) replace(ctx context.Context, r *run, n *succession, why string) (ending, bool) {
	switch {
	case n.came != nil, why != "" && n.failures > 0:
		return ending{}, false // it is on its way, or due at its time
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
	s.mu.Lock()
	gone := s.gone
	s.mu.Unlock()
	r.checks.Go(func() { s.succeed(ctx, number, gone, came) })
	return ending{}, false
}

// succeed starts one successor and hands it over, or stops it if the run that it should replace has ended meanwhile.
// gone is closed when no replaced incarnation is left.
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

// arrived handles a successor that has started, which takes over, or failed.
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
	n.failures++
	if n.stuck == nil {
		n.stuck = &reason{
			code:   next.failure.Code,
			detail: fmt.Sprintf("to be replaced (%s), and its successor did not come up: %s", n.why, next.failure.summary()),
		}
	}
	wait := doubled(minReplace, maxReplace, n.failures)
	if next.failure.Class == ClassPermanent {
		wait = maxReplace
	}
	n.due.Reset(jittered(wait, s.opts.Random()))
	return ending{}, false
}

// takeOver makes the successor the current run. It fails if the old run was given an order in this moment, which
// takes precedence.
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

// retire lets a replaced run finish and stops it, in a goroutine that Serve waits for.
func (s *Supervisor) retire(ctx context.Context, old *run) {
	old.end(nil) // ends its health checks
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

// mostLost bounds the errors of lost stops that Serve returns.
const mostLost = 8

// lost keeps the error of a stop beside the run, for Serve to return.
func (s *Supervisor) lost(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil && len(s.unstopped) < mostLost {
		s.unstopped = append(s.unstopped, err)
	}
}
