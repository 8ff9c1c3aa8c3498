package itemstore_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/grapnelhq/grapnel/internal/memory/itemstore"
	"github.com/grapnelhq/grapnel/internal/tests/storetest"
)

// TestPostgresUsesItsIndexes asks PostgreSQL how it runs the statements of a recall, in
// each state of its statistics and each mode of planning. It finds the newest items of a
// term by the order of the index, without reading and sorting all items of the term, and
// it reads and adds up statistics by their whole key. It reads only the candidates and
// their scopes.
func TestPostgresUsesItsIndexes(t *testing.T) {
	t.Parallel()

	dsn := shared.NewDSN(t)
	s := open(t, dsn, itemstore.Options{})
	for _, table := range []string{"index", "counts", "deltas", "items", "scopes"} {
		storetest.Exec(t, dsn, "ALTER TABLE memory_"+table+" SET (autovacuum_enabled = off)")
	}
	a, said := newAuthor(1), itemstore.PostgresStatements()
	for n := range rounds(15, 40) + 4 {
		if n == rounds(15, 40) {
			storetest.Exec(t, dsn, said.Fold)
		}
		write(t, s, a.batch())
	}
	statements := []struct {
		name, prepare, execute string
		has                    map[string]int // how often the plan has a text; -1 is never
	}{
		{
			"hits", "look(text[], int[], bigint) AS " + said.Hits, fmt.Sprintf("look('{%s,%[1]s,qe}', '{1,2,1}', 200)", word(3)),
			map[string]int{"Index Only Scan Backward using memory_index_pkey": 1},
		},
		{
			"counts", "look(int[], text[]) AS " + said.Counts, fmt.Sprintf("look('{1,2,3}', '{%s,qe,#items}')", word(3)),
			map[string]int{"Index Cond: ((shelf = ANY (": 2, "AND (name = ANY (": 2, "Filter": -1},
		},
		{
			"vocabulary", "look(int[], text[]) AS " + said.Vocabulary, "look('{1,2}', '{qea}')",
			map[string]int{"Index Cond: ((shelf = s.shelf) AND (name >= p.letters) AND (name < (p.letters || '{'::text)))": 2},
		},
		{
			"candidates", "look(bigint[]) AS " + said.Candidates, "look('{1,2,3,4,5,6,7,8}')",
			map[string]int{"Index Scan using memory_items_pkey": 1, "Index Cond: (no = i.scope_no)": 1},
		},
		{"fold", "look AS " + said.Fold, "look", map[string]int{"Seq Scan on memory_counts": -1, "memory_counts_pkey": 2}},
	}
	for _, state := range []string{"SELECT", "ANALYZE"} {
		storetest.Exec(t, dsn, state)
		for _, mode := range []string{"force_generic_plan", "force_custom_plan"} {
			for _, s := range statements {
				plan := planOf(t, dsn, mode, s.prepare, s.execute)
				for part, n := range s.has {
					if got := strings.Count(plan, part); got < n || n < 0 && got > 0 {
						t.Errorf("%s, %s, %s: %d times %q:\n%s", s.name, state, mode, got, part, plan)
					}
				}
			}
		}
	}
}

// planOf is how PostgreSQL runs a prepared statement.
func planOf(t *testing.T, dsn, mode, prepare, execute string) string {
	t.Helper()
	conn, err := storetest.Raw(t, dsn).Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		_, err := conn.ExecContext(context.WithoutCancel(t.Context()), "ROLLBACK")
		if err = errors.Join(err, conn.Close()); err != nil {
			t.Error(err)
		}
	}()
	for _, text := range []string{"SET plan_cache_mode = " + mode, "BEGIN", itemstore.PostgresStatements().Plan, "PREPARE " + prepare} {
		if _, err := conn.ExecContext(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	rows, err := conn.QueryContext(t.Context(), "EXPLAIN ANALYZE EXECUTE "+execute)
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
