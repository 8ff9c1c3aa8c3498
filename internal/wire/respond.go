package wire

import (
	"context"
	"errors"
	"fmt"

	"github.com/grapnelhq/grapnel/phases"
)

// respond sends a plugin's answer. What cannot be sent (too long, a value that
// has no form on the wire, one that panics while it is written) is replaced by
// an error, so that the call is answered all the same.
func respond[T any](s *served, id uint64, b body, m *T, fields func(*form, *T), instead func(*phases.Error) *T) {
	data, err := frameOf(s, id, b, m, fields)
	if err != nil {
		data, err = frameOf(s, id, b, instead(asError(err)), fields)
	}
	if err == nil {
		err = s.writer.send(s.ctx, &outgoing{data: data})
	}
	_ = err // the session has ended
}

// hurry sends what the reader answers by itself, without waiting. An error means
// that the host does not read.
func hurry[T any](s *served, id uint64, b body, m *T, fields func(*form, *T)) error {
	data, err := frameOf(s, id, b, m, fields)
	if err == nil {
		err = s.writer.hurry(&outgoing{data: data}, true)
	}
	if errors.Is(err, errFlooded) {
		return err
	}
	return nil
}

// frameOf writes a frame, in clean text and within the limit.
func frameOf[T any](s *served, id uint64, b body, m *T, fields func(*form, *T)) (data *[]byte, err error) {
	defer func() {
		if r := recover(); r != nil {
			data, err = nil, panicked(r)
		}
	}()
	s.mu.Lock()
	incarnation, limit := s.incarnation, s.frame
	s.mu.Unlock()
	f := s.writer.frames.begin(ruleClean)
	f.repair = true
	putFrame(f, id, incarnation, b, m, fields)
	if data, err = s.writer.frames.seal(f); err != nil {
		return nil, err
	}
	if len(*data) > limit {
		defer s.writer.frames.recycle(data)
		return nil, phases.Errorf(phases.CauseOversizeReply, "the answer takes %d bytes; a frame holds %d", len(*data), limit)
	}
	return data, nil
}

// recovering calls a handler and makes its panic an error.
func recovering[A, B any](ctx context.Context, in A, handle func(context.Context, A) (*B, error)) (v *B, err error) {
	defer func() {
		if r := recover(); r != nil {
			v, err = nil, panicked(r)
		}
	}()
	return handle(ctx, in)
}

// failure makes a handler's error one for the wire; nil stays nil, unless
// there is no answer either.
func failure(err error, empty bool) *phases.Error {
	switch {
	case err != nil:
		return asError(err)
	case empty:
		return &phases.Error{Code: phases.CausePluginError, PluginCode: "no_answer", Message: "the plugin gave no answer"}
	default:
		return nil
	}
}

// unreadableRequest is the answer to a request that could not be decoded.
func unreadableRequest(err error) *phases.Error {
	return &phases.Error{Code: phases.CausePluginError, PluginCode: "invalid_request", Message: fmt.Sprintf("the request %v", err), Err: err}
}
