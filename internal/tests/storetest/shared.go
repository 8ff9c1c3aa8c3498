// Package storetest helps tests of what keeps data in a database: [Shared] is a PostgreSQL
// server for a package's tests, [SQLite] an embedded database, [Both] runs a test on each.
// [Programs] run the test binary as another process.
//
// Stability: internal.
package storetest

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/grapnelhq/grapnel/internal/sqldb"
	"github.com/grapnelhq/grapnel/internal/sqldb/schema"
)

const startTime = 2 * time.Minute

// Shared is one PostgreSQL server for all tests of a package, started on demand. The zero value
// is ready; [Shared.Main] ends it.
type Shared struct {
	once sync.Once
	pg   *Postgres
	err  error

	mu sync.Mutex // held while databases are made
	// spare are unused databases with the schema.
	spare    []string
	migrated bool // there is a template for them
}

const spares = 16

// Postgres returns the server. In short mode, or if no server is installed, the test is
// skipped; with GRAPNEL_REQUIRE_POSTGRES=1 it fails.
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

// NewDSN returns the DSN of an empty database on the server.
func (s *Shared) NewDSN(tb testing.TB) string {
	tb.Helper()
	dsn, err := s.Postgres(tb).NewDSN(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	return dsn
}

// NewStore returns the DSN of a database with Grapnel's schema, much faster than migrating an empty one. Several are
// made at a time: making one runs a transaction that delays the readers of every log of changes on the server.
func (s *Shared) NewStore(tb testing.TB) string {
	tb.Helper()
	pg := s.Postgres(tb)
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.spare) == 0 {
		if !s.migrated {
			s.makeTemplate(tb)
		}
		maker := Raw(tb, pg.DSN("postgres"))
		for range spares {
			name := fmt.Sprintf("store%d", pg.count.Add(1))
			if _, err := maker.ExecContext(tb.Context(), "CREATE DATABASE "+name+" TEMPLATE "+template); err != nil {
				tb.Fatal(err)
			}
			s.spare = append(s.spare, pg.DSN(name))
		}
	}
	dsn := s.spare[0]
	s.spare = s.spare[1:]
	return dsn
}

const template = "store_template"

func (s *Shared) makeTemplate(tb testing.TB) {
	tb.Helper()
	Exec(tb, s.pg.DSN("postgres"), "CREATE DATABASE "+template)
	db, err := sqldb.Open(tb.Context(), s.pg.DSN(template), sqldb.Options{Schema: schema.Current(), LockTimeout: time.Minute})
	if err == nil {
		err = db.Close()
	}
	if err != nil {
		tb.Fatal(err)
	}
	s.migrated = true
}

// Own starts a server that the test may stop or crash, with a database. It ends with the test.
func (s *Shared) Own(tb testing.TB) (pg *Postgres, dsn string) {
	tb.Helper()
	s.Postgres(tb) // skips without a server
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

// Main runs a package's tests, stops the server and calls more, and returns the exit code for
// TestMain. A leaked goroutine is a failure.
func (s *Shared) Main(m *testing.M, more ...func() error) int {
	code := m.Run()
	var err error
	if s.pg != nil {
		err = s.pg.Stop(context.Background())
	}
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

// Both runs a test on an empty database of each kind, at the same time. Postgres makes one on a server.
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

// Open opens a database that is closed with the test. Unless it says otherwise it is patient: the machine may do much else.
func Open(tb testing.TB, dsn string, o sqldb.Options) *sqldb.DB {
	tb.Helper()
	o.Schema = schema.Current()
	o.LockTimeout = cmp.Or(o.LockTimeout, time.Minute)
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

// Raw opens a database directly. It is closed with the test. Package sqldb links the drivers.
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

// Exec runs a statement directly.
func Exec(tb testing.TB, dsn, statement string, args ...any) {
	tb.Helper()
	db := Raw(tb, dsn)
	_, err := db.ExecContext(tb.Context(), statement, args...)
	if err = errors.Join(err, db.Close()); err != nil {
		tb.Fatalf("%s: %v", statement, err)
	}
}

// CheckFolders compares the columns has_doc and parent of the tree's folders with what they are derived from.
func CheckFolders(tb testing.TB, dsn string) {
	tb.Helper()
	const active = `EXISTS (SELECT 1 FROM thread_agents_doc d WHERE d.workspace_id = f.workspace_id AND d.folder_id = f.id AND d.status = 'active')`
	for column, query := range map[string]string{
		"has_doc": "SELECT count(*) FROM tree_folders f WHERE f.has_doc <> " + active,
		"parent": `SELECT count(*) FROM tree_folders f LEFT JOIN tree_folders p ON p.workspace_id = f.workspace_id AND p.id = f.parent_id
			WHERE coalesce(f.parent, -1) <> coalesce(p.node, -1)`,
	} {
		var wrong int
		if err := Raw(tb, dsn).QueryRowContext(tb.Context(), query).Scan(&wrong); err != nil || wrong != 0 {
			tb.Errorf("%s is wrong for %d folders, %v", column, wrong, err)
		}
	}
}

// process is the server of [NewPostgres]: its guard ends it with the process.
var process Shared //nolint:gochecknoglobals // one server for a test program

// NewPostgres returns the DSN of an empty database, for packages without a [Shared]. It skips
// and fails as [Shared.Postgres] does.
func NewPostgres(tb testing.TB) string {
	tb.Helper()
	return process.NewDSN(tb)
}

// SQLite returns the DSN of a new embedded database in a temporary directory.
func SQLite(tb testing.TB) string {
	tb.Helper()
	return "sqlite:" + filepath.Join(tb.TempDir(), "grapnel.db")
}
