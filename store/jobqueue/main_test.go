package jobqueue_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/grapnelhq/grapnel/runtime"
	"github.com/grapnelhq/grapnel/runtime/queuetest"
	"github.com/grapnelhq/grapnel/store/jobqueue"
	"github.com/grapnelhq/grapnel/store/schema"
	"github.com/grapnelhq/grapnel/store/sqldb"
	"github.com/grapnelhq/grapnel/store/storetest"
)

// server is one PostgreSQL for all tests.
var server storetest.Shared

// TestMain also is the programs that other tests start.
func TestMain(m *testing.M) {
	if name := os.Getenv(programName); name != "" {
		os.Exit(runProgram(context.Background(), name, os.Getenv(programDSN), os.Getenv(programArg)))
	}
	code := m.Run()
	if err := server.Stop(); err != nil {
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

func newSQLite(tb testing.TB) string {
	tb.Helper()
	return "sqlite:" + tb.TempDir() + "/grapnel.db"
}

func newPostgres(tb testing.TB) string {
	tb.Helper()
	dsn, err := server.Postgres(tb).NewDSN(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	return dsn
}

// bothDatabases runs a test on an empty database of each kind.
func bothDatabases(t *testing.T, test func(t *testing.T, dsn string)) {
	t.Helper()
	for _, kind := range []struct {
		name   string
		newDSN func(tb testing.TB) string
	}{{"sqlite", newSQLite}, {"postgres", newPostgres}} {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()

			test(t, kind.newDSN(t))
		})
	}
}

// openDB opens a database that is closed with the test. Unless it says otherwise it
// is patient: the machine may do much else.
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

// on opens the queue of a database; it is closed with the test.
func on(tb testing.TB, db *sqldb.DB, o jobqueue.Options) *jobqueue.Queue {
	tb.Helper()
	q, err := jobqueue.Open(tb.Context(), db, o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := q.Close(); err != nil {
			tb.Errorf("Close: %v", err)
		}
	})
	return q
}

// open opens a queue with a connection of its own, as another process would.
func open(tb testing.TB, dsn string, o jobqueue.Options) *jobqueue.Queue {
	tb.Helper()
	return on(tb, openDB(tb, dsn, sqldb.Options{}), o)
}

// raw opens a database past the queue.
func raw(tb testing.TB, dsn string) *sql.DB {
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

// jobTable is the name of River's jobs.
func jobTable(dsn string) string {
	if strings.HasPrefix(dsn, "sqlite:") {
		return "river_job"
	}
	return "grapnel_queue.river_job"
}

// execute runs a statement past the queue; {job} is the table.
func execute(tb testing.TB, dsn, statement string) {
	tb.Helper()
	statement = strings.ReplaceAll(statement, "{job}", jobTable(dsn))
	db := raw(tb, dsn)
	_, err := db.ExecContext(tb.Context(), statement)
	if err = errors.Join(err, db.Close()); err != nil {
		tb.Fatalf("%s: %v", statement, err)
	}
}

// serve serves a queue until the test ends, or end is called, which waits for it.
func serve(tb testing.TB, q runtime.Queue, work func(ctx context.Context, j runtime.Job, attempt int) runtime.Verdict) (end func()) {
	tb.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(tb.Context()))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := q.Serve(ctx, work); err == nil || ctx.Err() == nil {
			tb.Errorf("Serve = %v", err)
		}
	}()
	end = func() {
		cancel()
		<-ended
	}
	tb.Cleanup(end)
	return end
}

func add(tb testing.TB, q runtime.Queue, j runtime.Job) {
	tb.Helper()
	if err := q.Add(tb.Context(), j); err != nil {
		tb.Fatalf("Add: %v", err)
	}
}

func counts(tb testing.TB, q *jobqueue.Queue) jobqueue.Counts {
	tb.Helper()
	c, err := q.Counts(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

func wantCode(tb testing.TB, err error, code sqldb.Code) {
	tb.Helper()
	if !sqldb.HasCode(err, code) {
		tb.Errorf("error %v, want the code %s", err, code)
	}
}

func done(context.Context, runtime.Job, int) runtime.Verdict {
	return runtime.Verdict{Action: runtime.JobDone}
}

func TestSuite(t *testing.T) {
	t.Parallel()

	for name, newDSN := range map[string]func(testing.TB) string{"sqlite": newSQLite, "postgres": newPostgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			if name == "postgres" {
				server.Postgres(t)
			}
			queuetest.Suite(t, func(t *testing.T) runtime.Queue {
				t.Helper()
				return open(t, newDSN(t), jobqueue.Options{})
			})
		})
	}
}
