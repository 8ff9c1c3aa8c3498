package storetest

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/store"
)

// testState: what a plugin put is there for it, its session and workspace alone,
// also for the next program that opens the database.
func (x suite) testState(t *testing.T) {
	dsn := x.newDSN(t)
	s := open(t, dsn, store.Options{Now: Epoch})
	key := phases.StateKey{WorkspaceID: "w", SessionID: "s", Plugin: "p"}
	put := func(k phases.StateKey, value string) {
		t.Helper()
		var v json.RawMessage
		if value != "" {
			v = json.RawMessage(value)
		}
		if err := s.PutState(t.Context(), k, v); err != nil {
			t.Fatal(err)
		}
	}
	wants := func(s *store.Store, k phases.StateKey, want string) {
		t.Helper()
		if got, err := s.GetState(t.Context(), k); err != nil || string(got) != want {
			t.Errorf("state of %v: %s, %v; want %s", k, got, err, want)
		}
	}
	wants(s, key, "")
	put(key, `{"n":1}`)
	put(key, `{"n":2,"text":"✓"}`)
	put(phases.StateKey{WorkspaceID: "w", SessionID: "s2", Plugin: "p"}, `null`)
	again := open(t, dsn, store.Options{})
	wants(again, key, `{"n":2,"text":"✓"}`)
	for _, other := range []phases.StateKey{{SessionID: "s", Plugin: "p"}, {WorkspaceID: "w", Plugin: "p"}, {WorkspaceID: "w", SessionID: "s", Plugin: "q"}} {
		wants(again, other, "")
	}
	wantCode(t, s.PutState(t.Context(), key, json.RawMessage(`{`)), store.CodeInvalid)
	wants(s, key, `{"n":2,"text":"✓"}`)

	if got, err := s.Prune(t.Context(), store.Retention{Age: time.Hour}, Epoch().Add(time.Hour)); err != nil || got.States != 0 {
		t.Errorf("retention before the time: %+v, %v", got, err)
	}
	if got, err := s.Prune(t.Context(), store.Retention{Age: time.Hour}, Epoch().Add(time.Hour+1)); err != nil || got.States != 2 {
		t.Errorf("retention: %+v, %v", got, err)
	}
	wants(s, key, "")
	put(key, `1`)
	put(key, "")
	wants(s, key, "")
}
