package store_test

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/internal/tests/storetest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/store"
)

// testState: what a plugin put is there for it, its session and workspace alone,
// also for the next program that opens the database.
func (x suite) testState(t *testing.T) {
	dsn := x.newDSN(t)
	s := open(t, dsn, store.Options{Now: epoch})
	key := phases.StateKey{WorkspaceID: "w", SessionID: "s", Plugin: "p"}
	put := func(k phases.StateKey, value string) {
		t.Helper()
		var v json.RawMessage
		if value != "" {
			v = json.RawMessage(value)
		}
		if _, err := s.PutState(t.Context(), k, v); err != nil {
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
	_, err := s.PutState(t.Context(), key, json.RawMessage(`{`))
	wantCode(t, err, store.CodeInvalid)
	wants(s, key, `{"n":2,"text":"✓"}`)

	if got, err := s.Prune(t.Context(), store.Retention{Age: time.Hour}, epoch().Add(time.Hour)); err != nil || got.States != 0 {
		t.Errorf("retention before the time: %+v, %v", got, err)
	}
	if got, err := s.Prune(t.Context(), store.Retention{Age: time.Hour}, epoch().Add(time.Hour+1)); err != nil || got.States != 2 {
		t.Errorf("retention: %+v, %v", got, err)
	}
	wants(s, key, "")
	put(key, `1`)
	put(key, "")
	wants(s, key, "")
}

// wantStatesKept checks which values of a workspace are kept: those of numbered sessions
// from the first to before the end.
func wantStatesKept(t *testing.T, dsn, workspace string, first, end int) {
	t.Helper()
	var kept, least, most sql.NullInt64
	const query = `SELECT count(*), min(CAST(session_id AS INTEGER)), max(CAST(session_id AS INTEGER))
		FROM states WHERE plugin = 'p' AND workspace_id = $1`
	if err := storetest.Raw(t, dsn).QueryRowContext(t.Context(), query, workspace).Scan(&kept, &least, &most); err != nil {
		t.Fatal(err)
	}
	if int(kept.Int64) != end-first || first < end && (int(least.Int64) != first || int(most.Int64) != end-1) {
		t.Errorf("%s keeps %d values, %d to %d; want %d to %d", workspace, kept.Int64, least.Int64, most.Int64, first, end-1)
	}
}

// testStateEviction: one workspace that fills a plugin's state keeps no other from
// storing. The oldest values of the workspace that has the most go, and others only lose
// what is beyond an equal share. The total is bounded, however many calls run at once.
func (x suite) testStateEviction(t *testing.T) {
	dsn := x.newDSN(t)
	var clock atomic.Int64
	s := open(t, dsn, store.Options{LockTimeout: time.Minute, Now: func() time.Time { return epoch().Add(time.Duration(clock.Add(1))) }})
	value := json.RawMessage(`"` + strings.Repeat("x", 600_000) + `"`)
	put := func(workspace string, n int, v json.RawMessage) int {
		t.Helper()
		evicted, err := s.PutState(t.Context(), phases.StateKey{WorkspaceID: workspace, SessionID: fmt.Sprintf("%05d", n), Plugin: "p"}, v)
		if err != nil {
			t.Errorf("%s %d: %v", workspace, n, err)
		}
		return evicted
	}
	wantKept := func(workspace string, first, end int) { t.Helper(); wantStatesKept(t, dsn, workspace, first, end) }
	put("q-else", 0, json.RawMessage(`1`))
	size := len(value) + len("a") + 5 + 640
	most := store.MaxStateBytes / size // with room for small ones
	for n := range most {
		if got := put("a", n, value); got != 0 {
			t.Fatalf("%d evicted before it is full", got)
		}
	}
	wantKept("a", 0, most)
	wantStateTotals(t, dsn)

	put("b", 0, value) // a's oldest goes, not the put
	wantKept("a", 1, most)
	wantKept("b", 0, 1)
	for n := range 20 { // who fills it goes on at its own cost
		if got := put("a", most+n, value); got != 1 {
			t.Errorf("%d evicted", got)
		}
	}
	wantKept("a", 21, most+20)
	wantKept("b", 0, 1)
	put("a", 21, nil) // what is removed makes room
	if got := put("b", 1, value); got != 0 {
		t.Errorf("%d evicted where there is room", got)
	}
	put("b", 1, value) // in place of itself
	wantKept("b", 0, 2)
	wantStateTotals(t, dsn)

	var group sync.WaitGroup
	for n := range 40 {
		group.Go(func() { put([]string{"b", "c"}[n%2], 100+n/2, value) })
	}
	group.Wait()
	wantKept("c", 100, 120)
	wantStateTotals(t, dsn)

	if _, err := s.Prune(t.Context(), store.Retention{Age: time.Hour}, epoch().Add(2*time.Hour)); err != nil {
		t.Fatal(err)
	}
	for _, workspace := range []string{"a", "b", "c"} {
		wantKept(workspace, 0, 0)
	}
	wantStateTotals(t, dsn)
}

// wantStateTotals compares what is counted with what is there, and with the bound.
func wantStateTotals(t *testing.T, dsn string) {
	t.Helper()
	const query = `SELECT
		(SELECT coalesce(max(bytes), 0) FROM state_totals),
		(SELECT count(*) FROM state_totals o WHERE bytes <> (SELECT coalesce(sum(bytes), 0) FROM state_shares s WHERE s.plugin = o.plugin)),
		(SELECT count(*) FROM state_shares o WHERE bytes <> (SELECT coalesce(sum(640 + octet_length(workspace_id) + octet_length(session_id) + octet_length(value)), 0)
			FROM states s WHERE s.plugin = o.plugin AND s.workspace_id = o.workspace_id)),
		(SELECT count(*) FROM states s WHERE NOT EXISTS (SELECT 1 FROM state_shares o WHERE s.plugin = o.plugin AND s.workspace_id = o.workspace_id))`
	var most, totals, shares, uncounted int
	if err := storetest.Raw(t, dsn).QueryRowContext(t.Context(), query).Scan(&most, &totals, &shares, &uncounted); err != nil {
		t.Fatal(err)
	}
	if most > store.MaxStateBytes || totals+shares+uncounted != 0 {
		t.Errorf("the most is %d bytes; wrong: %d totals, %d shares; %d values are not counted", most, totals, shares, uncounted)
	}
}
