package store_test

import (
	"context"
	"os"
	"testing"

	"github.com/grapnelhq/grapnel/store/storetest"
)

// shared is the PostgreSQL of this run.
var shared storetest.Shared

// TestMain also is the programs that other tests start.
func TestMain(m *testing.M) {
	if name := os.Getenv(programName); name != "" {
		os.Exit(runProgram(context.Background(), name, os.Getenv(programDSN), os.Getenv(programArg)))
	}
	os.Exit(shared.Main(m))
}

func TestSQLite(t *testing.T) {
	t.Parallel()

	storetest.Run(t, storetest.SQLite)
}

func TestPostgres(t *testing.T) {
	t.Parallel()

	shared.Postgres(t)
	storetest.Run(t, shared.NewDSN)
}
