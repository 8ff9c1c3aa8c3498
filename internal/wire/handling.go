package wire

import (
	"context"
	"sync"
	"time"
)

// handling is one call that a plugin works on, and the context of its handler.
// It is a context of its own because a call needs little of one: most handlers
// never ask for Done, and then neither a timer nor a channel is made.
type handling struct {
	context.Context //nolint:containedctx // the session's, for values: this is a context itself

	session *served
	in      incoming

	mu       sync.Mutex
	deadline time.Time
	done     chan struct{} // made when asked for
	timer    *time.Timer
	err      error
	after    map[*func()]struct{}
}

var _ context.Context = (*handling)(nil)

// handlingKey is the key under which a handler's context holds its handling.
type handlingKey struct{}

// handlingOf returns the call that a handler's context belongs to.
func handlingOf(ctx context.Context) *handling {
	h, _ := ctx.Value(handlingKey{}).(*handling)
	return h
}

// Value implements context.Context.
func (h *handling) Value(key any) any {
	if key == (handlingKey{}) {
		return h
	}
	return h.Context.Value(key)
}

// Deadline implements context.Context.
func (h *handling) Deadline() (time.Time, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.deadline, !h.deadline.IsZero()
}

// Done implements context.Context.
func (h *handling) Done() <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.done == nil {
		h.done = make(chan struct{})
		if h.err != nil {
			close(h.done)
		}
		h.arm()
	}
	return h.done
}

// Err implements context.Context.
func (h *handling) Err() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.err == nil && !h.deadline.IsZero() && !time.Now().Before(h.deadline) {
		h.end(context.DeadlineExceeded)
	}
	return h.err
}

// AfterFunc lets package context derive contexts without a goroutine each.
func (h *handling) AfterFunc(f func()) (stop func() bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.err != nil {
		go f()
		return func() bool { return false }
	}
	if h.after == nil {
		h.after = map[*func()]struct{}{}
	}
	h.after[&f] = struct{}{}
	h.arm()
	return func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		_, waiting := h.after[&f]
		delete(h.after, &f)
		return waiting
	}
}

// until sets the deadline.
func (h *handling) until(deadline time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.deadline = deadline
}

// arm starts the timer, now that somebody waits for the deadline.
func (h *handling) arm() {
	if h.err == nil && h.timer == nil && !h.deadline.IsZero() {
		h.timer = time.AfterFunc(time.Until(h.deadline), func() { h.cancel(context.DeadlineExceeded) })
	}
}

// cancel ends the context; the first reason stays.
func (h *handling) cancel(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.end(err)
}

func (h *handling) end(err error) {
	if h.err != nil {
		return
	}
	h.err = err
	if h.timer != nil {
		h.timer.Stop()
	}
	if h.done != nil {
		close(h.done)
	}
	for f := range h.after {
		go (*f)()
	}
	h.after = nil
}
