package runtime

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"sync"

	"github.com/grapnelhq/grapnel/phases"
)

// background collects what becomes of the background work that calls queue.
type background struct {
	engine *Engine

	mu sync.Mutex
	// tickets are those of the rows, in their order.
	tickets []string
	rows    []phases.BackgroundRun
	// again are the tickets of those that have failed and are tried again.
	again map[string]bool
	// changed is closed and replaced when an attempt has ended.
	changed chan struct{}
}

// backgroundKey is where a context carries its collector.
type backgroundKey struct{}

// Collect returns a context with which calls of the engine (Dispatch, CompileTurn,
// Turn.End, …) have the background work noted that they queue, and what that queues
// itself. Wait is called once, in any case: it waits until all of it has ended, or its
// context has, and returns a row for each piece in the order in which it was queued;
// never nil. What waits for a later time, for a plugin that is down, or goes on in
// another program that shares the queue is not waited for: it is "queued". The error
// is that of the context or the queue.
func (e *Engine) Collect(ctx context.Context) (calling context.Context, wait func(ctx context.Context) ([]phases.BackgroundRun, error)) {
	b := &background{engine: e, again: map[string]bool{}, changed: make(chan struct{})}
	return context.WithValue(ctx, backgroundKey{}, b), b.ended
}

// ended waits and returns the rows.
func (b *background) ended(ctx context.Context) ([]phases.BackgroundRun, error) {
	err := b.wait(ctx)
	b.engine.collectors.forget(b)
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]phases.BackgroundRun{}, b.rows...), err
}

func (b *background) wait(ctx context.Context) error {
	for {
		b.mu.Lock()
		changed := b.changed
		b.mu.Unlock()
		if err := b.engine.queue.Idle(ctx); err != nil {
			return err
		}
		b.mu.Lock()
		again := len(b.again) > 0
		b.mu.Unlock()
		if !again {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-b.engine.life.Done():
			return ErrClosed
		}
	}
}

// note adds a row for a job.
func (b *background) note(j *Job) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tickets = append(b.tickets, j.Ticket)
	b.rows = append(b.rows, phases.BackgroundRun{
		Kind: j.Kind, Plugin: j.Plugin, Subscription: j.Subscription, Phase: j.Phase, State: phases.StateQueued,
		Contributions: []phases.Kind{}, Diagnostics: []phases.Diagnostic{},
	})
}

// drop takes back a row of what was not queued after all.
func (b *background) drop(ticket string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if i := slices.Index(b.tickets, ticket); i >= 0 {
		b.tickets, b.rows = slices.Delete(b.tickets, i, i+1), slices.Delete(b.rows, i, i+1)
	}
}

// settle fills in what an attempt has given; again says that another follows.
func (b *background) settle(ticket string, again bool, fill func(*phases.BackgroundRun)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if i := slices.Index(b.tickets, ticket); i >= 0 {
		fill(&b.rows[i])
	}
	delete(b.again, ticket)
	if again {
		b.again[ticket] = true
	}
	close(b.changed)
	b.changed = make(chan struct{})
}

// collectors finds them by the tickets of jobs, which a queue may have written down
// meanwhile.
type collectors struct {
	mu  sync.Mutex
	all map[string]*background
}

// register gives a job a ticket, if somebody collects; it returns who.
func (c *collectors) register(ctx context.Context, j *Job) *background {
	b, _ := ctx.Value(backgroundKey{}).(*background)
	if b == nil {
		return nil
	}
	j.Ticket = rand.Text()
	c.mu.Lock()
	if c.all == nil {
		c.all = map[string]*background{}
	}
	c.all[j.Ticket] = b
	c.mu.Unlock()
	b.note(j)
	return b
}

// of returns who collects what becomes of a job; nil for nobody.
func (c *collectors) of(j *Job) *background {
	if j.Ticket == "" {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.all[j.Ticket]
}

// forget takes all tickets of a collector away.
func (c *collectors) forget(b *background) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for ticket, whose := range c.all {
		if whose == b {
			delete(c.all, ticket)
		}
	}
}

// collected has an attempt noted where somebody collects.
func (w *attempting) collected(v Verdict) {
	b := w.engine.collectors.of(&w.Job)
	if b == nil {
		return
	}
	b.settle(w.Job.Ticket, v.Action == JobRetry, func(row *phases.BackgroundRun) {
		row.Attempts = w.Number
		switch {
		case v.Action == JobRetry || v.Action == JobRequeue:
			row.Code = string(phases.CodeOf(v.Err))
			return
		case w.run != nil:
			row.State, row.Code, row.PluginCode, row.DurationMS = w.run.State, w.run.Code, w.run.PluginCode, w.run.DurationMS
		case v.Err == nil:
			row.State = phases.StateSucceeded
		default:
			row.State = phases.StateFailed
		}
		if v.Err != nil && row.Code == "" {
			row.State, row.Code = phases.StateFailed, string(phases.CodeOf(v.Err))
		}
		row.Contributions = append(row.Contributions, w.kinds...)
		row.Diagnostics = append(row.Diagnostics, w.notes...)
		if failure, ok := errors.AsType[*phases.Error](v.Err); ok {
			row.Diagnostics = append(row.Diagnostics, phases.Diagnostic{
				Code: string(failure.Code), Severity: phases.SeverityWarning, Plugin: row.Plugin, Subscription: row.Subscription,
				Message: failure.Message, Detail: failure.Detail, SafeForUser: failure.SafeForUser, Visibility: failure.Visibility,
			})
		}
	})
}
