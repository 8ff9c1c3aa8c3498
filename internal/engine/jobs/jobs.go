// Package jobs is the vocabulary of background work: a [Job], an [Attempt] at it, its [Result], and the [Queue] that
// keeps jobs. The engine (package runtime) has a queue in memory; that of a store (store.Store.Queue) outlives the
// process. A host that writes its own implements [Queue] and passes it as runtime.Options.Queue.
package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/grapnelhq/grapnel/phases"
)

// Job is one piece of background work, as plain data: a hook that observes a phase, or a background_job of a plugin.
type Job struct {
	// Kind is the job_kind of a background_job; empty for an observing hook.
	Kind string `json:"kind,omitempty"`
	// Plugin does the work. Subscription is the observing hook, or the one that added the job.
	Plugin       string         `json:"plugin"`
	Subscription string         `json:"subscription"`
	Phase        phases.Phase   `json:"phase,omitempty"`
	Context      phases.Context `json:"context"`
	// Payload is the phase's input, or the job's payload.
	Payload json.RawMessage `json:"payload,omitempty"`
	// Policies and Contexts are the turn's, if the hook may see them or its condition reads a policy. A
	// background_job of a plugin that may see policies has them too.
	Policies []phases.PolicyEntry  `json:"policies,omitempty"`
	Contexts []phases.ContextEntry `json:"contexts,omitempty"`
	// Trace is the trace of the run that queued it, for runtime.Options.BeginRun.
	Trace phases.Trace `json:"trace,omitzero"`
	// IdempotencyKey makes a second job of the same Key a no-op while the queue remembers the first; may be empty.
	IdempotencyKey string    `json:"idempotency_key,omitempty"`
	NotBefore      time.Time `json:"not_before,omitzero"`
	// Attempts is how often it may fail before the engine, which counts, discards it; 0 means once.
	Attempts int `json:"attempts,omitempty"`
	// Backoff is the wait after the first failure, doubled with each further one; 0 is the queue's default.
	Backoff time.Duration `json:"backoff,omitempty"`
	// Ticket belongs to the engine's Collect; empty if nobody collects.
	Ticket string `json:"ticket,omitempty"`
}

// Key is what a queue compares to find duplicates: the idempotency key within its workspace, plugin and kind; empty
// for a job without one.
func (j *Job) Key() string {
	if j.IdempotencyKey == "" {
		return ""
	}
	key, err := json.Marshal([]string{j.Context.WorkspaceID, j.Plugin, j.Kind, j.IdempotencyKey})
	if err != nil {
		return "" // a list of strings is always valid JSON
	}
	return string(key)
}

// Bounds of the waits between attempts.
const (
	minRetryWait     = 10 * time.Millisecond
	maxRetryWait     = time.Minute
	firstRequeueWait = 100 * time.Millisecond
	maxRequeueWait   = 10 * time.Second
)

// RetryWait is how long a queue waits after so many failures of the job: Backoff, doubled with each further failure,
// up to a minute, half of it random. Random gives numbers in [0, 1).
func (j *Job) RetryWait(failures int, random func() float64) time.Duration {
	return backoff(max(j.Backoff, minRetryWait), failures, maxRetryWait, random)
}

// RequeueWait is how long a queue waits before it offers a job that was requeued so many times: 100 ms, doubled each
// time, up to 10 s, half of it random.
func RequeueWait(times int, random func() float64) time.Duration {
	return backoff(firstRequeueWait, times, maxRequeueWait, random)
}

// backoff doubles first with each time after the first, up to most; its upper half is jitter.
func backoff(first time.Duration, times int, most time.Duration, random func() float64) time.Duration {
	d := min(first, most)
	for range times - 1 {
		if d = min(2*d, most); d == most {
			break
		}
	}
	return d/2 + time.Duration(random()*float64(d/2))
}

// ErrDuplicate is returned by Queue.Add, possibly wrapped, for a job whose Key the queue remembers. The job is
// dropped.
var ErrDuplicate = errors.New("a job of the same idempotency key was queued before")

// Action is what a queue does with a job after an attempt.
type Action string

// The actions. A queue treats an unknown one as Retry.
const (
	// Done removes the job; only its key is remembered.
	Done Action = "done"
	// Retry offers it again after a backoff, with the next number: it failed.
	Retry Action = "retry"
	// Requeue offers it again later with the same number, however often: it was not tried, or may be done twice.
	Requeue Action = "requeued"
	// Discard gives it up and keeps it among the dead jobs for an operator.
	Discard Action = "discarded"
)

// Result is the end of one attempt.
type Result struct {
	Action Action
	// Err is the reason, for the queue's records; nil with Done.
	Err error
}

// Attempt is one attempt at a job.
type Attempt struct {
	Job Job
	// Number counts from 1. Attempts whose process ended without a result should count too, or a job that kills its
	// host does so for ever.
	Number int
	// Requeued is how often the job was requeued.
	Requeued int
	// Shared says that other engines take jobs from the same queue: a job that this engine cannot do may be meant for
	// one of them.
	Shared bool
	// Begin records that the work is about to have effects which must not happen twice; if it fails, the work must
	// not be done. An attempt that has begun and ends without a result is not retried: the job is dead, with the
	// cause "interrupted". Nil for a queue that ends with its process.
	Begin func(ctx context.Context) error
}

// Queue stores background work.
//
// No job is lost: one that Add has taken is offered to Serve's work until a result is Done or Discard, also after the
// end of the process, unless it had begun work that must not be done twice ([Attempt]). While work runs, its process
// has a lease on the job, which the queue renews; if that is lost, the queue cancels the context of the work. An
// attempt whose result cannot be stored has none.
//
// Implementations are safe for concurrent use. The engine calls Serve once.
type Queue interface {
	// Add takes a job and returns once it cannot be lost. It fails with CauseOverloaded if the queue is full, or
	// holds too many jobs of one plugin, and with ErrDuplicate for a key that it remembers.
	Add(ctx context.Context, j Job) error
	// Serve calls work for each due job, several at once, and does what the result says. When ctx ends, it takes no
	// more jobs and returns once running work has returned.
	Serve(ctx context.Context, work func(ctx context.Context, a Attempt) Result) error
	// Idle waits until no job that this process has added or taken is running or due, or ctx ends. Jobs that wait for
	// their time or next attempt do not count.
	Idle(ctx context.Context) error
}

// Counts is how many jobs a queue holds in each state.
type Counts struct {
	// Waiting jobs are due, Scheduled ones wait for their time or next attempt. The queue's bounds apply to their
	// sum.
	Waiting   int `json:"waiting"`
	Scheduled int `json:"scheduled"`
	Running   int `json:"running"`
	// Dead were discarded, and wait for an operator.
	Dead int `json:"dead"`
	// OldestSeconds is how long the oldest waiting job has been due.
	OldestSeconds float64 `json:"oldest_seconds"`
}

// Counter is an optional interface of a [Queue] that can count what it holds.
type Counter interface {
	Counts(ctx context.Context) (Counts, error)
}
