package agentsdoc_test

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

// memStore keeps state over the life of several engines.
type memStore struct {
	mu     sync.Mutex
	values map[phases.StateKey]json.RawMessage
}

var _ runtime.State = (*memStore)(nil)

func newStore() *memStore { return &memStore{values: map[phases.StateKey]json.RawMessage{}} }

func (s *memStore) GetState(_ context.Context, k phases.StateKey) (json.RawMessage, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.values[k], nil
}

func (s *memStore) PutState(_ context.Context, k phases.StateKey, value json.RawMessage) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.values[k] = value
	return 0, nil
}
