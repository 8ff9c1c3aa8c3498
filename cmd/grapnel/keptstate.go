package main

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/internal/engine/hostservice"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
	"github.com/grapnelhq/grapnel/store"
)

// keptState is the state of plugins in a command that records nothing: what the store has, and on top of it, in memory,
// what plugins put. The store is opened when a plugin asks, and not changed.
type keptState struct {
	runtime.State

	ref  storeRef
	open func(context.Context) (*store.Store, error)
	once sync.Once
	kept *store.Store // nil where there is none yet
	err  error        // why it cannot be read
}

// keptState returns nil where no store is named or made.
func (a *app) keptState(cfg *config.Config) *keptState {
	from, err := a.configOrigin()
	if err != nil {
		return nil
	}
	ref, err := a.storeWanted(cfg, from)
	if err != nil {
		return nil
	}
	return &keptState{State: hostservice.NewMemoryState(), ref: ref, open: func(ctx context.Context) (*store.Store, error) {
		return openStore(ctx, ref, cfg, store.Options{ReadOnly: true})
	}}
}

// GetState prefers what was put here, also that a value was removed.
func (s *keptState) GetState(ctx context.Context, k phases.StateKey) (json.RawMessage, error) {
	if v, err := s.State.GetState(ctx, k); v != nil || err != nil {
		if string(v) == "null" {
			v = nil
		}
		return v, err
	}
	s.once.Do(func() {
		if s.kept, s.err = s.open(context.WithoutCancel(ctx)); store.HasCode(s.err, store.CodeNotFound) {
			s.err = nil
		}
	})
	if s.err != nil || s.kept == nil {
		return nil, s.err
	}
	return s.kept.GetState(ctx, k)
}

// PutState keeps the value as long as the command runs.
func (s *keptState) PutState(ctx context.Context, k phases.StateKey, value json.RawMessage) (evicted int, err error) {
	if value == nil {
		value = json.RawMessage("null")
	}
	return s.State.PutState(ctx, k, value)
}

// close is called after the last plugin has ended. It reports what could not be read.
func (s *keptState) close(a *app) {
	if s.err != nil {
		reportf(a.err, "grapnel: what plugins have kept could not be read: %s: %v\n", s.ref.name, oneLine{s.err})
	}
	if s.kept != nil {
		_ = s.kept.Close() // nothing was written
	}
}
