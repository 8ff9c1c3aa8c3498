package wire

import (
	"context"
	"sync"
)

// call is one frame of the host's that is to be answered. The caller may leave
// before the answer comes; the call stays in the table until then, because the
// plugin still works on it.
type call struct {
	id        uint64
	ask, want body
	// ctx is the caller's: host calls from within the call inherit from it.
	ctx   context.Context //nolint:containedctx // the call's own, and gone with it
	freed func()
	frame outgoing
	// answer is set before answered is signalled. That has room for the one
	// signal, so that the reader never blocks.
	answer    answer
	answered  chan struct{}
	abandoned bool // guarded by the table
}

// answer is a frame, or why there is none.
type answer struct {
	in  incoming
	err error
}

// calls is the table of calls that are not answered yet.
type calls struct {
	mu      sync.Mutex
	last    uint64
	pending map[uint64]*call
	err     error     // set once the session has ended
	signals sync.Pool // of chan struct{}, empty
}

// begin makes a call with the next id.
func (t *calls) begin(ctx context.Context, ask, want body, freed func()) (*call, error) {
	signal, ok := t.signals.Get().(chan struct{})
	if !ok {
		signal = make(chan struct{}, 1)
	}
	c := &call{ask: ask, want: want, ctx: ctx, freed: freed, answered: signal}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err != nil {
		return nil, t.err
	}
	t.last++
	c.id = t.last
	if t.pending == nil {
		t.pending = map[uint64]*call{}
	}
	t.pending[c.id] = c
	return c, nil
}

// drop takes back a call that was never sent.
func (t *calls) drop(c *call) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.pending, c.id) // also of a table that has ended, which is nil
}

// abandon notes that the caller has left. It reports false when the answer is
// there: the caller should take it.
func (t *calls) abandon(c *call) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.pending[c.id] != c {
		return false
	}
	c.abandoned = true
	return true
}

// refuse removes the call whose frame the plugin did not understand: the one
// with this id and body, or any body if that is 0. A caller who has left only
// sent a Cancel that was not understood; the answer is still to come.
func (t *calls) refuse(id uint64, ask body) *call {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.pending[id]
	if c == nil || ask != c.ask && (ask != 0 || c.abandoned) {
		return nil
	}
	delete(t.pending, id)
	return c
}

// take removes the call that an answer belongs to. Without one it says why.
func (t *calls) take(id uint64) (*call, Dropped) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.pending[id]
	switch {
	case c != nil:
		delete(t.pending, id)
		return c, 0
	case id > 0 && id <= t.last:
		return nil, DroppedDouble
	default:
		return nil, DroppedUnknown
	}
}

// only returns the id of the one call that is pending, if there is just one.
func (t *calls) only() (uint64, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.pending) != 1 {
		return 0, false
	}
	for id := range t.pending {
		return id, true
	}
	return 0, false
}

// context returns the context of the call that a host call belongs to.
func (t *calls) context(id uint64) (context.Context, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.pending[id]
	if c == nil {
		return nil, false
	}
	return c.ctx, true
}

// end refuses further calls and returns the pending ones.
func (t *calls) end(err error) map[uint64]*call {
	t.mu.Lock()
	defer t.mu.Unlock()
	pending := t.pending
	t.pending, t.err = nil, err
	return pending
}

// deliver hands the call its answer, or gives it up for a caller who has left.
// The reader calls it, once a call.
func (c *call) deliver(a answer) {
	if c.abandoned {
		a.in.free()
		c.free()
		return
	}
	c.answer = a
	c.answered <- struct{}{}
}

// received ends a call whose signal was received.
func (t *calls) received(c *call) *answer {
	t.signals.Put(c.answered)
	c.free()
	return &c.answer
}

func (c *call) free() {
	if c.freed != nil {
		c.freed()
	}
}
