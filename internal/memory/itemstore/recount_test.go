package itemstore_test

import (
	"database/sql"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/internal/memory/recall"
	"github.com/grapnelhq/grapnel/internal/tests/storetest"
)

// checkIndex counts again what the store has counted, shelf by shelf, looks whether the index has
// all items in effect under each of their terms, and nothing else, and asks SQLite
// whether its file is whole.
func checkIndex(tb testing.TB, dsn string) {
	tb.Helper()
	db := storetest.Raw(tb, dsn)
	tx, err := db.BeginTx(tb.Context(), &sql.TxOptions{Isolation: sql.LevelSerializable})
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	counts, entries := map[string]int{}, []string{}
	query(tb, tx, `SELECT i.seq, s.workspace_id, s.scope, s.scope_id, i.category, i.text FROM memory_items i JOIN memory_scopes s ON s.no = i.scope_no
		WHERE i.superseded_by IS NULL`, func(scan func(...any) error) {
		var seq int64
		var workspace, scope, id, category, text string
		if err := scan(&seq, &workspace, &scope, &id, &category, &text); err != nil {
			tb.Fatal(err)
		}
		terms, length := recall.Index(text)
		if category == "instruction" {
			terms[""] = 1
		}
		shelves := []string{shelf(workspace, scope, id)}
		if scope != "workspace" {
			shelves = append(shelves, shelf(workspace, "rest", ""))
		}
		if scope == "user" {
			shelves = append(shelves, shelf("", "everywhere", id))
		}
		for _, s := range shelves {
			counts[s+"#items"]++
			counts[s+"#length"] += length
			for term := range terms {
				if term != "" {
					counts[s+term]++
				}
				entries = append(entries, fmt.Sprint(s, term, " ", seq))
			}
		}
	})
	if diff := cmp.Diff(counts, keptCounts(tb, tx, isPostgres(dsn))); diff != "" {
		tb.Errorf("statistics (-counted again +kept):\n%s", diff)
	}
	slices.Sort(entries)
	if diff := cmp.Diff(entries, keptEntries(tb, tx, isPostgres(dsn))); diff != "" {
		tb.Errorf("index (-made again +kept):\n%s", diff)
	}
	if !isPostgres(dsn) {
		checkFile(tb, dsn)
	}
}

func shelf(workspace, scope, id string) string {
	return fmt.Sprintf("%q %s %q: ", workspace, scope, id)
}

// keptCounts are the statistics of the store. SQLite has none that are 0: no word of
// what was forgotten.
func keptCounts(tb testing.TB, tx *sql.Tx, postgres bool) map[string]int {
	tb.Helper()
	text := "SELECT shelf, name, n FROM memory_counts"
	if postgres {
		text = `SELECT shelf, name, sum(n) FROM (SELECT shelf, name, n FROM memory_counts UNION ALL SELECT shelf, name, n FROM memory_deltas WHERE shelf <> 0) c
			GROUP BY shelf, name HAVING sum(n) <> 0`
	}
	counts, names := map[string]int{}, shelfNames(tb, tx)
	query(tb, tx, text, func(scan func(...any) error) {
		var shelf int64
		var name string
		var n int
		if err := scan(&shelf, &name, &n); err != nil {
			tb.Fatal(err)
		}
		counts[names[shelf]+name] = n
	})
	return counts
}

// keptEntries are what the index has, sorted.
func keptEntries(tb testing.TB, tx *sql.Tx, postgres bool) []string {
	tb.Helper()
	text := "SELECT shelf, term, seq FROM memory_index"
	if !postgres {
		if _, err := tx.ExecContext(tb.Context(), "CREATE VIRTUAL TABLE temp.entries USING fts5vocab ('main', 'memory_index', 'instance')"); err != nil {
			tb.Fatal(err)
		}
		text = "SELECT CAST(substr(term, 1, instr(term, 'x') - 1) AS INTEGER), substr(term, instr(term, 'x') + 1), doc FROM temp.entries"
	}
	entries, names := []string{}, shelfNames(tb, tx)
	query(tb, tx, text, func(scan func(...any) error) {
		var shelf, seq int64
		var term string
		if err := scan(&shelf, &term, &seq); err != nil {
			tb.Fatal(err)
		}
		entries = append(entries, fmt.Sprint(names[shelf], term, " ", seq))
	})
	slices.Sort(entries)
	return entries
}

// shelfNames are the names of shelves by their numbers.
func shelfNames(tb testing.TB, tx *sql.Tx) map[int64]string {
	tb.Helper()
	names := map[int64]string{}
	query(tb, tx, "SELECT no, workspace_id, scope, scope_id FROM memory_scopes", func(scan func(...any) error) {
		var no int64
		var workspace, scope, id string
		if err := scan(&no, &workspace, &scope, &id); err != nil {
			tb.Fatal(err)
		}
		names[no] = shelf(workspace, scope, id)
	})
	return names
}

func query(tb testing.TB, tx *sql.Tx, text string, row func(scan func(...any) error)) {
	tb.Helper()
	rows, err := tx.QueryContext(tb.Context(), text)
	if err != nil {
		tb.Fatalf("%s: %v", text, err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		row(rows.Scan)
	}
	if err := rows.Err(); err != nil {
		tb.Fatalf("%s: %v", text, err)
	}
}

// checkFile asks SQLite whether a database and its full-text index are whole.
func checkFile(tb testing.TB, dsn string) {
	tb.Helper()
	db := storetest.Raw(tb, dsn)
	var answer string
	if err := db.QueryRowContext(tb.Context(), "PRAGMA integrity_check").Scan(&answer); err != nil || answer != "ok" {
		tb.Errorf("integrity_check: %s, %v", answer, err)
	}
	if _, err := db.ExecContext(tb.Context(), "INSERT INTO memory_index (memory_index) VALUES ('integrity-check')"); err != nil {
		tb.Errorf("the full-text index: %v", err)
	}
}
