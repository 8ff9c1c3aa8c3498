package itemstore_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/grapnelhq/grapnel/plugins/memory/itemstore"
	"github.com/grapnelhq/grapnel/store/storetest"
)

// TestHitsUseTheIndex asks PostgreSQL how it finds the newest items of a term: by the
// order of the index, without reading all items of the term and sorting them, also
// before it has any statistics.
func TestHitsUseTheIndex(t *testing.T) {
	t.Parallel()

	dsn := shared.NewDSN(t)
	s := open(t, dsn, itemstore.Options{})
	storetest.Exec(t, dsn, "ALTER TABLE memory_index SET (autovacuum_enabled = off)")
	a := newAuthor(1)
	for range 40 {
		if _, err := s.Remember(t.Context(), a.batch()); err != nil {
			t.Fatal(err)
		}
	}
	for _, state := range []string{"", "ANALYZE memory_index"} {
		if state != "" {
			storetest.Exec(t, dsn, state)
		}
		for _, mode := range []string{"force_generic_plan", "force_custom_plan"} {
			plan := planOf(t, dsn, mode)
			if !strings.Contains(plan, "Index Only Scan Backward using memory_index_pkey") {
				t.Errorf("%q, %s:\n%s", state, mode, plan)
			}
		}
	}
}

func planOf(t *testing.T, dsn, mode string) string {
	t.Helper()
	conn, err := storetest.Raw(t, dsn).Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	plan, hits := itemstore.Hits()
	for _, text := range []string{"SET plan_cache_mode = " + mode, "BEGIN", plan, "PREPARE look(text[], int[], bigint) AS " + hits} {
		if _, err := conn.ExecContext(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	rows, err := conn.QueryContext(t.Context(), fmt.Sprintf("EXPLAIN ANALYZE EXECUTE look('{%s,qe}', '{1,2,3,4}', 200)", word(3)))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	var lines strings.Builder
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			t.Fatal(err)
		}
		lines.WriteString(line + "\n")
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return lines.String()
}
