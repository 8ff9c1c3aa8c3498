package store_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/grapnelhq/grapnel/store/storetest"
)

// server is the PostgreSQL of this run, started when the first test needs it.
type server struct {
	once sync.Once
	pg   *storetest.Postgres
	err  error
}

var shared server

// TestMain also is the programs that other tests start.
func TestMain(m *testing.M) {
	if name := os.Getenv(programName); name != "" {
		os.Exit(runProgram(context.Background(), name, os.Getenv(programDSN), os.Getenv(programArg)))
	}
	code := m.Run()
	if shared.pg != nil {
		if err := shared.pg.Stop(context.Background()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// postgres returns the server, or skips the test where none is installed. In CI
// that asks for it, that is a failure.
func postgres(tb testing.TB) *storetest.Postgres {
	tb.Helper()
	if testing.Short() {
		tb.Skip("starting PostgreSQL takes seconds")
	}
	shared.once.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
		defer cancel()
		shared.pg, shared.err = storetest.StartPostgres(ctx)
	})
	if errors.Is(shared.err, storetest.ErrNoPostgres) && (os.Getenv("CI") != "true" || os.Getenv("GRAPNEL_REQUIRE_POSTGRES") != "1") {
		tb.Skip("not tested on PostgreSQL: ", shared.err)
	}
	if shared.err != nil {
		tb.Fatal(shared.err)
	}
	return shared.pg
}

func newPostgres(tb testing.TB) string {
	tb.Helper()
	dsn, err := postgres(tb).NewDSN(tb.Context())
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

	postgres(t)
	storetest.Run(t, func(t *testing.T) string { return newPostgres(t) }, func(t *testing.T, dsn, statement string) { execute(t, dsn, statement) })
}
