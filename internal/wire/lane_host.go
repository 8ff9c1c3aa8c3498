package wire

import (
	"bytes"
	"context"
	"errors"
	"os"
	"sync/atomic"
	"time"

	"github.com/grapnelhq/grapnel/internal/engine/callctx"
)

// keeperTick is how long nobody may have read before the keeper does.
const keeperTick = time.Millisecond

// hostLane is the host's end of a lane. A caller that waits for an answer reads by itself, for all callers, if nobody
// else does: its own answer then needs no other goroutine. Whoever has taken the token reads. When callers have not
// read for a moment, the keeper does.
type hostLane struct {
	*lane
	session *Session
	token   chan struct{}
	turns   atomic.Uint64 // how often the token was given back
	over    chan struct{} // closed by the last reader, who keeps the token
	// interrupt ends a read, or the next one.
	interrupt func()
}

// useLane sends all further frames on the lane, and reads there too.
func (s *Session) useLane(l *lane) {
	h := &hostLane{lane: l, session: s, token: make(chan struct{}, 1), over: make(chan struct{})}
	h.interrupt = func() { _ = l.reads.SetReadDeadline(time.Unix(1, 0)) }
	h.token <- struct{}{}
	s.lane.Store(h)
	s.writer.change(l, s.calls.crowded)
	s.tasks.Go(h.keep)
}

// keep reads while no caller does, until the session ends.
func (l *hostLane) keep() {
	timer := time.NewTimer(keeperTick)
	defer timer.Stop()
	for seen := uint64(0); ; timer.Reset(keeperTick) {
		select {
		case <-timer.C:
		case <-l.session.done:
			return
		}
		if turns := l.turns.Load(); turns != seen {
			seen = turns
			continue
		}
		select {
		case <-l.token:
			if err := l.take(); err != nil {
				l.end(err)
				return
			}
			l.pass()
			seen = l.turns.Load() // unless a caller has read since, it goes on after the next tick
		default: // a caller reads
		}
	}
}

// laneError ends a session whose lane broke.
type laneError struct{ error }

// Unwrap returns the reason.
func (e *laneError) Unwrap() error { return e.error }

func (l *hostLane) pass() {
	l.turns.Add(1)
	l.token <- struct{}{}
}

// end ends the session.
func (l *hostLane) end(err error) {
	l.session.cancel(&laneError{err})
	close(l.over)
}

// finish returns when all that the plugin had sent was read, and nobody reads any more.
func (l *hostLane) finish() {
	l.hangUp()
	select {
	case <-l.over:
	case <-l.token:
		for l.take() == nil {
		}
		close(l.over)
	}
}

// take reads a frame, and those that came with it, or none if it was interrupted.
func (l *hostLane) take() error {
	for {
		data, owned, err := l.next()
		if errors.Is(err, os.ErrDeadlineExceeded) { // perhaps it was meant for the reader before
			return l.reads.SetReadDeadline(time.Time{})
		}
		if err != nil {
			return err
		}
		if !owned {
			data = bytes.Clone(data)
		}
		if err := l.session.accept(&incoming{data: data, owned: true, line: l.lines != nil}); err != nil {
			return err
		}
		if !l.buffered() {
			return nil
		}
	}
}

// await waits for the answer to a call. It returns false if ctx ended before.
func (l *hostLane) await(ctx context.Context, c *call) bool {
	select {
	case <-l.token:
		return l.lead(ctx, c)
	default:
	}
	own, caller := callctx.Ends(ctx)
	select {
	case <-c.answered:
		return true
	case <-l.token:
		return l.lead(ctx, c)
	case <-own:
	case <-caller:
	}
	return false
}

// lead reads until the call is answered or ctx ends.
func (l *hostLane) lead(ctx context.Context, c *call) bool {
	answered, err := l.seek(ctx, c)
	if err != nil {
		l.end(err) // which answers all calls
		<-c.answered
		return true
	}
	l.pass()
	return answered
}

func (l *hostLane) seek(ctx context.Context, c *call) (bool, error) {
	watch := callctx.OnEnd(ctx, l.interrupt)
	defer watch.Stop()
	for {
		select { // perhaps somebody else has read it
		case <-c.answered:
			return true, nil
		default:
		}
		if ctx.Err() != nil {
			return false, nil
		}
		if err := l.take(); err != nil { //nolint:contextcheck // frames of others have contexts of their own
			return false, err
		}
	}
}
