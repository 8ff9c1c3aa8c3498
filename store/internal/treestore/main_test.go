package treestore_test

import (
	"os"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/internal/sqldb"
	"github.com/grapnelhq/grapnel/internal/tests/storetest"
	"github.com/grapnelhq/grapnel/internal/tree"
	"github.com/grapnelhq/grapnel/store/internal/treestore"
)

// shared is the PostgreSQL server of this run.
var shared storetest.Shared

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

// on opens the tree of a database; it is closed with the test.
func on(tb testing.TB, db *sqldb.DB, now func() time.Time) *treestore.Store {
	tb.Helper()
	s, err := treestore.New(tb.Context(), db, now)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// open opens a tree with a workspace "w", unless it is there.
func open(tb testing.TB, dsn string) *treestore.Store {
	tb.Helper()
	s := on(tb, storetest.Open(tb, dsn, sqldb.Options{}), time.Now)
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
