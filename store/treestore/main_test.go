package treestore_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/store/schema"
	"github.com/grapnelhq/grapnel/store/sqldb"
	"github.com/grapnelhq/grapnel/store/storetest"
	"github.com/grapnelhq/grapnel/store/treestore"
	"github.com/grapnelhq/grapnel/tree"
	"github.com/grapnelhq/grapnel/tree/treetest"
)

// server is the PostgreSQL of this run.
type server struct {
	storetest.Shared

	mu    sync.Mutex
	spare []string // databases that nobody has yet
}

var shared server

// TestMain also is the programs that other tests start.
func TestMain(m *testing.M) {
	if code, ok := programs().Run(context.Background()); ok {
		os.Exit(code)
	}
	os.Exit(shared.Main(m))
}

// newPostgres returns an empty database. They are made many at a time: while one is
// made, a transaction runs that is older than all changes, of whatever database.
func newPostgres(tb testing.TB) string {
	tb.Helper()
	pg := shared.Postgres(tb)
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if len(shared.spare) == 0 {
		maker := storetest.Raw(tb, pg.DSN("postgres"))
		for n := range 70 {
			name := fmt.Sprintf("tree_%d_%d", time.Now().UnixNano(), n)
			if _, err := maker.ExecContext(tb.Context(), "CREATE DATABASE "+name); err != nil {
				tb.Fatal(err)
			}
			shared.spare = append(shared.spare, pg.DSN(name))
		}
	}
	dsn := shared.spare[0]
	shared.spare = shared.spare[1:]
	return dsn
}

// openDB opens a database that is closed with the test.
//
// Unless it says otherwise it is patient: the machine may do much else.
func openDB(tb testing.TB, dsn string, o sqldb.Options) *sqldb.DB {
	tb.Helper()
	o.Schema = schema.Current()
	if o.LockTimeout == 0 {
		o.LockTimeout = time.Minute
	}
	db, err := sqldb.Open(tb.Context(), dsn, o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := db.Close(); err != nil {
			tb.Errorf("Close: %v", err)
		}
	})
	return db
}

// on opens the tree of a database; it is closed with the test.
func on(tb testing.TB, db *sqldb.DB, o treestore.Options) *treestore.Store {
	tb.Helper()
	s, err := treestore.New(tb.Context(), db, o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Errorf("Close: %v", err)
		}
	})
	return s
}

// open opens a tree with a workspace "w", unless it is there.
func open(tb testing.TB, dsn string) *treestore.Store {
	tb.Helper()
	s := on(tb, openDB(tb, dsn, sqldb.Options{}), treestore.Options{})
	if _, err := s.CreateWorkspace(tb.Context(), tree.CreateWorkspace{ID: "w", Name: "W"}); err != nil {
		tb.Fatal(err)
	}
	return s
}

func wantCode(tb testing.TB, err error, code tree.Code) {
	tb.Helper()
	if !tree.HasCode(err, code) {
		tb.Errorf("error %v, want the code %s", err, code)
	}
}

func scope(folder tree.FolderID) tree.Scope { return tree.Scope{WorkspaceID: "w", FolderID: folder} }

func TestSuiteSQLite(t *testing.T) {
	t.Parallel()

	treetest.Suite(t, func(t *testing.T) tree.Store {
		t.Helper()
		return on(t, openDB(t, storetest.SQLite(t), sqldb.Options{}), treestore.Options{})
	})
}

func TestSuitePostgres(t *testing.T) {
	t.Parallel()

	shared.Postgres(t)
	treetest.Suite(t, func(t *testing.T) tree.Store {
		t.Helper()
		return on(t, openDB(t, newPostgres(t), sqldb.Options{}), treestore.Options{})
	})
}

func TestSuiteClock(t *testing.T) {
	t.Parallel()

	storetest.Both(t, newPostgres, func(t *testing.T, first string) {
		treetest.SuiteClock(t, func(t *testing.T, now func() time.Time) tree.Store {
			t.Helper()
			dsn := storetest.SQLite(t)
			if !strings.HasPrefix(first, "sqlite:") {
				dsn = newPostgres(t)
			}
			return on(t, openDB(t, dsn, sqldb.Options{}), treestore.Options{Now: now})
		})
	})
}
