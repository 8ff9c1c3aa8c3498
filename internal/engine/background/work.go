// Package background does an engine's background work: it adds jobs to a queue, makes attempts at them through the
// engine ([Runner]), decides what follows from each attempt, and collects results for callers that wait. How a hook
// or tool is run is up to the Runner. Start at [Work.Serve].
//
// Stability: internal.
package background

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/grapnelhq/grapnel/internal/engine/jobs"
	"github.com/grapnelhq/grapnel/internal/engine/memqueue"
	"github.com/grapnelhq/grapnel/phases"
)

const (
	drainTime      = 2 * time.Second  // bounds Drain if its caller sets no deadline
	quarantineTime = 10 * time.Minute // how long jobs wait for a plugin in quarantine
	// sharedOffers is how often a job that this engine cannot do is requeued for the other engines of a shared queue:
	// for about ten minutes.
	sharedOffers = 60
)

// States of jobs in events, beside the values of [jobs.Action].
const (
	StateRefused   = "refused"
	stateDuplicate = "duplicate"
	StateLost      = "lost"
)

// Runner is the engine.
type Runner interface {
	// Run makes one attempt. An [Unwanted] error is permanent and not a failure.
	Run(ctx context.Context, a *Attempt) error
	// QuarantinedFor is how long a plugin has been in quarantine; 0 if it is not.
	QuarantinedFor(plugin string) time.Duration
	// JobChanged reports a change of a job: its state, and why.
	JobChanged(j jobs.Job, state string, err error)
}

// Unwanted is an error that no other attempt can fix and that is not a failure: the work is not wanted any more.
type Unwanted struct{ error }

// Unwantedf formats an [Unwanted].
func Unwantedf(format string, args ...any) error { return Unwanted{fmt.Errorf(format, args...)} }

// Unwrap returns the cause.
func (u Unwanted) Unwrap() error { return u.error }

// IsUnwanted reports whether an error is, or wraps, an [Unwanted].
func IsUnwanted(err error) bool {
	_, ok := errors.AsType[Unwanted](err)
	return ok
}

// Attempt is one attempt at a job.
type Attempt struct {
	jobs.Attempt

	// Run, Kinds and Notes are a hook's row, the kinds of its contributions, and the engine's diagnostics; for
	// collectors.
	Run   *phases.Run
	Kinds []phases.Kind
	Notes []phases.Diagnostic

	begun bool
}

// Once records the start of work that must not be done twice. The Runner calls it right before it calls a plugin that
// does not declare repetition harmless. It does nothing for nil and when called again.
func (a *Attempt) Once(ctx context.Context) *phases.Error {
	if a == nil || a.begun {
		return nil
	}
	if a.Begin != nil {
		if err := a.Begin(ctx); err != nil {
			return phases.Errorf(phases.CauseUnavailable, "the start of the work cannot be recorded: %w", err)
		}
	}
	a.begun = true
	return nil
}

// Work is the background work of one engine. It is safe for concurrent use.
type Work struct {
	runner   Runner
	queue    jobs.Queue
	inMemory bool
	// ended is closed when Serve has returned, with the error endedBy.
	ended   chan struct{}
	endedBy error

	mu         sync.Mutex
	collectors map[string]*collector
}

// New returns the background work of an engine. A nil queue is one in memory; a nil random is math/rand.
func New(runner Runner, queue jobs.Queue, random func() float64) *Work {
	w := &Work{runner: runner, queue: queue, inMemory: queue == nil, ended: make(chan struct{}), collectors: map[string]*collector{}}
	if queue == nil {
		if random == nil {
			random = rand.Float64
		}
		w.queue = memqueue.New(random, func(j jobs.Job, why error) { runner.JobChanged(j, StateLost, why) })
	}
	return w
}

// Add queues a job. A duplicate is reported and is not an error.
func (w *Work) Add(ctx context.Context, j jobs.Job) error {
	c := w.register(ctx, &j)
	err := w.queue.Add(ctx, j)
	if err != nil && c != nil {
		c.drop(j.Ticket)
	}
	if errors.Is(err, jobs.ErrDuplicate) {
		w.runner.JobChanged(j, stateDuplicate, nil)
		return nil
	}
	return err
}

// Serve works on jobs until ctx ends. It must be called once.
func (w *Work) Serve(ctx context.Context) error {
	defer close(w.ended)
	w.endedBy = w.queue.Serve(ctx, w.attempt)
	return w.endedBy
}

// Idle waits until no work is due, or ctx ends.
func (w *Work) Idle(ctx context.Context) error { return w.queue.Idle(ctx) }

// Drain is Idle with a bound, for the end of an engine.
func (w *Work) Drain(ctx context.Context) error {
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, drainTime)
		defer cancel()
	}
	if err := w.queue.Idle(ctx); err != nil {
		return fmt.Errorf("background work was not finished in time: %w", err)
	}
	return nil
}

// Status is the state of an engine's background work.
type Status struct {
	Durable bool `json:"durable"`
	jobs.Counts

	// Error says why the counts are unknown, and zero.
	Error string `json:"error,omitempty"`
}

// Status asks the queue for its counts.
func (w *Work) Status(ctx context.Context) Status {
	s := Status{Durable: !w.inMemory}
	counter, ok := w.queue.(jobs.Counter)
	if !ok {
		s.Error = "the host's queue cannot be counted"
		return s
	}
	var err error
	if s.Counts, err = counter.Counts(ctx); err != nil {
		s.Counts, s.Error = jobs.Counts{}, err.Error()
	}
	return s
}

func (w *Work) attempt(ctx context.Context, given jobs.Attempt) jobs.Result {
	a := &Attempt{Attempt: given}
	c := w.collectorOf(&a.Job)
	if c != nil {
		ctx = context.WithValue(ctx, collectorKey{}, c) // for what it queues itself
	}
	r := w.result(ctx, a, w.runner.Run(ctx, a))
	w.runner.JobChanged(a.Job, string(r.Action), r.Err)
	if c != nil {
		c.collect(a, r)
	}
	return r
}

// result decides what follows from an attempt.
func (w *Work) result(ctx context.Context, a *Attempt, err error) jobs.Result {
	code, unwanted := phases.CodeOf(err), IsUnwanted(err)
	switch {
	case err == nil:
		return jobs.Result{Action: jobs.Done}
	case ctx.Err() != nil && a.begun:
		return jobs.Result{Action: jobs.Discard, Err: phases.Errorf(phases.CauseInterrupted, "it was interrupted, and may have been done: %w", context.Cause(ctx))}
	case ctx.Err() != nil:
		return jobs.Result{Action: jobs.Requeue, Err: context.Cause(ctx)}
	case unwanted && a.Shared && a.Requeued < sharedOffers:
		return jobs.Result{Action: jobs.Requeue, Err: err}
	case unwanted, hopeless(code), a.begun && !failed(err):
		return jobs.Result{Action: jobs.Discard, Err: err}
	case code == phases.CauseQuarantined && w.runner.QuarantinedFor(a.Job.Plugin) > quarantineTime:
		return jobs.Result{Action: jobs.Discard, Err: err}
	case untried(code):
		return jobs.Result{Action: jobs.Requeue, Err: err}
	case a.Number < a.Job.Attempts:
		return jobs.Result{Action: jobs.Retry, Err: err}
	}
	return jobs.Result{Action: jobs.Discard, Err: err}
}

// failed reports whether the plugin itself has said that a call had no effect. After any other failure, and after a
// panic, the work may have been done.
func failed(err error) bool {
	e, ok := errors.AsType[*phases.Error](err)
	return ok && (e.Code == phases.CausePluginError && e.PluginCode != phases.PluginCodePanic || e.Code == phases.CauseOverloaded)
}

func hopeless(code phases.Cause) bool {
	return code == phases.CauseForbidden || code == phases.CauseCondition || code == phases.CauseOversizeRequest
}

// untried reports whether a plugin was not called, or was overloaded: that does not count as an attempt.
func untried(code phases.Cause) bool {
	switch code {
	case phases.CauseUnavailable, phases.CauseQuarantined, phases.CauseBreakerOpen, phases.CauseOverloaded, phases.CauseBudgetExhausted:
		return true
	}
	return false
}
