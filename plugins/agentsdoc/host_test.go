package agentsdoc

import (
	"context"
	"encoding/json"
	"errors"
	"sync"

	"github.com/grapnelhq/grapnel/internal/agentsdoc/thread"
	"github.com/grapnelhq/grapnel/phases"
)

// fakeHost keeps state as a host does.
type fakeHost struct {
	// documents answers for the service of that name; nil is a host without it.
	documents func(ctx context.Context, params string) (string, error)
	// fail makes every call of the service fail.
	fail bool

	mu         sync.Mutex
	values     map[string]json.RawMessage // by workspace and session
	gets, puts int
}

var _ phases.Host = (*fakeHost)(nil)

func (h *fakeHost) Call(ctx context.Context, service, method string, params json.RawMessage) (json.RawMessage, error) {
	if service == thread.Service && h.documents != nil {
		answer, err := h.documents(ctx, string(params))
		return json.RawMessage(answer), err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	var p struct {
		Workspace string          `json:"workspace_id"`
		Session   string          `json:"session_id"`
		Value     json.RawMessage `json:"value"`
	}
	if err := json.Unmarshal(params, &p); err != nil {
		return nil, err
	}
	switch {
	case h.fail:
		return nil, phases.Errorf(phases.CauseUnavailable, "the store is away")
	case service != stateService || p.Session == "":
		return nil, errors.New("no such call")
	case method == "get":
		h.gets++
		return json.Marshal(map[string]json.RawMessage{"value": h.values[p.Workspace+"/"+p.Session]})
	}
	h.puts++
	if h.values == nil {
		h.values = map[string]json.RawMessage{}
	}
	h.values[p.Workspace+"/"+p.Session] = p.Value
	return json.RawMessage(`{}`), nil
}

func (h *fakeHost) Invalidate(context.Context, phases.Invalidation) error { return nil }
