package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/grapnelhq/grapnel/internal/merge"
	"github.com/grapnelhq/grapnel/internal/plan"
	"github.com/grapnelhq/grapnel/phases"
)

// drainTime bounds the drain of background work where the caller of Close sets
// no deadline.
const drainTime = 2 * time.Second

// Job is one piece of background work: a hook that observes a phase, or a
// background_job that a plugin asked for. It is plain data, so that a durable
// queue can keep it.
type Job struct {
	// Kind is "hook", or the job_kind of a background_job.
	Kind string `json:"kind"`
	// Plugin is whose work it is; Subscription the observing hook's, or the one
	// that asked for the job.
	Plugin       string         `json:"plugin"`
	Subscription string         `json:"subscription"`
	Phase        phases.Phase   `json:"phase,omitempty"`
	Context      phases.Context `json:"context"`
	// Payload is the phase's input, or the job's payload.
	Payload json.RawMessage `json:"payload,omitempty"`
	// IdempotencyKey makes a second job of the same key a no-op while the queue
	// remembers the first; empty means none.
	IdempotencyKey string    `json:"idempotency_key,omitempty"`
	NotBefore      time.Time `json:"not_before,omitzero"`
	// Attempts is how often it may be tried; 0 means once.
	Attempts int           `json:"attempts,omitempty"`
	Backoff  time.Duration `json:"backoff,omitempty"`
}

// jobHook is the kind of jobs that are observing hooks.
const jobHook = "hook"

// Queue keeps background work. Implementations are safe for concurrent use.
type Queue interface {
	// Add takes a job. It fails with CauseOverloaded when the queue is full.
	Add(ctx context.Context, j Job) error
	// Serve calls work for each job when it is due, several at once, and again
	// after an error while the job has attempts left. It returns when ctx ends
	// and the work that had begun has returned.
	Serve(ctx context.Context, work func(ctx context.Context, j Job) error) error
	// Idle waits until nothing is running or due, or ctx ends. Jobs that wait for
	// their time or their next attempt do not count.
	Idle(ctx context.Context) error
}

// drainQueue lets begun and due work finish before the plugins are stopped.
func (e *Engine) drainQueue(ctx context.Context) error {
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, drainTime)
		defer cancel()
	}
	if err := e.queue.Idle(ctx); err != nil {
		return fmt.Errorf("background work was not finished in time: %w", err)
	}
	return nil
}

// enqueueHook queues the run of one observing hook.
func (e *Engine) enqueueHook(ctx context.Context, sub *plan.Subscription, rq request, in phases.Input) error {
	payload, err := json.Marshal(in)
	if err != nil {
		return fmt.Errorf("input of %s: %w", in.Phase(), err)
	}
	j := Job{Kind: jobHook, Plugin: sub.Plugin, Subscription: sub.ID, Phase: in.Phase(), Context: rq.context, Payload: payload}
	if rq.key != "" {
		j.IdempotencyKey = rq.key + "/" + sub.ID
	}
	if r := sub.Retry; r != nil {
		j.Attempts, j.Backoff = r.Attempts, r.Backoff.D()
	}
	return e.queue.Add(ctx, j)
}

// addJobs queues the background_job contributions of a phase.
func (e *Engine) addJobs(ctx context.Context, c phases.Context, merged *merge.Result) {
	for _, owned := range merged.Jobs {
		job := owned.Value
		j := Job{
			Kind: job.JobKind, Plugin: owned.Hook.Plugin, Subscription: owned.Hook.Subscription, Context: c, Payload: job.Payload,
			IdempotencyKey: job.IdempotencyKey, NotBefore: job.NotBefore, Attempts: jobAttempts, Backoff: time.Second,
		}
		if err := e.queue.Add(ctx, j); err != nil {
			e.jobEvent(j, "refused", err)
		}
	}
}

// jobAttempts is how often a background_job is tried.
const jobAttempts = 5

// jobEvent tells what became of a job.
func (e *Engine) jobEvent(j Job, state string, err error) {
	ev := Event{Kind: EventJob, Plugin: j.Plugin, Subscription: j.Subscription, Phase: j.Phase, State: state}
	if err != nil {
		ev.Code, ev.Detail = string(phases.CodeOf(err)), err.Error()
		e.opts.Logger.Warn("background job", "kind", j.Kind, "subscription", j.Subscription, "state", state, "error", err)
	}
	e.emit(ev)
}

// work does one job.
func (e *Engine) work(ctx context.Context, j Job) error {
	g := e.inForce() // also while the engine is being closed: that waits for it
	defer g.leave()
	if j.Kind == jobHook {
		return e.workHook(ctx, g, j)
	}
	if handler, ok := e.opts.Jobs[j.Kind]; ok {
		return handler(ctx, j)
	}
	_, err := e.callTool(ctx, g, j.Plugin, phases.ToolCall{Tool: j.Kind, Arguments: j.Payload, Context: j.Context, IdempotencyKey: j.IdempotencyKey})
	return err
}

// workHook runs an observing hook by the same steps as any other hook.
func (e *Engine) workHook(ctx context.Context, g *generation, j Job) error {
	in, err := phases.DecodeInput(e.table, j.Phase, j.Payload)
	if err != nil {
		return err
	}
	rq := request{context: j.Context, input: in, scope: &scope{}, key: strings.TrimSuffix(j.IdempotencyKey, "/"+j.Subscription)}
	d := e.prepare(ctx, g, rq)
	d.deadline = d.start.Add(queuedTime)
	for i := range d.calls {
		c := &d.calls[i]
		if c.sub.ID != j.Subscription {
			continue
		}
		// One attempt: the queue makes the others.
		if res, failure := d.attempt(ctx, c, 1, d.deadline); failure == nil {
			d.admit(c, res)
		} else {
			c.fail(failure)
		}
		merged := merge.Merge(d.phase.Row, []merge.Reply{{Hook: &c.hook.merge, Entries: c.entries, Dropped: c.dropped}}, d.sets, merge.Limits{})
		e.addJobs(ctx, j.Context, &merged)
		e.tellAudits(j.Phase, &merged)
		e.emit(Event{Kind: EventRun, Plugin: c.sub.Plugin, Subscription: c.sub.ID, Phase: j.Phase, State: string(c.run.State), Code: c.run.Code, Run: &c.run})
		if c.failure != nil {
			return c.failure
		}
		return nil
	}
	return errors.New("the subscription is not in force any more")
}

// queuedTime bounds one run of a queued hook from above; its own timeout is
// usually less.
const queuedTime = 10 * time.Minute
