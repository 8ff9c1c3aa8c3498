package wire

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/grapnelhq/grapnel/internal/jsonscan"
	"github.com/grapnelhq/grapnel/phases"
)

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
	if err := in.parse(pluginUnsupported, frameForms().plugin); err != nil {
		if _, noise := errors.AsType[*notFrame](err); noise {
			return err
		}
		s.unreadable(in, err)
		return nil
	}
	if in.incarnation != s.o.Incarnation {
		s.calls.misaddressed(in.id, in.incarnation)
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
		id, unknown := in.id, in.unsupported()
		s.drop(in, DroppedUnsupported)
		return answerNow(s.ctx, s.writer, id, hostUnsupported, &unknown, unsupportedFields)
	}
}

func (s *Session) drop(in *incoming, why Dropped) {
	id := in.id
	in.free()
	s.o.OnDropped(why, id)
}

func (s *Session) settle(in *incoming) {
	c, why := s.calls.take(in.id)
	if c == nil {
		s.drop(in, why)
		return
	}
	if c.abandoned {
		s.o.OnDropped(DroppedLate, in.id)
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
		s.o.OnDropped(DroppedUnreadable, id)
		return
	}
	if f := frameForms().host.byName[m.name]; f != nil {
		m.body = uint64(f.number) //nolint:gosec // positive
	}
	c := s.calls.refuse(id, body(m.body)) //nolint:gosec // compared only
	if c == nil {
		s.o.OnDropped(DroppedUnsupported, id)
		return
	}
	c.deliver(answer{err: &phases.Error{
		Code: phases.CausePluginError, PluginCode: "unsupported",
		Message: fmt.Sprintf("plugin %q does not understand this call (body %d)", s.o.Instance, c.ask),
	}})
}

// unreadable fails the call that a malformed frame was meant for: by its id, or the only one.
func (s *Session) unreadable(in *incoming, err error) {
	id := in.id
	in.free()
	c, _ := s.calls.take(id)
	if only, ok := s.calls.only(); c == nil && ok {
		c, _ = s.calls.take(only)
	}
	s.o.OnDropped(DroppedUnreadable, id)
	if c != nil {
		c.deliver(answer{err: s.invalid(fmt.Errorf("cannot be read: %w", err))})
	}
}

// finish ends the session and answers everything that waits.
func (s *Session) finish(err error) {
	reset, culprit := s.reason(err)
	if l := s.lane.Load(); l != nil {
		l.finish()
	}
	s.err = reset
	others := reset
	if reset.Code == phases.CauseOversizeReply {
		others = s.broken(phases.CauseSessionReset, "sent a frame that was too large, in answer to another call", err)
	}
	close(s.done) // before the calls end: their callers may ask Err
	s.writer.close(others)
	s.closeLane()
	for id, c := range s.calls.end(others) {
		if id == culprit {
			c.deliver(answer{err: reset})
		} else {
			c.deliver(answer{err: others})
		}
	}
	s.cancel(reset)
}

// reason says why the stream has ended and, if known, whose frame was too large.
func (s *Session) reason(err error) (reset *phases.Error, culprit uint64) {
	cause := context.Cause(s.ctx)
	if errors.Is(cause, errClosed) {
		return phases.Errorf(phases.CauseSessionReset, "plugin %q: %w", s.o.Instance, cause), 0
	}
	if long, ok := errors.AsType[*tooLong](cause); ok {
		return s.broken(phases.CauseOversizeReply, "sent a frame that was too large", long), long.id
	}
	if broken, ok := errors.AsType[*laneError](cause); ok {
		err = broken.error
	}
	if noise, ok := errors.AsType[*notFrame](err); ok {
		return s.noise(noise), 0
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

// noise is the error of a line that is not a frame.
func (s *Session) noise(line *notFrame) *phases.Error {
	e := s.broken(phases.CauseInvalidFrame, "wrote a line that is not a frame to its standard output; logs belong on standard error", line)
	if !s.described.Load() {
		e.Code = phases.CauseStartNoise
	}
	shown := strings.ToValidUTF8(string(line.line[:min(len(line.line), lineShown)]), "\uFFFD")
	e.Detail = fmt.Sprintf("%v; it wrote %q", line.why, shown)
	return e
}

// broken is the error of a stream that ended. Its detail may be the plugin's own words.
func (s *Session) broken(code phases.Cause, what string, err error) *phases.Error {
	e := &phases.Error{Code: code, Message: s.who() + " " + what, Err: err}
	if err != nil {
		e.Detail = err.Error()
	}
	return e
}

// serving counts host calls: those that run, and all, including those whose answers are queued. A plugin that reads
// its answers never meets the second bound.
type serving struct {
	running atomic.Int64
	all     atomic.Int64
}

// enter takes a slot and reports whether one was free.
func (n *serving) enter(limit int) bool {
	running, all := n.running.Add(1), n.all.Add(1)
	if running <= int64(limit) && all <= 2*int64(limit) {
		return true
	}
	n.running.Add(-1)
	n.all.Add(-1)
	return false
}

func (s *Session) serveHost(in incoming) error {
	if !s.serving.enter(s.o.HostCalls) {
		id := in.id
		in.free()
		if id == 0 {
			s.o.OnDropped(DroppedInvalidation, 0)
			return nil
		}
		m := hostReply{err: phases.Errorf(phases.CauseOverloaded, "more than %d host calls are in flight", s.o.HostCalls)}
		return answerNow(s.ctx, s.writer, id, hostHostReply, &m, hostReplyFields)
	}
	s.tasks.Go(func() {
		defer s.serving.all.Add(-1)
		m := s.hostReply(&in)
		s.serving.running.Add(-1)
		if in.id != 0 {
			s.reply(in.id, m)
		}
	})
	return nil
}

func (s *Session) hostReply(in *incoming) (m hostReply) {
	defer func() {
		if r := recover(); r != nil {
			m = hostReply{err: phases.Errorf(phases.CauseInternal, "the host service failed")}
		}
	}()
	var err error
	if in.body == pluginInvalidate {
		err = s.invalidate(in)
	} else {
		m.result, err = s.callHost(in)
	}
	if err != nil {
		return hostReply{err: ToPlugin(err)}
	}
	return m
}

func (s *Session) callHost(in *incoming) (json.RawMessage, error) {
	var m hostCall
	if err := decode(&s.writer.frames, in, ruleClean, &m, hostCallFields); err != nil {
		return nil, phases.Errorf(phases.CauseInvalidReply, "the host call %w", err)
	}
	if len(m.params) > 0 {
		if err := jsonscan.Check(m.params, phases.MaxJSONDepth); err != nil {
			return nil, phases.Errorf(phases.CauseInvalidReply, "the host call's params: %w", err)
		}
	}
	if s.o.Host == nil {
		return nil, phases.Errorf(phases.CauseUnavailable, "this host has no services")
	}
	ctx, cancel, err := s.within(m.parent)
	if err != nil {
		return nil, err
	}
	defer cancel()
	return s.o.Host.Call(ctx, m.service, m.method, m.params)
}

func (s *Session) invalidate(in *incoming) error {
	var m invalidate
	if err := decode(&s.writer.frames, in, ruleClean, &m, invalidateFields); err != nil {
		return phases.Errorf(phases.CauseInvalidReply, "the invalidation %w", err)
	}
	if s.o.Host == nil {
		return nil // nothing is cached for it
	}
	ctx, cancel, err := s.within(m.parent)
	if err != nil {
		// The invalidation still counts after its call.
		ctx, cancel, _ = s.within(0)
	}
	defer cancel()
	return s.o.Host.Invalidate(ctx, m.Invalidation)
}

// within returns a context for a host call that descends from the call parent, and ends with the session.
func (s *Session) within(parent uint64) (context.Context, context.CancelFunc, error) {
	session := s.ctx
	if parent == 0 {
		ctx, cancel := context.WithCancel(session)
		return ctx, cancel, nil
	}
	outer, ok := s.calls.context(parent)
	if !ok {
		return nil, nil, phases.Errorf(phases.CauseCancelled, "the call %d, which this one belongs to, has ended", parent)
	}
	ctx, cancel := context.WithCancelCause(outer)
	stop := context.AfterFunc(session, func() { cancel(context.Cause(session)) })
	return ctx, func() { stop(); cancel(nil) }, nil
}

// ToPlugin converts a host's error for a plugin; text that is not a coded error's is withheld. It is idempotent.
func ToPlugin(err error) *phases.Error {
	if coded, ok := errors.AsType[*phases.Error](err); ok {
		return coded
	}
	code := phases.CauseInternal
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		code = phases.CauseTimeout
	case errors.Is(err, context.Canceled):
		code = phases.CauseCancelled
	}
	return &phases.Error{Code: code, Message: "the host service failed"}
}

// reply sends a HostReply. It waits for the queue until the session ends.
func (s *Session) reply(id uint64, m hostReply) {
	ctx := s.ctx
	data, err := encodeFrame(ctx, s.writer, id, hostHostReply, &m, hostReplyFields)
	if err != nil {
		code := phases.CodeOf(err)
		if code == phases.CauseOversizeRequest {
			code = phases.CauseOversizeReply
		}
		m = hostReply{err: &phases.Error{Code: code, Message: "the host's answer cannot be sent"}}
		data, err = encodeFrame(ctx, s.writer, id, hostHostReply, &m, hostReplyFields)
	}
	if err == nil {
		err = s.writer.send(ctx, &outgoing{data: data})
	}
	_ = err // the session has ended
}
