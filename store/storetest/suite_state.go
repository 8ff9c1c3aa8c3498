package storetest

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
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

// testStateTotal: a plugin keeps so much and no more, whatever the workspaces that it
// names and however many calls run at once. What it removes makes room again.
func (x suite) testStateTotal(t *testing.T) {
	dsn := x.newDSN(t)
	s := open(t, dsn, store.Options{Now: Epoch})
	value := func(n int) json.RawMessage { return json.RawMessage(`"` + strings.Repeat("x", n-2) + `"`) }
	put := func(plugin string, n, size int) error {
		k := phases.StateKey{WorkspaceID: fmt.Sprintf("w%03d", n), SessionID: "sess", Plugin: plugin}
		if size == 0 {
			return s.PutState(t.Context(), k, nil)
		}
		return s.PutState(t.Context(), k, value(size))
	}
	full := func(err error) {
		t.Helper()
		if phases.CodeOf(err) != phases.CauseOverloaded || !strings.Contains(err.Error(), "prune") {
			t.Errorf("a plugin that keeps too much: %v", err)
		}
	}
	fine := func(err error) {
		t.Helper()
		if err != nil {
			t.Error(err)
		}
	}
	fine(put("p", 0, 1000))
	fine(put("q", 0, 1000))
	wantTotal(t, dsn, 1, 1008)

	// Room for ten more of 1,000 bytes, taken by forty at once.
	Exec(t, dsn, fmt.Sprintf("UPDATE state_totals SET bytes = %d WHERE plugin = 'p'", store.MaxStateBytes-10_080))
	var group sync.WaitGroup
	var refused atomic.Int32
	for n := range 40 {
		group.Go(func() {
			if err := put("p", 1+n%20, 1000); err != nil {
				full(err)
				refused.Add(1)
			}
		})
	}
	group.Wait()
	wantTotal(t, dsn, 11, store.MaxStateBytes)
	if n := refused.Load(); n < 10 || n > 30 {
		t.Errorf("%d of 40 were refused", n)
	}
	full(put("p", 100, 2))
	fine(put("q", 1, 1000)) // another plugin's room is its own
	fine(put("p", 0, 990))  // shorter than before
	fine(put("p", 200, 2))
	full(put("p", 201, 2))
	fine(put("p", 0, 0))
	fine(put("p", 0, 0)) // removing what is not there changes nothing
	wantTotal(t, dsn, 11, store.MaxStateBytes-998)

	Exec(t, dsn, fmt.Sprintf("UPDATE state_totals SET kept = %d WHERE plugin = 'q'", store.MaxStates))
	full(put("q", 2, 2))
	fine(put("q", 1, 500))

	// Retention counts anew.
	if _, err := s.Prune(t.Context(), store.Retention{Age: time.Hour}, Epoch().Add(2*time.Hour)); err != nil {
		t.Fatal(err)
	}
	wantTotal(t, dsn, 0, 0)
	fine(put("p", 100, 1000))
	fine(put("q", 100, 1000))
}

// wantTotal compares what is counted for the plugin "p".
func wantTotal(t *testing.T, dsn string, kept, bytes int) {
	t.Helper()
	var gotKept, gotBytes int
	const query = "SELECT kept, bytes FROM state_totals WHERE plugin = 'p'"
	if err := Raw(t, dsn).QueryRowContext(t.Context(), query).Scan(&gotKept, &gotBytes); err != nil || gotKept != kept || gotBytes != bytes {
		t.Errorf("p keeps %d values with %d bytes, %v; want %d with %d", gotKept, gotBytes, err, kept, bytes)
	}
}
