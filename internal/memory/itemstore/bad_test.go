package itemstore_test

import (
	"context"
	"errors"
	"fmt"
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
		"no DSN":         {"", itemstore.Options{}, sqldb.CodeDSN},
		"no path":        {"sqlite:", itemstore.Options{}, sqldb.CodeDSN},
		"no database":    {file(strings.Repeat("no database ", 1000)), itemstore.Options{}, sqldb.CodeDamaged},
		"foreign":        {foreign, itemstore.Options{}, sqldb.CodeSchema},
		"newer":          {newer, itemstore.Options{}, sqldb.CodeSchema},
		"not there":      {"sqlite:" + filepath.Join(t.TempDir(), "none.db"), itemstore.Options{ReadOnly: true}, sqldb.CodeNotFound},
		"without key":    {secretless, itemstore.Options{}, sqldb.CodeDamaged},
		"no server":      {"postgres:///x?host=/nonexistent&sslmode=disable", itemstore.Options{}, sqldb.CodeUnreachable},
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

// TestDamaged writes rubbish over most of a database that is open. Reading and writing
// end with an error that says so, and nothing panics.
func TestDamaged(t *testing.T) {
	storetest.SkipShort(t)
	t.Parallel()

	dsn := storetest.SQLite(t)
	s := open(t, dsn, itemstore.Options{})
	var items []itemstore.Item
	for n := range itemstore.MaxBatch {
		items = append(items, fact(fmt.Sprint(n, strings.Repeat(" word", 100))))
	}
	for n := range 10 {
		items[0].Text = fmt.Sprint("batch ", n)
		remember(t, s, items...)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	path := strings.TrimPrefix(dsn, "sqlite:")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for n := 12 * 4096; n < len(data); n++ {
		data[n] = byte(n * 7)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	s, err = itemstore.Open(t.Context(), dsn, itemstore.Options{})
	if err != nil {
		wantCode(t, err, sqldb.CodeDamaged)
		return
	}
	defer func() { _ = s.Close() }()
	for name, call := range callsOf(s) {
		if err := call(t.Context()); !sqldb.HasCode(err, sqldb.CodeDamaged) {
			t.Errorf("%s: %v", name, err)
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

// callsOf are calls of all kinds.
func callsOf(s *itemstore.Store) map[string]func(ctx context.Context) error {
	v := everything("w")
	return map[string]func(ctx context.Context) error{
		"remember": func(ctx context.Context) error {
			_, err := s.Remember(ctx, itemstore.Batch{WorkspaceID: "w", Items: []itemstore.Item{fact("y")}})
			return err
		},
		"list": func(ctx context.Context) error {
			_, _, err := s.List(ctx, v, itemstore.Filter{}, itemstore.Page{})
			return err
		},
		"search": func(ctx context.Context) error { _, err := search(ctx, s, v, "word 7", 0); return err },
		"stats":  func(ctx context.Context) error { _, err := s.Stats(ctx, v); return err },
		"used": func(ctx context.Context) error {
			return s.Used(ctx, v, []string{"01K0000000000000000000000A"}, time.Now())
		},
		"forget": func(ctx context.Context) error {
			_, err := s.Forget(ctx, v, []string{"01K0000000000000000000000A"})
			return err
		},
	}
}

// TestLocked has somebody else who keeps the database locked. Changes say after a
// while that it is; reading goes on.
func TestLocked(t *testing.T) {
	t.Parallel()

	storetest.Both(t, shared.NewDSN, func(t *testing.T, dsn string) {
		remember(t, open(t, dsn, itemstore.Options{}), fact("x"))
		impatient := open(t, dsn, itemstore.Options{LockTimeout: 300 * time.Millisecond})
		patient := open(t, dsn, itemstore.Options{LockTimeout: time.Hour})
		holder, err := storetest.Raw(t, dsn).BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		lock := "UPDATE memory_items SET uses = uses"
		if isPostgres(dsn) {
			lock = "LOCK TABLE memory_items IN EXCLUSIVE MODE"
		}
		if _, err := holder.ExecContext(t.Context(), lock); err != nil {
			t.Fatal(err)
		}
		b := itemstore.Batch{WorkspaceID: "w", Key: "k", Items: []itemstore.Item{fact("y")}}
		_, err = impatient.Remember(t.Context(), b)
		wantCode(t, err, sqldb.CodeLocked)
		if hits, err := search(t.Context(), impatient, everything("w"), "x", 0); err != nil || len(hits) != 1 {
			t.Errorf("reading meanwhile: %+v, %v", hits, err)
		}
		cause := errors.New("no more time")
		ctx, cancel := context.WithTimeoutCause(t.Context(), 50*time.Millisecond, cause)
		defer cancel()
		if _, err := patient.Remember(ctx, b); !errors.Is(err, cause) {
			t.Errorf("a context that ends: %v", err)
		}
		if err := holder.Rollback(); err != nil {
			t.Fatal(err)
		}
		if got := write(t, patient, b); got[0].Change != itemstore.Added {
			t.Errorf("after the lock: %+v", got)
		}
	})
}

// TestFull fills a database that may not grow. What was acknowledged is there, and it
// goes on when there is room.
func TestFull(t *testing.T) {
	t.Parallel()

	dsn := storetest.SQLite(t)
	s := open(t, dsn, itemstore.Options{})
	if err := s.Limit(t.Context(), 120); err != nil {
		t.Fatal(err)
	}
	var err error
	kept := 0
	for n := 0; err == nil; n++ {
		var items []itemstore.Item
		for m := range 8 {
			items = append(items, fact(fmt.Sprint("batch ", n, " item ", m, strings.Repeat(" and so on", 60))))
		}
		if _, err = s.Remember(t.Context(), itemstore.Batch{WorkspaceID: "w", Items: items}); err == nil {
			kept += len(items)
		}
	}
	wantCode(t, err, sqldb.CodeFull)
	if got := list(t, s, everything("w")); len(got) != kept || kept < 16 {
		t.Errorf("%d items, %d were acknowledged", len(got), kept)
	}
	if err := s.Limit(t.Context(), 100_000); err != nil {
		t.Fatal(err)
	}
	remember(t, s, fact("room again"))
	checkIndex(t, dsn)
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
