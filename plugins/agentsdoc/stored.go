package agentsdoc

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/grapnelhq/grapnel/internal/agentsdoc/lazy"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/sdk"
)

const stateService = "state"

const storedSchema = 2 // the version of the stored state

// stored is a session as the host keeps it, so that another process knows what was said. It makes the text again.
type stored struct {
	Schema  int             `json:"schema"`
	Options string          `json:"options"` // hash of the settings that it was made under
	Epoch   int             `json:"epoch"`
	Said    int             `json:"said,omitempty"` // how many messages there were
	Nested  json.RawMessage `json:"nested"`         // a [lazy.State]
}

// recall asks the host once for the state of a session.
func (d *docs) recall(ctx context.Context, call *sdk.Call, s *session) {
	if s.read || !s.key.kept() {
		return
	}
	s.read = true
	if !d.keeps {
		return
	}
	answer, err := call.Host.Call(ctx, stateService, "get", s.key.params(nil))
	if err != nil {
		s.read = ctx.Err() == nil // a later turn retries
		s.remark(codeStateNotKept, phases.SeverityWarning, "what was said in the session cannot be read from the host: "+string(phases.CodeOf(err)))
		return
	}
	var got struct {
		Value json.RawMessage `json:"value"`
	}
	if err := json.Unmarshal(answer, &got); err == nil && len(got.Value) > 0 && string(got.Value) != "null" {
		d.take(s, got.Value)
	}
}

func (k sessionKey) params(value json.RawMessage) json.RawMessage {
	data, _ := json.Marshal(struct { //nolint:errchkjson // plain data
		Workspace string          `json:"workspace_id,omitempty"`
		Session   string          `json:"session_id"`
		Value     json.RawMessage `json:"value,omitempty"`
	}{k.workspace, k.session, value})
	return data
}

// take continues with a stored state. One that is damaged, or was made under other settings, is ignored: the session
// begins a new epoch.
func (d *docs) take(s *session, value json.RawMessage) {
	kept, nested, err := decodeStored(value)
	if err != nil {
		s.remark(codeStateDamaged, phases.SeverityWarning, "what was kept of the session is not used: "+err.Error())
		return
	}
	s.said = max(s.said, kept.Said)
	if kept.Options != d.sum || d.reloaded {
		return
	}
	s.renew(kept.Epoch)
	s.nested = nested
}

func decodeStored(value json.RawMessage) (stored, *lazy.State, error) {
	var kept stored
	if err := json.Unmarshal(value, &kept); err != nil {
		return kept, nil, err
	}
	if kept.Schema != storedSchema {
		return kept, nil, fmt.Errorf("its schema is %d, and this plugin knows %d", kept.Schema, storedSchema)
	}
	nested, err := lazy.Decode(kept.Nested)
	if err != nil {
		return kept, nil, err
	}
	return kept, &nested, nil
}

// persist stores the state of a session at the host.
func (d *docs) persist(ctx context.Context, call *sdk.Call, s *session) {
	if !s.key.kept() {
		return
	}
	if !d.keeps {
		s.remark(codeStateNotKept, phases.SeverityInfo, "what was said in the session is known to this process alone: the plugin is not granted the host service state")
		return
	}
	value := json.RawMessage("null")
	if s.nested != nil {
		value = d.encode(s)
	}
	if _, err := call.Host.Call(ctx, stateService, "put", s.key.params(value)); err != nil {
		s.remark(codeStateNotKept, phases.SeverityWarning, "what was said in the session is known to this process alone: "+string(phases.CodeOf(err)))
	}
}

func (d *docs) encode(s *session) json.RawMessage {
	nested, err := lazy.Encode(*s.nested)
	if err != nil {
		return json.RawMessage("null") // of plain data
	}
	data, _ := json.Marshal(stored{Schema: storedSchema, Options: d.sum, Epoch: s.epoch, Said: s.said, Nested: nested}) //nolint:errchkjson // plain data
	return data
}

// start is the handler of the hook "start": it forgets any earlier session of that name.
func (d *docs) start(ctx context.Context, call *sdk.Call, _ *phases.SessionStartInput) ([]phases.Contribution, error) {
	d.sessions.forgetTasks(&call.Context)
	return d.again(ctx, call)
}

// compacted is the handler of the hook "compacted".
func (d *docs) compacted(ctx context.Context, call *sdk.Call, _ *phases.PostCompactionInput) ([]phases.Contribution, error) {
	return d.again(ctx, call)
}

// again begins a new epoch of a session: the next turn looks at the files again, and what was delivered may be
// delivered again.
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

// end is the handler of the hook "end". The host's state stays: a session may be resumed.
func (d *docs) end(_ context.Context, call *sdk.Call, _ *phases.SessionEndInput) ([]phases.Contribution, error) {
	d.sessions.forgetTasks(&call.Context)
	if key, ok := keyOf(&call.Context); ok {
		d.sessions.forget(func(k sessionKey) bool { return k == key })
	}
	return nil, nil
}

// resume is the handler of the hook "resume": it reports what differs from what the session was left with, whose text is
// made again. The service's state takes precedence over the input's.
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
	if s.nested == nil && len(in.State) > 0 {
		d.takeGiven(s, in.State)
	}
	if s.nested == nil {
		return s.takeWaiting(), nil // nothing to compare with
	}
	dir := where.Dir
	if isSubtask(where) {
		dir = s.nested.Dir // its parent's
	}
	now, _ := look(d.view, dir, d.rules(where))
	diff := s.nested.Resume(now)
	s.forgetBlocks()
	s.epoch, s.nested.Epoch = where.Epoch, where.Epoch
	d.persist(ctx, call, s)
	return append(answer(s, diff.Message, differenceRows(diff.Changes)), s.takeWaiting()...), nil
}

// takeGiven continues with a state that the host recorded: what the service keeps, or what the command line writes.
func (d *docs) takeGiven(s *session, given json.RawMessage) {
	if _, _, err := decodeStored(given); err == nil {
		d.take(s, given)
	} else if nested, err := lazy.Decode(given); err == nil && nested.Dir != "" {
		s.renew(max(s.epoch, nested.Epoch))
		s.nested = &nested
	}
}
