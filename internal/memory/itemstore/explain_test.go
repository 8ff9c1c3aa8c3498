package itemstore_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/grapnelhq/grapnel/internal/memory/itemstore"
	"github.com/grapnelhq/grapnel/internal/sqldb"
	"github.com/grapnelhq/grapnel/internal/tests/storetest"
)

// TestPostgresUsesItsIndexes asks PostgreSQL how it runs the statements of a recall, in
// each state of its statistics and each mode of planning. It finds the newest items of a
// term by the order of the index, without reading and sorting all items of the term, and
// it reads and adds up statistics by their whole key. It reads only the candidates and
// their scopes, and finds neighbours in the index of their order.
func TestPostgresUsesItsIndexes(t *testing.T) {
	t.Parallel()

	dsn := shared.NewDSN(t)
	s := open(t, dsn, itemstore.Options{})
	for _, table := range []string{"index", "counts", "deltas", "items", "scopes"} {
		storetest.Exec(t, dsn, "ALTER TABLE memory_"+table+" SET (autovacuum_enabled = off)")
	}
	a := newAuthor(1)
	remembered := func(batches int) {
		for range batches {
			write(t, s, a.batch())
		}
	}
	remembered(rounds(15, 40))
	storetest.Exec(t, dsn, itemstore.FoldDeltas)
	remembered(4)
	_, hits, counts := itemstore.Phrases(sqldb.Postgres)
	candidates, vocabulary := itemstore.Candidates(sqldb.Postgres)
	for _, state := range []string{"", "ANALYZE"} {
		if state != "" {
			storetest.Exec(t, dsn, state)
		}
		for _, mode := range []string{"force_generic_plan", "force_custom_plan"} {
			about := fmt.Sprintf("%q, %s", state, mode)
			plan := planOf(t, dsn, mode, "look(text[], int[], bigint) AS "+hits, fmt.Sprintf("look('{%s,%[1]s,qe}', '{1,2,1}', 200)", word(3)))
			if !strings.Contains(plan, "Index Only Scan Backward using memory_index_pkey") {
				t.Errorf("hits, %s:\n%s", about, plan)
			}
			plan = planOf(t, dsn, mode, "look(int[], text[]) AS "+counts, fmt.Sprintf("look('{1,2,3}', '{%s,qe,#items}')", word(3)))
			if strings.Count(plan, "Index Cond: ((shelf = ANY (") != 2 || strings.Count(plan, "AND (name = ANY (") != 2 || strings.Contains(plan, "Filter") {
				t.Errorf("counts, %s:\n%s", about, plan)
			}
			plan = planOf(t, dsn, mode, "look(int[], text[]) AS "+vocabulary, "look('{1,2}', '{qea}')")
			if strings.Count(plan, "Index Cond: ((shelf = s.shelf) AND (name >= p.letters) AND (name < (p.letters || '{'::text)))") != 2 {
				t.Errorf("vocabulary, %s:\n%s", about, plan)
			}
			plan = planOf(t, dsn, mode, "look(bigint[]) AS "+candidates, "look('{1,2,3,4,5,6,7,8}')")
			if !strings.Contains(plan, "Index Scan using memory_items_pkey") || !strings.Contains(plan, "Index Cond: (no = i.scope_no)") {
				t.Errorf("candidates, %s:\n%s", about, plan)
			}
			plan = planOf(t, dsn, mode, "look AS "+itemstore.FoldDeltas, "look")
			if strings.Contains(plan, "Seq Scan on memory_counts") || strings.Count(plan, "memory_counts_pkey") < 2 {
				t.Errorf("fold, %s:\n%s", about, plan)
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
	plan, _, _ := itemstore.Phrases(sqldb.Postgres)
	for _, text := range []string{"SET plan_cache_mode = " + mode, "BEGIN", plan, "PREPARE " + prepare} {
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
