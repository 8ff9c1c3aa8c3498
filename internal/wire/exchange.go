package wire

import (
	"context"
	"time"

	"github.com/grapnelhq/grapnel/phases"
)

// request is one call: a frame of the body ask that holds m, to be answered by
// one of the body want.
type request[A, B any] struct {
	ask         body
	m           *A
	fields      func(*form, *A)
	want        body
	reply       *B
	replyFields func(*form, *B)
	freed       func()
	urgent      bool
	stats       Stats
}

// exchange sends a request and waits for its reply. The reply is decoded here,
// in the caller's goroutine.
func exchange[A, B any](ctx context.Context, s *Session, r *request[A, B]) error {
	if ctx.Err() != nil {
		unsent(r.freed)
		return left(ctx, s.who())
	}
	c, err := s.calls.begin(ctx, r.ask, r.want, r.freed)
	if err != nil {
		unsent(r.freed)
		return err
	}
	if c.frame.data, err = write(ctx, s, c.id, r.ask, r.m, r.fields); err == nil {
		r.stats.BytesIn = c.frame.size()
		err = s.post(ctx, &c.frame, r.urgent)
	}
	if err != nil {
		s.calls.drop(c)
		c.free()
		return err
	}
	a, err := s.await(ctx, c)
	if err != nil {
		return err
	}
	r.stats.BytesOut = a.in.size
	if err := decode(&s.writer.frames, &a.in, ruleClean, r.reply, r.replyFields); err != nil {
		return s.invalid(err)
	}
	return nil
}

func unsent(freed func()) {
	if freed != nil {
		freed()
	}
}

// write writes a frame, and refuses it if it is too long.
func write[T any](ctx context.Context, s *Session, id uint64, b body, m *T, fields func(*form, *T)) (*[]byte, error) {
	f := s.writer.frames.begin(ruleValid)
	if deadline, ok := ctx.Deadline(); ok {
		f.most = max(time.Until(deadline), 1)
	}
	putFrame(f, id, s.o.Incarnation, b, m, fields)
	data, err := s.writer.frames.seal(f)
	switch {
	case err != nil:
		return nil, phases.Errorf(phases.CauseInternal, "the request cannot be sent to %s: %w", s.who(), err)
	case len(*data) > s.o.Frame:
		defer s.writer.frames.recycle(data)
		return nil, phases.Errorf(phases.CauseOversizeRequest, "the request to %s takes %d bytes; a frame holds %d", s.who(), len(*data), s.o.Frame)
	}
	return data, nil
}

// post gives a frame to the writer. On an error it was not sent.
func (s *Session) post(ctx context.Context, o *outgoing, urgent bool) error {
	var err error
	if urgent {
		err = s.writer.hurry(o, false)
	} else {
		err = s.writer.send(ctx, o)
	}
	if err == nil {
		return nil
	}
	s.writer.frames.recycle(o.data)
	if ctx.Err() != nil {
		return left(ctx, s.who())
	}
	return err
}

// await waits for the answer to a call, or for the caller's context.
func (s *Session) await(ctx context.Context, c *call) (*answer, error) {
	select {
	case <-c.answered:
		a := s.calls.received(c)
		return a, a.err
	case <-ctx.Done():
	}
	if s.writer.withdraw(&c.frame) {
		s.calls.drop(c)
		c.free()
		return nil, left(ctx, s.who())
	}
	if !s.calls.abandon(c) {
		<-c.answered // it came at the same moment
		a := s.calls.received(c)
		return a, a.err
	}
	if c.ask == hostDispatch || c.ask == hostCallTool {
		s.sendCancel(c.id) //nolint:contextcheck // the caller's has just ended
	}
	return nil, left(ctx, s.who())
}

// sendCancel tells the plugin that nobody waits for the call any more. The
// call's own frame is on its way already, for it was not withdrawn.
func (s *Session) sendCancel(id uint64) {
	data, err := write(s.stream.Context(), s, id, hostCancel, &none{}, noFields)
	if err == nil {
		err = s.writer.hurry(&outgoing{data: data}, false)
	}
	_ = err // the session has ended, and the call with it
}

// invalid is the error of a reply that was not acceptable.
func (s *Session) invalid(err error) error {
	return phases.Errorf(phases.CauseInvalidReply, "the answer of %s %w", s.who(), err)
}
