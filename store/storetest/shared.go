package storetest

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
)

// startTime bounds the start of a server for tests.
const startTime = 2 * time.Minute

// Shared is one PostgreSQL server for all tests of a package, started by the first
// that asks. The zero value is ready; Stop ends it.
type Shared struct {
	once sync.Once
	pg   *Postgres
	err  error
}

// Postgres returns the server. A test in the short mode, or where no server is
// installed, is skipped; in CI that asks for one (GRAPNEL_REQUIRE_POSTGRES=1) that
// is a failure.
func (s *Shared) Postgres(tb testing.TB) *Postgres {
	tb.Helper()
	if testing.Short() {
		tb.Skip("starting PostgreSQL takes seconds")
	}
	s.once.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), startTime)
		defer cancel()
		s.pg, s.err = StartPostgres(ctx)
	})
	if errors.Is(s.err, ErrNoPostgres) && (os.Getenv("CI") != "true" || os.Getenv("GRAPNEL_REQUIRE_POSTGRES") != "1") {
		tb.Skip("not tested on PostgreSQL: ", s.err)
	}
	if s.err != nil {
		tb.Fatal(s.err)
	}
	return s.pg
}

// Stop ends the server, if there is one.
func (s *Shared) Stop() error {
	if s.pg == nil {
		return nil
	}
	return s.pg.Stop(context.Background())
}

// NewDSN returns the DSN of an empty database on the server.
func (s *Shared) NewDSN(tb testing.TB) string {
	tb.Helper()
	dsn, err := s.Postgres(tb).NewDSN(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	return dsn
}

// Own starts a server that the test may stop or crash, with a database. It ends with
// the test, which is skipped where there is no PostgreSQL.
func (s *Shared) Own(tb testing.TB) (pg *Postgres, dsn string) {
	tb.Helper()
	s.Postgres(tb) // skips where there is none
	pg, err := StartPostgres(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := pg.Stop(context.WithoutCancel(tb.Context())); err != nil {
			tb.Error(err)
		}
	})
	if dsn, err = pg.NewDSN(tb.Context()); err != nil {
		tb.Fatal(err)
	}
	return pg, dsn
}

// Main runs a package's tests, ends the server and what else is given, and returns the
// exit code for TestMain. A goroutine that is left is a failure.
func (s *Shared) Main(m *testing.M, more ...func() error) int {
	code := m.Run()
	err := s.Stop()
	for _, end := range more {
		err = errors.Join(err, end())
	}
	if err == nil && code == 0 {
		err = goleak.Find()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// Both runs a test on an empty database of each kind, at the same time. Postgres makes
// one on a server.
func Both(t *testing.T, postgres func(testing.TB) string, test func(t *testing.T, dsn string)) {
	t.Helper()
	for _, kind := range []struct {
		name   string
		newDSN func(testing.TB) string
	}{{"sqlite", SQLite}, {"postgres", postgres}} {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()

			test(t, kind.newDSN(t))
		})
	}
}

// Raw opens a database past whatever keeps things in it. It is closed with the test.
// The drivers are those that package sqldb links.
func Raw(tb testing.TB, dsn string) *sql.DB {
	tb.Helper()
	driver, name := "pgx", dsn
	if path, ok := strings.CutPrefix(dsn, "sqlite:"); ok {
		driver, name = "sqlite", "file:"+path+"?_pragma=busy_timeout(5000)"
	}
	db, err := sql.Open(driver, name)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = db.Close() })
	return db
}

// Exec runs a statement past whatever keeps things in a database.
func Exec(tb testing.TB, dsn, statement string, args ...any) {
	tb.Helper()
	db := Raw(tb, dsn)
	_, err := db.ExecContext(tb.Context(), statement, args...)
	if err = errors.Join(err, db.Close()); err != nil {
		tb.Fatalf("%s: %v", statement, err)
	}
}

// NewPostgres returns the DSN of an empty database, on a server of the test's own,
// which ends with it. It skips and fails as [Shared.Postgres] does.
func NewPostgres(t *testing.T) string {
	t.Helper()
	var own Shared
	server := own.Postgres(t)
	t.Cleanup(func() {
		if err := own.Stop(); err != nil {
			t.Error(err)
		}
	})
	dsn, err := server.NewDSN(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return dsn
}
