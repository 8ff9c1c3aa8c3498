package wire

import (
	"context"
	"encoding/json"

	"github.com/grapnelhq/grapnel/internal/engine/callctx"
	"github.com/grapnelhq/grapnel/phases"
)

// remoteHost is the host that a plugin sees: the one of the session in which it was configured.
type remoteHost struct{ s *served }

var _ phases.Host = (*remoteHost)(nil)

func (r *remoteHost) Call(ctx context.Context, service, method string, params json.RawMessage) (json.RawMessage, error) {
	m := hostCall{parent: r.parent(ctx), service: service, method: method, params: params}
	return ask(ctx, r.s, pluginHostCall, &m, hostCallFields)
}

// Invalidate implements phases.Host. When it returns, the host has dropped the entries.
func (r *remoteHost) Invalidate(ctx context.Context, what phases.Invalidation) error {
	m := invalidate{what, r.parent(ctx)}
	_, err := ask(ctx, r.s, pluginInvalidate, &m, invalidateFields)
	return err
}

// parent returns the id of the call whose handler asks.
func (r *remoteHost) parent(ctx context.Context) uint64 {
	if l := callctx.Of[*handling](ctx); l != nil && l.Site.session == r.s {
		return l.Site.in.id
	}
	return 0
}

// ask sends a frame of the plugin's own and waits for HostReply.
func ask[T any](ctx context.Context, s *served, b body, m *T, fields func(*form, *T)) (json.RawMessage, error) {
	if ctx.Err() != nil {
		return nil, errAbandoned(ctx, "the host")
	}
	s.lane.yield()
	c := &call{ask: b, want: hostHostReply, freed: func() {}}
	if err := s.asked.begin(ctx, c); err != nil {
		return nil, err
	}
	defer s.asked.drop(c) // a late reply is ignored
	data, err := encodeFrame(ctx, s.writer, c.id, b, m, fields)
	if err == nil {
		err = s.writer.send(ctx, &outgoing{data: data})
	} else if phases.CodeOf(err) == phases.CauseOversizeReply {
		err = phases.Errorf(phases.CauseOversizeRequest, "the host call does not fit into a frame: %w", err)
	}
	if err != nil {
		if ctx.Err() != nil {
			return nil, errAbandoned(ctx, "the host")
		}
		return nil, err
	}
	select {
	case <-c.answered:
	case <-ctx.Done():
		return nil, errAbandoned(ctx, "the host")
	}
	if c.answer.err != nil {
		return nil, c.answer.err
	}
	var reply hostReply
	if err := decode(&s.writer.frames, &c.answer.in, ruleValid, &reply, hostReplyFields); err != nil {
		return nil, phases.Errorf(phases.CauseInternal, "the host's answer %w", err)
	}
	if reply.err != nil {
		return nil, reply.err
	}
	return reply.result, nil
}

// answered hands a HostReply to its caller.
func (s *served) answered(in incoming) {
	if c, _ := s.asked.take(in.id); c != nil {
		c.deliver(answer{in: in})
		return
	}
	in.free()
}

// refused handles Unsupported: the host does not know host calls.
func (s *served) refused(in *incoming) {
	id := in.id
	var m unsupported
	if err := decode(&s.writer.frames, in, ruleValid, &m, unsupportedFields); err != nil || m.body == 0 {
		return
	}
	if c := s.asked.refuse(id, body(m.body)); c != nil { //nolint:gosec // compared only
		c.deliver(answer{err: phases.Errorf(phases.CauseUnavailable, "this host does not know host calls")})
	}
}
