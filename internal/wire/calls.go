package wire

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/grapnelhq/grapnel/internal/engine/callctx"
	"github.com/grapnelhq/grapnel/phases"
)

// call is a frame of the host that expects an answer. An abandoned call stays in the table until its answer comes,
// because the plugin still works on it.
type call struct {
	id        uint64
	ask, want body
	// ctx is the caller's: host calls from within the call inherit from it.
	ctx      context.Context //nolint:containedctx // the call's own, and gone with it
	freed    func()
	frame    outgoing
	answer   answer
	answered chan struct{} // takes one value, when answer is set; buffered, so that the reader never blocks

	// Guarded by the table. lent says that ctx was given to a host call; misaddressed that an answer came for another
	// incarnation.
	abandoned, lent bool
	misaddressed    *uint64
}

// answer is a frame, or the error instead of one.
type answer struct {
	in  incoming
	at  time.Time // of its arrival
	err error
}

// calls is the table of unanswered calls.
type calls struct {
	mu      sync.Mutex
	last    uint64
	pending map[uint64]*call
	open    atomic.Int64 // len(pending)
	err     error        // set once the session has ended
}

// crowd is from how many calls on others are likely to be about to send.
const crowd = 3

func (t *calls) crowded() bool { return t.open.Load() >= crowd }

func (t *calls) remove(id uint64) {
	delete(t.pending, id) // also of a table that has ended, which is nil
	t.open.Store(int64(len(t.pending)))
}

// begin adds a call, which has its ask, want and freed.
func (t *calls) begin(ctx context.Context, c *call) error {
	c.ctx = ctx
	if c.answered == nil {
		c.answered = make(chan struct{}, 1)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err != nil {
		return t.err
	}
	t.last++
	c.id = t.last
	if t.pending == nil {
		t.pending = map[uint64]*call{}
	}
	t.pending[c.id] = c
	t.open.Store(int64(len(t.pending)))
	return nil
}

// drop removes a call that was not sent. It returns false if an answer is there all the same, or the session's end.
func (t *calls) drop(c *call) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.pending[c.id] != c {
		return false
	}
	t.remove(c.id)
	return true
}

// abandon marks the call as abandoned. It returns false if the answer is there already.
func (t *calls) abandon(c *call) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.pending[c.id] != c {
		return false
	}
	c.abandoned = true
	return true
}

// misaddressed notes that the plugin has answered a call with the wrong incarnation.
func (t *calls) misaddressed(id, incarnation uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c := t.pending[id]; c != nil {
		c.misaddressed = &incarnation
	}
}

// refuse removes the call with this id and body (0: any) whose frame the plugin did not understand. For an abandoned
// call it was the Cancel that was not understood: the answer is still to come.
func (t *calls) refuse(id uint64, ask body) *call {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.pending[id]
	if c == nil || ask != c.ask && (ask != 0 || c.abandoned) {
		return nil
	}
	t.remove(id)
	return c
}

// take removes the call that an answer belongs to, or says why there is none.
func (t *calls) take(id uint64) (*call, Dropped) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.pending[id]
	switch {
	case c != nil:
		t.remove(id)
		return c, ""
	case id > 0 && id <= t.last:
		return nil, DroppedDouble
	default:
		return nil, DroppedUnknown
	}
}

// only returns the id of the only pending call.
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
	c.lent = true
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

// deliver hands the call its answer, or drops the answer to an abandoned call. The reader calls it once for each call.
func (c *call) deliver(a answer) {
	c.freed() // the caller may look only later
	if c.abandoned {
		a.in.free()
		return
	}
	a.at = time.Now()
	c.answer = a
	c.answered <- struct{}{}
}

// request is one call: a frame of the body ask that holds m, to be answered by one of the body want.
type request[A, B any] struct {
	call
	m           *A
	fields      func(*form, *A)
	reply       *B
	replyFields func(*form, *B)
	urgent      bool
	stats       Stats
}

// exchange sends a request and waits for its reply, which is decoded here, in the caller's goroutine.
func exchange[A, B any](ctx context.Context, s *Session, r *request[A, B]) error {
	if err := begin(ctx, s, r); err != nil {
		return err
	}
	return conclude(ctx, s, r)
}

// begin sends a request.
func begin[A, B any](ctx context.Context, s *Session, r *request[A, B]) error {
	if r.freed == nil {
		r.freed = func() {}
	}
	if ctx.Err() != nil {
		r.freed()
		return errAbandoned(ctx, s.who())
	}
	err := s.calls.begin(ctx, &r.call)
	if err != nil {
		r.freed()
		return err
	}
	if r.frame.data, err = encodeFrame(ctx, s.writer, r.id, r.ask, r.m, r.fields); err == nil {
		r.stats.BytesIn = r.frame.size()
		err = s.post(&r.frame, r.urgent)
	} else if _, coded := errors.AsType[*phases.Error](err); !coded {
		err = phases.Errorf(phases.CauseInternal, "%w", err)
	}
	if err != nil && s.calls.drop(&r.call) {
		r.freed()
	}
	return err
}

// conclude waits for the reply to a request.
func conclude[A, B any](ctx context.Context, s *Session, r *request[A, B]) error {
	a, err := s.await(ctx, &r.call)
	if a != nil {
		r.stats.BytesOut, r.stats.Arrived, r.stats.Lent = a.in.size, a.at, r.lent
	}
	if err != nil {
		return err
	}
	if err := decode(&s.writer.frames, &a.in, ruleClean, r.reply, r.replyFields); err != nil {
		return s.invalid(err)
	}
	return nil
}

// post gives a frame to the writer, without waiting for room. On an error it will not be sent.
func (s *Session) post(o *outgoing, urgent bool) error {
	var err error
	if urgent {
		err = s.writer.hurry(o, false)
	} else {
		err = s.writer.post(o)
	}
	if err != nil {
		s.writer.frames.recycle(o.data)
	}
	return err
}

func (s *Session) await(ctx context.Context, c *call) (*answer, error) {
	if s.answered(ctx, c) {
		return &c.answer, c.answer.err
	}
	if s.writer.withdraw(&c.frame) {
		if s.calls.drop(c) {
			c.freed()
		}
		return nil, errAbandoned(ctx, s.who())
	}
	if !s.calls.abandon(c) {
		<-c.answered // it came at the same moment
		return &c.answer, c.answer.err
	}
	if c.ask == hostDispatch || c.ask == hostCallTool {
		// Notify the plugin, outside of the caller's context, which has just ended. On an error the session has, too.
		if data, err := encodeFrame(s.ctx, s.writer, c.id, hostCancel, &none{}, noFields); err == nil { //nolint:contextcheck // see above
			_ = s.writer.hurry(&outgoing{data: data}, false)
		}
	}
	return nil, s.unanswered(ctx, c)
}

// unanswered is the error of a call that was sent and abandoned. A plugin that has answered under a wrong incarnation does
// not need more time.
func (s *Session) unanswered(ctx context.Context, c *call) error {
	s.calls.mu.Lock()
	wrong := c.misaddressed
	s.calls.mu.Unlock()
	if wrong == nil {
		return errAbandoned(ctx, s.who())
	}
	return s.invalid(fmt.Errorf("%w: %d, where its frame has %d; it was dropped, and no other one came", ErrMisaddressed, *wrong, s.o.Incarnation))
}

// ErrMisaddressed is in the error of a call whose only answer in time was for another incarnation.
var ErrMisaddressed = errors.New("has a wrong incarnation")

// answered waits for the answer to a call. It returns false if ctx ended before.
func (s *Session) answered(ctx context.Context, c *call) bool {
	if l := s.lane.Load(); l != nil {
		return l.await(ctx, c)
	}
	own, caller := callctx.Ends(ctx)
	select {
	case <-c.answered:
		return true
	case <-own:
	case <-caller:
	}
	return false
}

func (s *Session) invalid(err error) error {
	return phases.Errorf(phases.CauseInvalidReply, "the answer of %s %w", s.who(), err)
}
