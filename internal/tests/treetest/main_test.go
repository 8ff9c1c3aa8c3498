package treetest

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/internal/sqldb"
	"github.com/grapnelhq/grapnel/internal/sqldb/schema"
	"github.com/grapnelhq/grapnel/internal/tests/storetest"
	"github.com/grapnelhq/grapnel/store/treestore"
)

// shared is the PostgreSQL server of this run.
var shared storetest.Shared

// TestMain also runs the programs that tests start.
func TestMain(m *testing.M) {
	programs := storetest.Programs{"gateway": serveTree}
	if code, ok := programs.Run(context.Background()); ok {
		os.Exit(code)
	}
	os.Exit(shared.Main(m))
}

// openTree opens the tree of a database.
func openTree(ctx context.Context, dsn string, o treestore.Options) (*treestore.Store, func() error, error) {
	db, err := sqldb.Open(ctx, dsn, sqldb.Options{Schema: schema.Current(), LockTimeout: time.Minute})
	if err != nil {
		return nil, nil, err
	}
	s, err := treestore.New(ctx, db, o)
	if err != nil {
		_ = db.Close()
		return nil, nil, err
	}
	return s, func() error {
		_ = s.Close()
		return db.Close()
	}, nil
}
