package itemstore_test

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/internal/memory/itemstore"
	"github.com/grapnelhq/grapnel/internal/sqldb"
	"github.com/grapnelhq/grapnel/internal/tests/storetest"
)

// down takes a database back to the first schema, by the migrations' own words.
func down(t *testing.T, dsn string) {
	t.Helper()
	folder := "sqlite"
	if isPostgres(dsn) {
		folder = "postgres"
	}
	for _, name := range []string{folder + "/00004_no_order.sql", folder + "/00003_order.sql", folder + "/00002_counts.sql"} {
		data, err := os.ReadFile(filepath.Join("migrations", filepath.FromSlash(name)))
		if err != nil {
			t.Fatal(err)
		}
		_, text, ok := strings.Cut(string(data), "-- +goose Down\n")
		if !ok {
			t.Fatalf("%s has no way down", name)
		}
		for statement := range strings.SplitSeq(strings.TrimSpace(text), ";\n") {
			storetest.Exec(t, dsn, strings.TrimSuffix(statement, ";"))
		}
	}
	storetest.Exec(t, dsn, "DELETE FROM memory_migrations WHERE version_id > 1")
}

// TestUpgrade: a database whose statistics are about the whole store gets those of each
// scope, and answers as if it had never been another.
func TestUpgrade(t *testing.T) {
	storetest.SkipShort(t)
	t.Parallel()

	storetest.Both(t, shared.NewDSN, func(t *testing.T, dsn string) {
		c := newClock()
		s := open(t, dsn, fixed(c))
		r := rand.New(rand.NewPCG(61, 62))
		remember(t, s, tenantItems()...)
		for _, workspace := range []string{"v", "w", ""} {
			write(t, s, neighbour(r, workspace))
		}
		someItems(t, s, c)
		forget(t, s, list(t, s, everything("w"))[3].ID)
		want := answers(t, s, c.Now())
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		down(t, dsn)
		storetest.Exec(t, dsn, "INSERT INTO memory_counts (name, n) VALUES ('#items', 9), ('katharina', 7)") // of the whole store
		_, err := itemstore.Open(t.Context(), dsn, itemstore.Options{ReadOnly: true})
		wantCode(t, err, sqldb.CodeSchema)
		s = open(t, dsn, fixed(c))
		checkIndex(t, dsn)
		if diff := cmp.Diff(want, answers(t, s, c.Now())); diff != "" {
			t.Errorf("(-before +after):\n%.3000s", diff)
		}
		remember(t, s, fact("Katharina is back"))
		checkIndex(t, dsn)
		// A program of before makes its own statistics when it is put back.
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		down(t, dsn)
		open(t, dsn, fixed(c))
		checkIndex(t, dsn)
		if got := statistics(t, dsn); len(got) == 0 {
			t.Error("no statistics")
		}
	})
}

// statistics are the rows of the statistics, as they are in the tables.
func statistics(t *testing.T, dsn string) []string {
	t.Helper()
	text := "SELECT name FROM memory_counts"
	if isPostgres(dsn) {
		text += " UNION ALL SELECT name FROM memory_deltas"
	}
	tx, err := storetest.Raw(t, dsn).BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	var rows []string
	query(t, tx, text, func(scan func(...any) error) {
		var name string
		if err := scan(&name); err != nil {
			t.Fatal(err)
		}
		rows = append(rows, name)
	})
	slices.Sort(rows)
	return rows
}
