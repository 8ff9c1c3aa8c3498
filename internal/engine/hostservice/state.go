package hostservice

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/grapnelhq/grapnel/internal/recent"
	"github.com/grapnelhq/grapnel/phases"
)

// ServiceState is the host service by which plugins keep state.
const ServiceState = "state"

// MaxState is the longest state that the service "state" keeps, in bytes.
const MaxState = 64 << 10

// maxSessions bounds the sessions with a state of one plugin in memory.
const maxSessions = 4096

// State keeps the values of the host service "state": one for each workspace, session and plugin. It is called
// concurrently.
type State interface {
	// GetState returns the value that was put last, nil if there is none.
	GetState(ctx context.Context, k phases.StateKey) (json.RawMessage, error)
	// PutState replaces the value; nil removes it. It returns how many older values of the plugin were evicted.
	PutState(ctx context.Context, k phases.StateKey, value json.RawMessage) (evicted int, err error)
}

// stateParams are the parameters of both methods. Without a session it is the turn's.
type stateParams struct {
	WorkspaceID string          `json:"workspace_id"`
	SessionID   string          `json:"session_id"`
	Value       json.RawMessage `json:"value"`
}

const (
	stateGetSchema = `{"type":"object","additionalProperties":false,"properties":{"workspace_id":{"type":"string"},"session_id":{"type":"string","minLength":1}}}`
	statePutSchema = `{"type":"object","additionalProperties":false,"required":["value"],"properties":{"workspace_id":{"type":"string"},"session_id":{"type":"string","minLength":1},"value":{}}}`
	stateGetResult = `{"type":"object","required":["value"],"properties":{"value":{}}}`
	statePutResult = `{"type":"object"}`
)

// StateService keeps one value for each session: "get" returns {value}, what the plugin put last or null; "put" keeps
// {value}, any JSON of at most MaxState bytes, null removes it. Evicted is called after older values of a plugin were
// evicted.
func StateService(s State, evicted func(plugin string, n int)) Service {
	get := func(ctx context.Context, caller Caller, params json.RawMessage) (json.RawMessage, error) {
		key, _, err := stateKey(caller, params)
		if err != nil {
			return nil, err
		}
		value, err := s.GetState(ctx, key)
		if err != nil {
			return nil, err
		}
		return json.Marshal(map[string]json.RawMessage{"value": value})
	}
	put := func(ctx context.Context, caller Caller, params json.RawMessage) (json.RawMessage, error) {
		key, value, err := stateKey(caller, params)
		if err != nil {
			return nil, err
		}
		n, err := s.PutState(ctx, key, value)
		if n > 0 {
			evicted(key.Plugin, n)
		}
		return json.RawMessage(`{}`), err
	}
	return Service{
		"get": {Params: json.RawMessage(stateGetSchema), Result: json.RawMessage(stateGetResult), Call: get},
		"put": {Params: json.RawMessage(statePutSchema), Result: json.RawMessage(statePutResult), Call: put},
	}
}

// stateKey reads the parameters: the key, and the value to put.
func stateKey(caller Caller, params json.RawMessage) (phases.StateKey, json.RawMessage, error) {
	var p stateParams
	if len(params) > 0 {
		if err := json.Unmarshal(params, &p); err != nil {
			return phases.StateKey{}, nil, phases.Errorf(phases.CauseInvalidReply, "params: %w", err)
		}
	}
	key := phases.StateKey{WorkspaceID: caller.Context.WorkspaceID, SessionID: caller.Context.SessionID, Plugin: caller.Plugin}
	if p.SessionID != "" {
		key.SessionID = p.SessionID
	}
	if p.WorkspaceID != "" {
		key.WorkspaceID = p.WorkspaceID
	}
	switch {
	case max(len(p.WorkspaceID), len(p.SessionID)) > phases.MaxIDBytes:
		return key, nil, phases.Errorf(phases.CauseOversizeRequest, "workspace_id and session_id have at most %d bytes each", phases.MaxIDBytes)
	case key.SessionID == "":
		return key, nil, phases.Errorf(phases.CauseInvalidReply, "there is no session: state is kept by session; name one as session_id")
	case len(p.Value) > MaxState:
		return key, nil, phases.Errorf(phases.CauseOversizeRequest, "the value has %d bytes; at most %d are kept", len(p.Value), MaxState)
	case string(p.Value) == "null":
		p.Value = nil
	}
	return key, p.Value, nil
}

const maxMemoryState = 16 << 20

// MemoryState is the State of an engine without a store. Each plugin has its own bounds.
type MemoryState struct {
	mu      sync.Mutex
	plugins map[string]*pluginState
}

var _ State = (*MemoryState)(nil)

// NewMemoryState returns an empty one.
func NewMemoryState() *MemoryState { return &MemoryState{plugins: map[string]*pluginState{}} }

// GetState implements State.
func (m *MemoryState) GetState(_ context.Context, k phases.StateKey) (json.RawMessage, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	v, _ := m.of(k.Plugin).values.Get(k.WorkspaceID + "\x00" + k.SessionID)
	return v, nil
}

// PutState implements State. The oldest values go first, of the workspace with most.
func (m *MemoryState) PutState(_ context.Context, k phases.StateKey, value json.RawMessage) (evicted int, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.of(k.Plugin).put(k.WorkspaceID, k.WorkspaceID+"\x00"+k.SessionID, value), nil
}

// of returns the values of a plugin; the caller holds the lock.
func (m *MemoryState) of(plugin string) *pluginState {
	p, ok := m.plugins[plugin]
	if !ok {
		p = &pluginState{values: recent.New[json.RawMessage](maxSessions)}
		m.plugins[plugin] = p
	}
	return p
}

type pluginState struct {
	values recent.Map[json.RawMessage]
	bytes  int
}

func (p *pluginState) put(workspace, key string, value json.RawMessage) (evicted int) {
	old, _ := p.values.Get(key)
	p.bytes -= len(old)
	p.values.Drop(key)
	if value == nil {
		return 0
	}
	for ; p.values.Len() > 0 && (p.bytes+len(value) > maxMemoryState || p.values.Len() >= maxSessions); evicted++ {
		forgotten, _ := p.values.Evict(workspace)
		p.bytes -= len(forgotten)
	}
	p.values.Put(workspace, key, value)
	p.bytes += len(value)
	return evicted
}
