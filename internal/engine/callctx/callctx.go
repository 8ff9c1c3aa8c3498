// Package callctx makes the contexts of calls of plugins: each has a deadline, all share one timer, and each knows
// the calls in whose course it was made.
//
// Stability: internal.
package callctx

import (
	"context"
	"sync"
	"time"
)

// Group is the calls that share a timer. The zero value is ready for use; all methods may be called concurrently.
//
// The timer is set to the earliest deadline and not stopped when a call ends before: setting a timer for each call
// may wake the thread that waits for the network, which costs more than the rest of the engine.
type Group[S any] struct {
	mu    sync.Mutex
	calls map[*Context[S]]struct{}
	timer *time.Timer
	// armed is when the timer fires; zero when it is not set.
	armed time.Time
}

// Link is one call of the chain that leads from the host to a plugin's handler; contexts made from the call's carry
// it.
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

// remove returns false if the timer has found the call due, and is about to end it.
func (g *Group[S]) remove(c *Context[S]) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	_, known := g.calls[c]
	delete(g.calls, c)
	return known
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
	for _, c := range g.due(time.Now()) {
		c.end(context.DeadlineExceeded)
	}
}

func (g *Group[S]) due(now time.Time) []*Context[S] {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.armed = time.Time{}
	var due []*Context[S]
	for c := range g.calls {
		if c.deadline.After(now) {
			g.arm(c.deadline)
			continue
		}
		delete(g.calls, c)
		due = append(due, c)
	}
	return due
}

// Stop stops the timer, once no more calls are made.
func (g *Group[S]) Stop() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.timer != nil {
		g.timer.Stop()
	}
}

// Context is the context of one call: the caller's, with the call's own deadline and link. It costs next to nothing
// until its end is waited for: by Done, Ends or OnEnd.
type Context[S any] struct {
	Link[S]

	deadline time.Time // zero for none
	group    *Group[S]

	mu  sync.Mutex
	err error
	// done and onEnd are what waits for the end.
	done  chan struct{}
	onEnd func()
	// timed says that the group knows the call; release ends the watch of the caller's context.
	timed   bool
	release func() bool
}

var _ context.Context = (*Context[struct{}])(nil)

// New returns the context of one call; a zero deadline is the caller's. The caller must call its Cancel.
func (g *Group[S]) New(ctx context.Context, site S, deadline time.Time) *Context[S] {
	c := &Context[S]{}
	c.Site = site
	g.Begin(ctx, c, deadline)
	return c
}

// Begin is New for a context that is part of another value, and has its Site.
func (g *Group[S]) Begin(ctx context.Context, c *Context[S], deadline time.Time) {
	c.Context, c.Parent, c.deadline, c.group = ctx, Of[S](ctx), deadline, g
	if c.Parent != nil {
		c.Depth = c.Parent.Depth + 1
	}
}

// Cancel ends the call. It returns true if nothing else was about to: the Context may then begin again, unless
// somebody else was given it.
func (c *Context[S]) Cancel() bool { return c.end(context.Canceled) }

func (c *Context[S]) end(err error) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return false
	}
	c.err = err
	if c.done != nil {
		close(c.done)
	}
	if c.onEnd != nil {
		c.onEnd()
		c.onEnd = nil
	}
	return c.forget()
}

// forget ends the watches, and returns false if one of them is about to end c, which is locked.
func (c *Context[S]) forget() bool {
	mine := !c.timed || c.group.remove(c)
	return (c.release == nil || c.release()) && mine
}

// watch lets the group's timer, and the caller's end unless ownOnly, end the call; c is locked.
func (c *Context[S]) watch(ownOnly bool) {
	if !c.timed && !c.deadline.IsZero() {
		c.timed = true
		c.group.add(c)
	}
	if !ownOnly && c.release == nil && c.Context.Done() != nil {
		c.release = context.AfterFunc(c.Context, func() { c.end(c.Context.Err()) })
	}
}

// Deadline implements context.Context.
func (c *Context[S]) Deadline() (time.Time, bool) {
	if c.deadline.IsZero() {
		return c.Context.Deadline()
	}
	return c.deadline, true
}

// Done implements context.Context.
func (c *Context[S]) Done() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	done := c.channel()
	if c.err == nil {
		c.watch(false)
	}
	return done
}

// Ends is Done in two: own is closed when the call ends by itself, caller when its caller's context does. Waiting for
// both costs less than waiting for Done.
func (c *Context[S]) Ends() (own, caller <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	own = c.channel()
	if c.err == nil {
		c.watch(true)
	}
	return own, c.Context.Done()
}

func (c *Context[S]) channel() chan struct{} {
	if c.done == nil {
		c.done = make(chan struct{})
		if c.err != nil {
			close(c.done)
		}
	}
	return c.done
}

// OnEnd makes f be called when the call ends, at once if it has; nil takes that back. f must not use c.
func (c *Context[S]) OnEnd(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.onEnd = nil
	switch {
	case f == nil:
	case c.err != nil:
		f()
	default:
		c.onEnd = f
		c.watch(false)
	}
}

// Err implements context.Context.
func (c *Context[S]) Err() error {
	c.mu.Lock()
	err := c.err
	c.mu.Unlock()
	if err != nil {
		return err
	}
	if err = c.Context.Err(); err == nil && !c.deadline.IsZero() && !time.Now().Before(c.deadline) {
		err = context.DeadlineExceeded
	}
	if err == nil {
		return nil
	}
	c.end(err)
	return c.Err()
}

// Value implements context.Context.
func (c *Context[S]) Value(key any) any {
	if key == (linkKey[S]{}) {
		return &c.Link
	}
	return c.Context.Value(key)
}

// ender is a *Context of any kind.
type ender interface {
	Ends() (own, caller <-chan struct{})
	OnEnd(f func())
}

// Ends is the Ends of a context that is one of ours; of any other, caller is its Done.
func Ends(ctx context.Context) (own, caller <-chan struct{}) {
	if e, ok := ctx.(ender); ok {
		return e.Ends()
	}
	return nil, ctx.Done()
}

// Watch is a function that waits for a context's end.
type Watch struct {
	ours   ender
	cancel func() bool // of another context
}

// OnEnd makes f be called when any context ends, until Stop.
func OnEnd(ctx context.Context, f func()) Watch {
	if e, ok := ctx.(ender); ok {
		e.OnEnd(f)
		return Watch{ours: e}
	}
	return Watch{cancel: context.AfterFunc(ctx, f)}
}

// Stop ends the watch. f may run still if the context is not one of ours.
func (w Watch) Stop() {
	if w.ours != nil {
		w.ours.OnEnd(nil)
	} else {
		w.cancel()
	}
}
