package jobqueue_test

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/internal/queuetest"
	"github.com/grapnelhq/grapnel/internal/sqldb"
	"github.com/grapnelhq/grapnel/internal/storetest"
	"github.com/grapnelhq/grapnel/jobs"
	"github.com/grapnelhq/grapnel/store/jobqueue"
)

// TestOpenAtOnce: several programs may make the tables of one database.
func TestOpenAtOnce(t *testing.T) {
	t.Parallel()

	storetest.Both(t, server.NewDSN, func(t *testing.T, dsn string) {
		var dbs []*sqldb.DB
		for range 6 {
			dbs = append(dbs, openDB(t, dsn, sqldb.Options{}))
		}
		errs := make([]error, len(dbs))
		var group sync.WaitGroup
		for n, db := range dbs {
			group.Go(func() {
				q, err := jobqueue.Open(t.Context(), db, jobqueue.Options{})
				if err == nil {
					err = errors.Join(q.Add(t.Context(), jobs.Job{Plugin: "p"}), q.Close())
				}
				errs[n] = err
			})
		}
		group.Wait()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		if c := counts(t, on(t, dbs[0], jobqueue.Options{})); c.Waiting != len(dbs) {
			t.Errorf("%+v, want %d that wait", c, len(dbs))
		}
	})
}

// TestOptions: what makes no sense is refused.
func TestOptions(t *testing.T) {
	t.Parallel()

	db := openDB(t, storetest.SQLite(t), sqldb.Options{})
	for name, o := range map[string]jobqueue.Options{
		"workers":     {Workers: -1},
		"many":        {Workers: 5000},
		"waiting":     {Waiting: -1},
		"per plugin":  {PerPlugin: -1},
		"lease":       {Lease: time.Millisecond},
		"keep done":   {KeepDone: -time.Second},
		"keep dead":   {KeepDead: -time.Second},
		"poll":        {Poll: time.Microsecond},
		"quoted name": {Schema: `x"; DROP TABLE y; --`},
		"long name":   {Schema: strings.Repeat("x", 60)},
		"connections": {MaxConns: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			if _, err := jobqueue.Open(t.Context(), db, o); !sqldb.HasCode(err, sqldb.CodeInternal) || !strings.Contains(err.Error(), "queue options: ") {
				t.Errorf("Open = %v", err)
			}
		})
	}
}

// TestReadOnly: a database that was opened for reading has no queue.
func TestReadOnly(t *testing.T) {
	t.Parallel()

	storetest.Both(t, server.NewDSN, func(t *testing.T, dsn string) {
		open(t, dsn, jobqueue.Options{})
		_, err := jobqueue.Open(t.Context(), openDB(t, dsn, sqldb.Options{ReadOnly: true}), jobqueue.Options{})
		wantCode(t, err, sqldb.CodePermission)
	})
}

// TestNewer: tables of a newer River are left alone.
func TestNewer(t *testing.T) {
	t.Parallel()

	storetest.Both(t, server.NewDSN, func(t *testing.T, dsn string) {
		open(t, dsn, jobqueue.Options{})
		execute(t, dsn, "INSERT INTO "+strings.Replace(jobTable(dsn), "_job", "_migration", 1)+" (line, version) VALUES ('main', 99)")
		_, err := jobqueue.Open(t.Context(), openDB(t, dsn, sqldb.Options{}), jobqueue.Options{})
		wantCode(t, err, sqldb.CodeSchema)
	})
}

// TestSchemas: stores in several schemas of a database have queues of their own, and
// a schema that this user may not create is an error.
func TestSchemas(t *testing.T) {
	t.Parallel()

	dsn := server.NewDSN(t)
	execute(t, dsn, "CREATE SCHEMA tenant")
	execute(t, dsn, "CREATE ROLE poor LOGIN")
	public, tenant := open(t, dsn, jobqueue.Options{}), open(t, dsn+"&search_path=tenant", jobqueue.Options{})
	named := open(t, dsn, jobqueue.Options{Schema: "named"})
	add(t, tenant, jobs.Job{Kind: "tenant's", Plugin: "p"})
	add(t, named, jobs.Job{Kind: "named", Plugin: "p"})
	if c := counts(t, public); c != (jobs.Counts{}) {
		t.Errorf("there are %+v", c)
	}
	execute(t, dsn, "GRANT ALL ON ALL TABLES IN SCHEMA public TO poor")
	_, err := jobqueue.Open(t.Context(), openDB(t, strings.Replace(dsn, "user=grapnel", "user=poor", 1), sqldb.Options{}), jobqueue.Options{Schema: "wanted"})
	wantCode(t, err, sqldb.CodePermission)
}

// TestKeptForAWhile: what ended long ago is removed, and its key free again.
func TestKeptForAWhile(t *testing.T) {
	t.Parallel()

	storetest.Both(t, server.NewDSN, func(t *testing.T, dsn string) {
		q := open(t, dsn, jobqueue.Options{})
		job := jobs.Job{Kind: "k", Plugin: "p", IdempotencyKey: "once"}
		add(t, q, job)
		end := serve(t, q, done)
		if err := q.Idle(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := q.Add(t.Context(), job); !errors.Is(err, jobs.ErrDuplicate) {
			t.Errorf("a second one: %v", err)
		}
		end()
		execute(t, dsn, "UPDATE {job} SET finalized_at = '2001-01-01 00:00:00'")
		serve(t, open(t, dsn, jobqueue.Options{}), done)
		queuetest.Await(t, "a key that is free again", func() bool { return q.Add(t.Context(), job) == nil })
	})
}

// TestDoneIsForgotten: nothing of a finished job's content is kept.
func TestDoneIsForgotten(t *testing.T) {
	t.Parallel()

	storetest.Both(t, server.NewDSN, func(t *testing.T, dsn string) {
		q := open(t, dsn, jobqueue.Options{})
		add(t, q, jobs.Job{Kind: "k", Plugin: "p", IdempotencyKey: "s3cret", Payload: []byte(`"s3cret"`)})
		serve(t, q, done)
		if err := q.Idle(t.Context()); err != nil {
			t.Fatal(err)
		}
		var args, metadata string
		if err := storetest.Raw(t, dsn).QueryRowContext(t.Context(), "SELECT args, metadata FROM "+jobTable(dsn)).Scan(&args, &metadata); err != nil {
			t.Fatal(err)
		}
		if args != "{}" || strings.Contains(metadata, "s3cret") {
			t.Errorf("args %s, metadata %s", args, metadata)
		}
	})
}

// TestOpenInSchemaThatIsThere: a user who may not create schemas can use an existing
// one.
func TestOpenInSchemaThatIsThere(t *testing.T) {
	t.Parallel()

	server.Postgres(t)
	dsn := server.NewDSN(t)
	name := fmt.Sprintf("limited_%d", time.Now().UnixNano()) // roles are the server's
	for _, statement := range []string{
		"CREATE ROLE " + name + " LOGIN", "GRANT ALL ON SCHEMA public TO " + name, "CREATE SCHEMA grapnel_queue AUTHORIZATION " + name,
	} {
		storetest.Exec(t, dsn, statement)
	}
	theirs, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	theirs.User = url.User(name)
	if query := theirs.Query(); query.Has("user") {
		query.Set("user", name)
		theirs.RawQuery = query.Encode()
	}
	for range 2 {
		q := open(t, theirs.String(), jobqueue.Options{})
		add(t, q, jobs.Job{Kind: "k", Plugin: "p"})
	}
}
