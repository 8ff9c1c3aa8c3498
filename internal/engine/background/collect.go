package background

import (
	"context"
	"crypto/rand"
	"errors"
	"maps"
	"slices"
	"sync"

	"github.com/grapnelhq/grapnel/internal/engine/jobs"
	"github.com/grapnelhq/grapnel/phases"
)

// collector collects the results of the jobs that some calls queue.
type collector struct {
	work *Work

	mu       sync.Mutex
	tickets  []string // of the rows
	rows     []phases.BackgroundRun
	retrying map[string]bool // the tickets of jobs that have failed and will be retried
	changed  chan struct{}   // closed and replaced when an attempt has ended
}

type collectorKey struct{}

// Collect returns a context for calls whose background work is collected, with what that queues itself. Wait must be
// called once: it waits until all of it, ctx or Serve has ended, and returns a row for each job in queueing order,
// never nil. Jobs that wait for a later time or a plugin, or go on in another process, are "queued". The error is the
// context's or the queue's.
func (w *Work) Collect(ctx context.Context) (calling context.Context, wait func(context.Context) ([]phases.BackgroundRun, error)) {
	c := &collector{work: w, retrying: map[string]bool{}, changed: make(chan struct{})}
	return context.WithValue(ctx, collectorKey{}, c), func(ctx context.Context) ([]phases.BackgroundRun, error) {
		err := c.wait(ctx)
		w.forget(c)
		c.mu.Lock()
		defer c.mu.Unlock()
		return append([]phases.BackgroundRun{}, c.rows...), err
	}
}

func (c *collector) wait(ctx context.Context) error {
	for {
		c.mu.Lock()
		changed := c.changed
		c.mu.Unlock()
		if err := c.work.queue.Idle(ctx); err != nil {
			return err
		}
		c.mu.Lock()
		retrying := len(c.retrying) > 0
		c.mu.Unlock()
		if !retrying {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-c.work.ended:
			return c.work.endedBy
		}
	}
}

// register gives a job a ticket and a row if ctx has a collector, which it returns.
func (w *Work) register(ctx context.Context, j *jobs.Job) *collector {
	c, _ := ctx.Value(collectorKey{}).(*collector)
	if c == nil {
		return nil
	}
	j.Ticket = rand.Text()
	w.mu.Lock()
	w.collectors[j.Ticket] = c
	w.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tickets = append(c.tickets, j.Ticket)
	c.rows = append(c.rows, phases.BackgroundRun{
		Kind: j.Kind, Plugin: j.Plugin, Subscription: j.Subscription, Phase: j.Phase, State: phases.StateQueued,
		Contributions: []phases.Kind{}, Diagnostics: []phases.Diagnostic{},
	})
	return c
}

// collectorOf finds the collector of a job by its ticket; nil if there is none.
func (w *Work) collectorOf(j *jobs.Job) *collector {
	if j.Ticket == "" {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.collectors[j.Ticket]
}

func (w *Work) forget(c *collector) {
	w.mu.Lock()
	defer w.mu.Unlock()
	maps.DeleteFunc(w.collectors, func(_ string, of *collector) bool { return of == c })
}

func (c *collector) drop(ticket string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := slices.Index(c.tickets, ticket); i >= 0 {
		c.tickets, c.rows = slices.Delete(c.tickets, i, i+1), slices.Delete(c.rows, i, i+1)
	}
}

func (c *collector) collect(a *Attempt, r jobs.Result) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := slices.Index(c.tickets, a.Job.Ticket); i >= 0 {
		fill(&c.rows[i], a, r)
	}
	delete(c.retrying, a.Job.Ticket)
	if r.Action == jobs.Retry {
		c.retrying[a.Job.Ticket] = true
	}
	close(c.changed)
	c.changed = make(chan struct{})
}

func fill(row *phases.BackgroundRun, a *Attempt, r jobs.Result) {
	row.Attempts = a.Number
	switch {
	case r.Action == jobs.Retry || r.Action == jobs.Requeue:
		row.Code = string(phases.CodeOf(r.Err))
		return
	case a.Run != nil:
		row.State, row.Code, row.PluginCode, row.DurationMS = a.Run.State, a.Run.Code, a.Run.PluginCode, a.Run.DurationMS
	case r.Err == nil:
		row.State = phases.StateSucceeded
	default:
		row.State = phases.StateFailed
	}
	if r.Err != nil && row.Code == "" {
		row.State, row.Code = phases.StateFailed, string(phases.CodeOf(r.Err))
	}
	row.Contributions = append(row.Contributions, a.Kinds...)
	row.Diagnostics = append(row.Diagnostics, a.Notes...)
	if failure, ok := errors.AsType[*phases.Error](r.Err); ok {
		row.Diagnostics = append(row.Diagnostics, phases.Diagnostic{
			Code: string(failure.Code), Severity: phases.SeverityWarning, Plugin: row.Plugin, Subscription: row.Subscription,
			Message: failure.Message, Detail: failure.Detail, SafeForUser: failure.SafeForUser, Visibility: failure.Visibility,
		})
	}
}
