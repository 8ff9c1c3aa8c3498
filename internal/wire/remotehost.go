package wire

import (
	"context"
	"encoding/json"

	"github.com/grapnelhq/grapnel/phases"
)

// remoteHost is the host as a plugin sees it: the one of the session in which
// it was configured.
type remoteHost struct{ s *served }

var _ phases.Host = (*remoteHost)(nil)

// Call implements phases.Host.
func (r *remoteHost) Call(ctx context.Context, service, method string, params json.RawMessage) (json.RawMessage, error) {
	m := hostCall{parent: r.parent(ctx), service: service, method: method, params: params}
	return ask(ctx, r.s, pluginHostCall, &m, hostCallFields)
}

// Invalidate implements phases.Host. When it returns, the host has forgotten.
func (r *remoteHost) Invalidate(ctx context.Context, what phases.Invalidation) error {
	m := invalidate{what, r.parent(ctx)}
	_, err := ask(ctx, r.s, pluginInvalidate, &m, invalidateFields)
	return err
}

// parent returns the id of the call whose handler asks.
func (r *remoteHost) parent(ctx context.Context) uint64 {
	if h := handlingOf(ctx); h != nil && h.session == r.s {
		return h.in.id
	}
	return 0
}

// ask sends a frame of the plugin's own and waits for HostReply.
func ask[T any](ctx context.Context, s *served, b body, m *T, fields func(*form, *T)) (json.RawMessage, error) {
	if ctx.Err() != nil {
		return nil, left(ctx, "the host")
	}
	id, replied, ok := s.ask()
	if !ok {
		return nil, errSessionOver()
	}
	data, err := frameOf(s, id, b, m, fields)
	if err == nil {
		err = s.writer.send(ctx, &outgoing{data: data})
	} else if phases.CodeOf(err) == phases.CauseOversizeReply {
		err = phases.Errorf(phases.CauseOversizeRequest, "the host call does not fit into a frame: %w", err)
	}
	if err != nil {
		s.forget(id)
		if ctx.Err() != nil {
			return nil, left(ctx, "the host")
		}
		return nil, err
	}
	select {
	case a := <-replied:
		return s.hostReply(&a)
	case <-ctx.Done():
		s.forget(id)
		return nil, left(ctx, "the host")
	}
}

// ask makes an id for a host call.
func (s *served) ask() (uint64, chan answer, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.asked == nil {
		return 0, nil, false
	}
	s.lastAsked++
	replied := make(chan answer, 1)
	s.asked[s.lastAsked] = replied
	return s.lastAsked, replied, true
}

// forget gives up a host call; its reply will be ignored.
func (s *served) forget(id uint64) { s.claim(id) }

// claim takes a host call off the list. It returns nil if it is not there.
func (s *served) claim(id uint64) chan answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	replied := s.asked[id]
	delete(s.asked, id)
	return replied
}

// answered hands a HostReply to who waits for it.
func (s *served) answered(in incoming) {
	if replied := s.claim(in.id); replied != nil {
		replied <- answer{in: in}
		return
	}
	in.free()
}

// refused handles Unsupported: the host does not know host calls.
func (s *served) refused(in *incoming) {
	id := in.id
	var m unsupported
	if err := decode(&s.writer.frames, in, ruleValid, &m, unsupportedFields); err != nil {
		return
	}
	if b := body(m.body); b != pluginHostCall && b != pluginInvalidate { //nolint:gosec // compared only
		return
	}
	if replied := s.claim(id); replied != nil {
		replied <- answer{err: phases.Errorf(phases.CauseUnavailable, "this host does not know host calls")}
	}
}

// hostReply decodes a HostReply.
func (s *served) hostReply(a *answer) (json.RawMessage, error) {
	if a.err != nil {
		return nil, a.err
	}
	var m hostReply
	if err := decode(&s.writer.frames, &a.in, ruleValid, &m, hostReplyFields); err != nil {
		return nil, phases.Errorf(phases.CauseInternal, "the host's answer %w", err)
	}
	if m.err != nil {
		return nil, m.err
	}
	return m.result, nil
}
