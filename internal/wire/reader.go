package wire

import (
	"context"
	"errors"
	"fmt"
	"io"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/grapnelhq/grapnel/phases"
)

// readAll is the reader: it takes frames off the stream until that ends. It
// decodes envelopes only, and never runs a handler, waits for a slot or blocks
// on a queue.
func (s *Session) readAll() {
	var in incoming
	var err error
	for err == nil {
		if err = s.stream.RecvMsg(&in); err == nil {
			err = s.accept(&in)
		}
	}
	s.finish(err)
}

// accept handles one frame. An error ends the session.
func (s *Session) accept(in *incoming) error {
	if err := in.parse(pluginUnsupported); err != nil {
		s.unreadable(in, err)
		return nil
	}
	if in.incarnation != s.o.Incarnation {
		s.drop(in, DroppedStale)
		return nil
	}
	switch in.body {
	case pluginDescribe, pluginConfigured, pluginResult, pluginToolResult, pluginPong:
		s.settle(in)
		return nil
	case pluginHostCall, pluginInvalidate:
		return s.serveHost(*in)
	case pluginUnsupported:
		s.unsupported(in)
		return nil
	default:
		id, stranger := in.id, in.stranger
		s.drop(in, DroppedUnsupported)
		return answerNow(s, id, hostUnsupported, &unsupported{uint64(stranger)}, unsupportedFields) //nolint:gosec // positive
	}
}

func (s *Session) drop(in *incoming, why Dropped) {
	in.free()
	s.o.OnDropped(why)
}

// settle gives an answer to the call that it belongs to.
func (s *Session) settle(in *incoming) {
	c, why := s.calls.take(in.id)
	if c == nil {
		s.drop(in, why)
		return
	}
	if c.abandoned {
		s.o.OnDropped(DroppedLate)
	}
	if c.want != in.body {
		in.free()
		c.deliver(answer{err: s.invalid(fmt.Errorf("has the body %d where %d belongs", in.body, c.want))})
		return
	}
	c.deliver(answer{in: *in})
}

// unsupported fails the call that the plugin did not understand.
func (s *Session) unsupported(in *incoming) {
	id := in.id
	var m unsupported
	if err := decode(&s.writer.frames, in, ruleClean, &m, unsupportedFields); err != nil {
		s.o.OnDropped(DroppedUnreadable)
		return
	}
	c := s.calls.refuse(id, body(m.body)) //nolint:gosec // compared only
	if c == nil {
		s.o.OnDropped(DroppedUnsupported)
		return
	}
	c.deliver(answer{err: &phases.Error{
		Code: phases.CausePluginError, PluginCode: "unsupported",
		Message: fmt.Sprintf("plugin %q does not understand this call (body %d)", s.o.Instance, c.ask),
	}})
}

// unreadable handles a frame that is no protobuf message. The call it was meant
// for fails, if that can be told: by the id, which comes first, or because
// there is only one.
func (s *Session) unreadable(in *incoming, err error) {
	id := in.id
	in.free()
	c, _ := s.calls.take(id)
	if only, ok := s.calls.only(); c == nil && ok {
		c, _ = s.calls.take(only)
	}
	s.o.OnDropped(DroppedUnreadable)
	if c != nil {
		c.deliver(answer{err: s.invalid(fmt.Errorf("cannot be read: %w", err))})
	}
}

// finish ends the session: everything that waits gets an answer.
func (s *Session) finish(err error) {
	reset, culprit := s.reason(err)
	s.err = reset
	others := reset
	if reset.Code == phases.CauseOversizeReply {
		others = s.broken(phases.CauseSessionReset, "sent a frame that was too large, in answer to another call", err)
	}
	close(s.done) // before the calls end: their callers may ask Err
	s.writer.close(others)
	for id, c := range s.calls.end(others) {
		if id == culprit {
			c.deliver(answer{err: reset})
		} else {
			c.deliver(answer{err: others})
		}
	}
	s.cancel(reset)
}

// reason says why the stream has ended, and whose frame was too large if that
// was why and can be told.
func (s *Session) reason(err error) (reset *phases.Error, culprit uint64) {
	ctx := s.stream.Context()
	if cause := context.Cause(ctx); errors.Is(cause, errClosed) {
		return phases.Errorf(phases.CauseSessionReset, "plugin %q: %w", s.o.Instance, cause), 0
	}
	if status.Code(err) == codes.ResourceExhausted {
		id, ok := s.calls.only()
		if !ok && s.tap != nil {
			id, ok = s.tap.culprit()
		}
		if !ok {
			id = 0
		}
		return s.broken(phases.CauseOversizeReply, "sent a frame that was too large", err), id
	}
	if errors.Is(err, io.EOF) {
		return s.broken(phases.CauseSessionReset, "ended its session", nil), 0
	}
	return s.broken(phases.CauseSessionReset, "broke its session", err), 0
}

// broken is the error of a stream that ended. A plugin may end it with words of its
// own, which the stream's error quotes.
func (s *Session) broken(code phases.Cause, what string, err error) *phases.Error {
	e := &phases.Error{Code: code, Message: s.who() + " " + what, Err: err}
	if err != nil {
		e.Detail = err.Error()
	}
	return e
}
