package itemstore_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/internal/memory/itemstore"
	"github.com/grapnelhq/grapnel/internal/memory/recall"
	"github.com/grapnelhq/grapnel/internal/sqldb"
	"github.com/grapnelhq/grapnel/internal/tests/storetest"
)

// TestOpenRefused: databases that cannot be opened, with a code and a remedy.
func TestOpenRefused(t *testing.T) {
	t.Parallel()

	file := func(content string) string {
		path := filepath.Join(t.TempDir(), "memory.db")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return "sqlite:" + path
	}
	foreign := storetest.SQLite(t)
	storetest.Exec(t, foreign, "CREATE TABLE recipes (name TEXT)")
	newer := storetest.SQLite(t)
	remember(t, open(t, newer, itemstore.Options{}), fact("x"))
	storetest.Exec(t, newer, "INSERT INTO memory_migrations (version_id, is_applied) VALUES (99, 1)")
	secretless := storetest.SQLite(t)
	open(t, secretless, itemstore.Options{})
	storetest.Exec(t, secretless, "UPDATE memory_meta SET value = 'xyz' WHERE name = 'secret'")
	for name, tt := range map[string]struct {
		dsn  string
		o    itemstore.Options
		code sqldb.Code
	}{
		"no database":    {file(strings.Repeat("no database ", 1000)), itemstore.Options{}, sqldb.CodeDamaged},
		"foreign":        {foreign, itemstore.Options{}, sqldb.CodeSchema},
		"newer":          {newer, itemstore.Options{}, sqldb.CodeSchema},
		"not there":      {"sqlite:" + filepath.Join(t.TempDir(), "none.db"), itemstore.Options{ReadOnly: true}, sqldb.CodeNotFound},
		"without key":    {secretless, itemstore.Options{}, sqldb.CodeDamaged},
		"empty, to read": {file(""), itemstore.Options{ReadOnly: true}, sqldb.CodeSchema},
	} {
		s, err := itemstore.Open(t.Context(), tt.dsn, tt.o)
		var e *sqldb.Error
		if !errors.As(err, &e) || e.Code != tt.code || e.Hint == "" {
			t.Errorf("%s: %v, want the code %s", name, err, tt.code)
		}
		if s != nil {
			t.Errorf("%s: a store", name)
		}
	}
}

// TestDamagedIndex: a full-text index that is damaged is told from one that finds
// nothing; what needs no index goes on.
func TestDamagedIndex(t *testing.T) {
	t.Parallel()

	dsn := storetest.SQLite(t)
	s := open(t, dsn, itemstore.Options{})
	remember(t, s, fact("alpha"))
	storetest.Exec(t, dsn, "UPDATE memory_index_data SET block = x'00ff00ff' WHERE id > 10")
	_, err := s.Recall(t.Context(), everything("w"), recall.Read("alpha"), time.Now())
	wantCode(t, err, sqldb.CodeDamaged)
	if got := list(t, s, everything("w")); len(got) != 1 {
		t.Errorf("%+v", got)
	}
}

// TestForgetWithoutRoom: a database that cannot grow forgets all the same.
func TestForgetWithoutRoom(t *testing.T) {
	t.Parallel()

	dsn := storetest.SQLite(t)
	s := open(t, dsn, itemstore.Options{})
	id := remember(t, s, fact("a"), fact("b"))[0].Item.ID
	if err := s.Limit(t.Context(), 1); err != nil { // as many pages as there are
		t.Fatal(err)
	}
	removed, err := s.Forget(t.Context(), everything("w"), []string{id})
	if err != nil || len(removed.IDs) != 1 {
		t.Errorf("%+v, %v", removed, err)
	}
	if got := list(t, s, everything("w")); len(got) != 1 {
		t.Errorf("%+v", got)
	}
}
