package store_test

import (
	"os"
	"strings"
	"testing"

	"github.com/grapnelhq/grapnel/internal/tests/storetest"
	"github.com/grapnelhq/grapnel/store"
)

// TestProbeUnlinkedFile: a SQLite file that was removed, moved or replaced while it is
// open takes writes that nobody finds again. The probe says so.
func TestProbeUnlinkedFile(t *testing.T) {
	t.Parallel()

	for name, spoil := range map[string]func(path string) error{
		"removed":  os.Remove,
		"replaced": replace,
		"its log":  func(path string) error { return os.Remove(path + "-wal") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			dsn := storetest.SQLite(t)
			s := open(t, dsn, store.Options{})
			fillThread(t, s, "w", "t", 0, 1)
			for range 3 {
				if err := s.DB().Probe(t.Context()); err != nil {
					t.Fatalf("before: %v", err)
				}
			}
			wantGood(t, s, 1)
			if err := spoil(pathOf(dsn)); err != nil {
				t.Fatal(err)
			}
			wantError(t, s.DB().Probe(t.Context()), store.CodeNotFound, "put the file or a backup back")
		})
	}
}

// replace puts another file in a file's place.
func replace(path string) error {
	if err := os.Rename(path, path+".old"); err != nil {
		return err
	}
	return os.WriteFile(path, nil, 0o600)
}

// TestProbeReadOnlyPostgres: a server that answers and takes no changes is not well.
func TestProbeReadOnlyPostgres(t *testing.T) {
	t.Parallel()

	dsn := shared.NewDSN(t)
	s := open(t, dsn, store.Options{})
	if err := s.DB().Probe(t.Context()); err != nil {
		t.Fatalf("before: %v", err)
	}
	storetest.Exec(t, dsn, "ALTER DATABASE "+dsn[len("postgres:///"):strings.Index(dsn, "?")]+" SET default_transaction_read_only = on")
	wantError(t, open(t, dsn, store.Options{}).DB().Probe(t.Context()), store.CodePermission, "default_transaction_read_only")
}
