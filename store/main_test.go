package store_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/grapnelhq/grapnel/store/storetest"
)

// shared is the PostgreSQL of this run.
var shared storetest.Shared

// TestMain also is the programs that other tests start.
func TestMain(m *testing.M) {
	if name := os.Getenv(programName); name != "" {
		os.Exit(runProgram(context.Background(), name, os.Getenv(programDSN), os.Getenv(programArg)))
	}
	code := m.Run()
	if err := shared.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

func newPostgres(tb testing.TB) string {
	tb.Helper()
	dsn, err := shared.Postgres(tb).NewDSN(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	return dsn
}

// execute runs a statement past the store.
func execute(tb testing.TB, dsn, statement string) {
	tb.Helper()
	driver, name := "pgx", dsn
	if path, ok := strings.CutPrefix(dsn, "sqlite:"); ok {
		driver, name = "sqlite", "file:"+path+"?_pragma=busy_timeout(5000)"
	}
	db, err := sql.Open(driver, name)
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	if _, err := db.ExecContext(tb.Context(), statement); err != nil {
		tb.Fatalf("%s: %v", statement, err)
	}
}

func TestSQLite(t *testing.T) {
	t.Parallel()

	storetest.Run(t, storetest.SQLite, func(t *testing.T, dsn, statement string) { execute(t, dsn, statement) })
}

func TestPostgres(t *testing.T) {
	t.Parallel()

	shared.Postgres(t)
	storetest.Run(t, func(t *testing.T) string { return newPostgres(t) }, func(t *testing.T, dsn, statement string) { execute(t, dsn, statement) })
}
