package wire

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/grapnelhq/grapnel/phases"
)

// serving counts host calls: those that run, and those whose answers wait for
// room in the queue too. A plugin that reads its answers never meets the second
// bound.
type serving struct {
	running atomic.Int64
	all     atomic.Int64
}

// enter takes a place, or reports that there is none.
func (n *serving) enter(limit int) bool {
	running, all := n.running.Add(1), n.all.Add(1)
	if running <= int64(limit) && all <= 2*int64(limit) {
		return true
	}
	n.running.Add(-1)
	n.all.Add(-1)
	return false
}

// serveHost answers a HostCall or Invalidate, in a goroutine of its own.
func (s *Session) serveHost(in incoming) error {
	if !s.serving.enter(s.o.HostCalls) {
		id := in.id
		in.free()
		if id == 0 {
			s.o.OnDropped(DroppedInvalidation)
			return nil
		}
		m := hostReply{err: phases.Errorf(phases.CauseOverloaded, "more than %d host calls are in flight", s.o.HostCalls)}
		return answerNow(s, id, hostReplied, &m, hostReplyFields)
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

// hostReply runs what the plugin asked for.
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
		if err := phases.CheckJSON(m.params, phases.MaxJSONDepth); err != nil {
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
		// What is not true any more is not true after the call either.
		ctx, cancel, _ = s.within(0)
	}
	defer cancel()
	return s.o.Host.Invalidate(ctx, m.Invalidation)
}

// within returns a context for a host call: it descends from the context of the
// call that the plugin names, and ends with the session.
func (s *Session) within(parent uint64) (context.Context, context.CancelFunc, error) {
	session := s.stream.Context()
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

// ToPlugin makes a host's error fit for a plugin. Text that the host did not
// word for others stays at home. Doing it twice changes nothing.
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

// reply sends a HostReply. It waits for room in the queue, until the session
// ends.
func (s *Session) reply(id uint64, m hostReply) {
	ctx := s.stream.Context()
	data, err := write(ctx, s, id, hostReplied, &m, hostReplyFields)
	if err != nil {
		code := phases.CodeOf(err)
		if code == phases.CauseOversizeRequest {
			code = phases.CauseOversizeReply
		}
		m = hostReply{err: &phases.Error{Code: code, Message: "the host's answer cannot be sent"}}
		data, err = write(ctx, s, id, hostReplied, &m, hostReplyFields)
	}
	if err == nil {
		err = s.writer.send(ctx, &outgoing{data: data})
	}
	_ = err // the session has ended, and nobody waits
}

// answerNow is for answers that the reader makes by itself: it never waits. An
// error means that the plugin does not read, and ends the session.
func answerNow[T any](s *Session, id uint64, b body, m *T, fields func(*form, *T)) error {
	data, err := write(s.stream.Context(), s, id, b, m, fields)
	if err == nil {
		err = s.writer.hurry(&outgoing{data: data}, true)
	}
	if errors.Is(err, errFlooded) {
		return fmt.Errorf("answer %d: %w", id, err)
	}
	return nil
}
