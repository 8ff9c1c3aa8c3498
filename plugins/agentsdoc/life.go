package agentsdoc

import (
	"context"
	"encoding/json"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/sdk"
)

// start is the handler of the hook "start": whatever is known of a session of
// that name was another one.
func (d *docs) start(ctx context.Context, call *sdk.Call, _ *phases.SessionStartInput) ([]phases.Contribution, error) {
	d.sessions.forgetTasks(&call.Context)
	return d.again(ctx, call)
}

// compacted is the handler of the hook "compacted".
func (d *docs) compacted(ctx context.Context, call *sdk.Call, _ *phases.PostCompactionInput) ([]phases.Contribution, error) {
	return d.again(ctx, call)
}

// again begins a new epoch of a session: the next turn looks at the files
// afresh, and what was delivered may be delivered again.
func (d *docs) again(ctx context.Context, call *sdk.Call) ([]phases.Contribution, error) {
	key, ok := keyOf(&call.Context)
	if !ok {
		return nil, nil
	}
	s := d.sessions.of(key)
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.leave()
	s.renew(max(s.epoch, call.Context.Epoch))
	s.read = true // what is kept is of the epoch before
	d.persist(ctx, call, s)
	if call.Host != nil {
		_ = call.Host.Invalidate(ctx, phases.Invalidation{}) // as in noticed
	}
	return s.takeWaiting(), nil
}

// end is the handler of the hook "end". What the host keeps stays: a session may
// be resumed.
func (d *docs) end(_ context.Context, call *sdk.Call, _ *phases.SessionEndInput) ([]phases.Contribution, error) {
	d.sessions.forgetTasks(&call.Context)
	if key, ok := keyOf(&call.Context); ok {
		d.sessions.forget(key)
	}
	return nil, nil
}

// resume is the handler of the hook "resume": it tells what differs from what
// the session was left with. What the service has comes first, what the host
// gives in the input second.
func (d *docs) resume(ctx context.Context, call *sdk.Call, in *phases.SessionResumeInput) ([]phases.Contribution, error) {
	where := &call.Context
	key, ok := keyOf(where)
	if !ok || where.SessionID == "" || where.Dir == "" || d.withheld(where) {
		return nil, nil
	}
	s := d.sessions.of(key)
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.leave()
	d.recall(ctx, call, s)
	if s.nested == nil {
		d.takeGiven(s, in.State)
	}
	if s.nested == nil {
		return s.takeWaiting(), nil // nothing to compare with
	}
	return append(d.differences(ctx, call, s), s.takeWaiting()...), nil
}

// takeGiven goes on with what the host recorded, if that is ours: what the
// service keeps, or what the command line writes.
func (d *docs) takeGiven(s *session, given json.RawMessage) {
	if len(given) == 0 {
		return
	}
	if _, _, err := decodeStored(given); err == nil {
		d.take(s, given)
		return
	}
	d.takeNested(s, given)
}
