package runtime

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/grapnelhq/grapnel/internal/recent"
	"github.com/grapnelhq/grapnel/phases"
)

// serviceState is the name of the host service that keeps what a plugin wants
// to know again in a later turn of a session, in another process.
const serviceState = "state"

// MaxState is the longest state that the service "state" keeps, in bytes.
const MaxState = 64 << 10

// State keeps the values of the host service "state": one for each workspace,
// session and plugin. It is called concurrently.
type State interface {
	// GetState returns what was put last, nil if nothing is there.
	GetState(ctx context.Context, k phases.StateKey) (json.RawMessage, error)
	// PutState replaces the value; nil removes it. It returns how many older values of
	// the plugin it evicted to make room.
	PutState(ctx context.Context, k phases.StateKey, value json.RawMessage) (evicted int, err error)
}

// stateParams are the parameters of both methods. A plugin that calls on its own
// account names the session; in a hook it is that of the turn unless it is named.
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

// CodeStateEvicted says that sessions lost what a plugin kept for them.
const CodeStateEvicted = "state_evicted"

// stateService is the service "state".
func (e *Engine) stateService() Service {
	s := e.opts.State
	return Service{
		"get": {
			Doc:    "Returns {value}: what this plugin put last for the session, or null.",
			Params: json.RawMessage(stateGetSchema), Result: json.RawMessage(stateGetResult),
			Call: func(ctx context.Context, caller Caller, params json.RawMessage) (json.RawMessage, error) {
				key, _, err := stateKey(caller, params)
				if err != nil {
					return nil, err
				}
				value, err := s.GetState(ctx, key)
				if err != nil {
					return nil, err
				}
				return json.Marshal(map[string]json.RawMessage{"value": value})
			},
		},
		"put": {
			Doc:    fmt.Sprintf("Keeps {value}, any JSON of at most %d bytes, for the session; null removes it.", MaxState),
			Params: json.RawMessage(statePutSchema), Result: json.RawMessage(statePutResult),
			Call: func(ctx context.Context, caller Caller, params json.RawMessage) (json.RawMessage, error) {
				key, value, err := stateKey(caller, params)
				if err != nil {
					return nil, err
				}
				evicted, err := s.PutState(ctx, key, value)
				if evicted > 0 {
					e.emit(Event{
						Kind: EventDiagnostic, Plugin: key.Plugin, State: string(phases.SeverityWarning), Code: CodeStateEvicted,
						Message: fmt.Sprintf("the plugin keeps as much state as it may: the oldest values of %d sessions were evicted, and these begin anew", evicted),
					})
				}
				return json.RawMessage(`{}`), err
			},
		},
	}
}

// stateKey reads the parameters and says whose value is meant.
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

// maxMemoryState bounds the values of one plugin in memory, in bytes.
const maxMemoryState = 16 << 20

// memoryState is the State of an engine without a store: bounded, and gone when
// the process ends. Each plugin has room of its own: one that keeps too much
// loses nothing but its own.
type memoryState struct {
	mu      sync.Mutex
	plugins map[string]*pluginState
}

var _ State = (*memoryState)(nil)

func newMemoryState() *memoryState { return &memoryState{plugins: map[string]*pluginState{}} }

// GetState implements State.
func (m *memoryState) GetState(_ context.Context, k phases.StateKey) (json.RawMessage, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	v, _ := m.of(k.Plugin).values.Get(sessionKey(k.WorkspaceID, k.SessionID))
	return v, nil
}

// PutState implements State. The values that were put first go first, those of a
// workspace with many before others.
func (m *memoryState) PutState(_ context.Context, k phases.StateKey, value json.RawMessage) (evicted int, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.of(k.Plugin).put(k.WorkspaceID, sessionKey(k.WorkspaceID, k.SessionID), value), nil
}

// of returns the values of a plugin; the caller holds the lock.
func (m *memoryState) of(plugin string) *pluginState {
	p, ok := m.plugins[plugin]
	if !ok {
		p = &pluginState{values: recent.New[json.RawMessage](maxSessions)}
		m.plugins[plugin] = p
	}
	return p
}

// pluginState are the values of one plugin, by workspace and session.
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
