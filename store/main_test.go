package store_test

import (
	"context"
	"os"
	"testing"

	"github.com/grapnelhq/grapnel/internal/tests/storetest"
)

// shared is the PostgreSQL of this run.
var shared storetest.Shared

// TestMain also is the programs that other tests start.
func TestMain(m *testing.M) {
	if code, ok := programs().Run(context.Background()); ok {
		os.Exit(code)
	}
	os.Exit(shared.Main(m))
}

func TestSQLite(t *testing.T) {
	t.Parallel()

	runSuite(t, suite{storetest.SQLite, storetest.SQLite})
}

func TestPostgres(t *testing.T) {
	t.Parallel()

	shared.Postgres(t)
	runSuite(t, suite{shared.NewStore, shared.NewDSN})
}
