// Package callctx makes the contexts of calls of plugins: each has a deadline, all share one
// timer, and each knows the calls in whose course it was made.
//
// Stability: internal.
package callctx

import (
	"context"
	"sync"
	"time"
)

// Group is the calls that share a timer. The zero value is ready for use; all methods may
// be called concurrently.
//
// The timer is set to the earliest deadline and not stopped when a call ends before:
// setting a timer for each call may wake the thread that waits for the network, which
// costs more than the rest of the engine.
type Group[S any] struct {
	mu    sync.Mutex
	calls map[*Context[S]]struct{}
	timer *time.Timer
	// armed is when the timer fires; zero when it is not set.
	armed time.Time
}

// Link is one call of the chain that leads from the host to a plugin's handler; contexts
// made from the call's carry it.
type Link[S any] struct {
	context.Context //nolint:containedctx // the caller's, of which a Context is made

	// Site is what the maker says of the call.
	Site S
	// Parent is the call in whose course this one is made; nil for none.
	Parent *Link[S]
	// Depth is the number of parents.
	Depth int
}

type linkKey[S any] struct{}

// Of returns the innermost call that ctx carries; nil outside any call.
func Of[S any](ctx context.Context) *Link[S] {
	l, _ := ctx.Value(linkKey[S]{}).(*Link[S])
	return l
}

func (g *Group[S]) add(c *Context[S]) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.calls == nil {
		g.calls = map[*Context[S]]struct{}{}
	}
	g.calls[c] = struct{}{}
	g.arm(c.deadline)
}

func (g *Group[S]) remove(c *Context[S]) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.calls, c)
}

// arm sets the timer, unless it fires before; the caller holds the lock.
func (g *Group[S]) arm(at time.Time) {
	switch {
	case !g.armed.IsZero() && !at.Before(g.armed):
		return
	case g.timer == nil:
		g.timer = time.AfterFunc(time.Until(at), g.fire)
	default:
		g.timer.Reset(time.Until(at))
	}
	g.armed = at
}

func (g *Group[S]) fire() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.armed = time.Time{}
	now := time.Now()
	for c := range g.calls {
		if c.deadline.After(now) {
			g.arm(c.deadline)
			continue
		}
		delete(g.calls, c)
		c.end(context.DeadlineExceeded)
	}
}

// Stop stops the timer, once no more calls are made.
func (g *Group[S]) Stop() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.timer != nil {
		g.timer.Stop()
	}
}

// Context is the context of one call: the caller's, with the call's own deadline and link.
type Context[S any] struct {
	Link[S]

	deadline time.Time
	done     chan struct{}
	group    *Group[S]
	// release ends the watch of the caller's context.
	release func() bool

	mu  sync.Mutex
	err error
}

var _ context.Context = (*Context[struct{}])(nil)

// New returns the context of one call. The caller must call its Cancel.
func (g *Group[S]) New(ctx context.Context, site S, deadline time.Time) *Context[S] {
	c := &Context[S]{Link: Link[S]{Context: ctx, Site: site, Parent: Of[S](ctx)}, deadline: deadline, done: make(chan struct{}), group: g}
	if c.Parent != nil {
		c.Depth = c.Parent.Depth + 1
	}
	if err := ctx.Err(); err != nil {
		c.end(err)
		return c
	}
	if ctx.Done() != nil {
		c.release = context.AfterFunc(ctx, func() { c.end(ctx.Err()) })
	}
	g.add(c)
	return c
}

// Cancel ends the call.
func (c *Context[S]) Cancel() {
	c.group.remove(c)
	if c.release != nil {
		c.release()
	}
	c.end(context.Canceled)
}

func (c *Context[S]) end(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.err = err
		close(c.done)
	}
}

// Deadline implements context.Context.
func (c *Context[S]) Deadline() (time.Time, bool) { return c.deadline, true }

// Done implements context.Context.
func (c *Context[S]) Done() <-chan struct{} { return c.done }

// Err implements context.Context.
func (c *Context[S]) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Value implements context.Context.
func (c *Context[S]) Value(key any) any {
	if key == (linkKey[S]{}) {
		return &c.Link
	}
	return c.Context.Value(key)
}
