package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/grapnelhq/grapnel/phases"
)

// Job is one piece of background work: a hook that observes a phase, or a
// background_job that a plugin asked for. It is plain data, so that a durable
// queue can keep it.
type Job struct {
	// Kind is the job_kind of a background_job; empty for an observing hook.
	Kind string `json:"kind,omitempty"`
	// Plugin is whose work it is; Subscription the observing hook's, or the one
	// that asked for the job.
	Plugin       string         `json:"plugin"`
	Subscription string         `json:"subscription"`
	Phase        phases.Phase   `json:"phase,omitempty"`
	Context      phases.Context `json:"context"`
	// Payload is the phase's input, or the job's payload.
	Payload json.RawMessage `json:"payload,omitempty"`
	// Policies and Contexts are the turn's, for a hook that may see them or whose
	// condition asks for a policy; a background_job of a plugin that may see them
	// has the policies.
	Policies []phases.PolicyEntry  `json:"policies,omitempty"`
	Contexts []phases.ContextEntry `json:"contexts,omitempty"`
	// Trace is that of the run which queued it, for Options.BeginRun.
	Trace phases.Trace `json:"trace,omitzero"`
	// IdempotencyKey makes a second job of the same Key a no-op while the queue
	// remembers the first; empty means none.
	IdempotencyKey string    `json:"idempotency_key,omitempty"`
	NotBefore      time.Time `json:"not_before,omitzero"`
	// Attempts is how often it may fail before the engine gives it up; 0 means
	// once. The engine counts, not the queue.
	Attempts int `json:"attempts,omitempty"`
	// Backoff is the wait after the first failure, to be doubled with each further
	// one; 0 leaves it to the queue.
	Backoff time.Duration `json:"backoff,omitempty"`
	// Ticket is the engine's, for [Engine.Collect]; empty where nobody collects.
	Ticket string `json:"ticket,omitempty"`
}

// Key is what a queue compares to find duplicates: the idempotency key within
// its workspace, plugin and kind, so that no plugin can hold up another's work.
// It is empty if the job has none.
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

// ErrDuplicateJob is what Queue.Add returns, possibly wrapped, for a job whose
// Key it remembers. The job is dropped, which is no failure.
var ErrDuplicateJob = errors.New("a job of the same idempotency key was queued before")

// JobAction is what a queue has to do with a job after an attempt.
type JobAction string

// The actions. A queue treats a word that it does not know like JobRetry.
const (
	// JobDone: it is finished; forget it, but for its key.
	JobDone JobAction = "done"
	// JobRetry: it failed; try it again after a backoff, with the next number.
	JobRetry JobAction = "retry"
	// JobRequeue: it was not tried, or was interrupted and may be repeated; offer it
	// again later with the same number. How often does not matter.
	JobRequeue JobAction = "requeued"
	// JobDead: it is given up; keep it where an operator can look at it.
	JobDead JobAction = "dead"
)

// Verdict is the end of one attempt.
type Verdict struct {
	Action JobAction
	// Err is why, for the queue's records; nil with JobDone.
	Err error
}

// Attempt is one attempt at a job.
type Attempt struct {
	Job Job
	// Number counts from 1. Attempts whose process ended without a verdict should
	// count too, or a job that kills its host does so for ever.
	Number int
	// Requeued is how often the job was put off, by JobRequeue.
	Requeued int
	// Shared says that other engines take jobs of the same queue, now or later: what
	// this one has no use for may be one of theirs.
	Shared bool
	// Begin notes that the work begins now to have effects which must not come twice.
	// An attempt that has begun and ends without a verdict is not repeated: the job is
	// dead, with the cause "interrupted". When Begin fails, the work must not be done.
	// Nil is a queue that forgets its jobs with its process.
	Begin func(ctx context.Context) error
}

// begin calls Begin, if there is one.
func (a *Attempt) begin(ctx context.Context) error {
	if a.Begin == nil {
		return nil
	}
	return a.Begin(ctx)
}

// Queue keeps background work. A host may put a durable one in the place of the
// engine's own, which is in memory.
//
// No job is lost: one that Add has taken is offered to Serve's work until a
// verdict is JobDone or JobDead, also after the end of the process that took it,
// unless it had begun by then what must not be repeated ([Attempt]). While work
// runs, a job belongs to one process, by a lease that the queue renews; if a lease
// is lost, the queue ends the context of the work. A verdict that cannot be stored
// is an attempt without one.
//
// Implementations are safe for concurrent use. The engine calls Serve once.
type Queue interface {
	// Add takes a job and returns when it will not be lost any more. It fails with
	// CauseOverloaded when the queue is full, or holds too much of one plugin's
	// work, and with ErrDuplicateJob for a key that it remembers.
	Add(ctx context.Context, j Job) error
	// Serve calls work for each job when it is due, several at once, and does what
	// the verdict says. When ctx ends, Serve takes no more jobs and returns when the
	// work that had begun has returned.
	Serve(ctx context.Context, work func(ctx context.Context, a Attempt) Verdict) error
	// Idle waits until none of the jobs that this process has added or taken is
	// running or due, or ctx ends. Jobs that wait for their time or their next
	// attempt do not count, nor does the work of other processes.
	Idle(ctx context.Context) error
}
