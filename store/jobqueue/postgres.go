package jobqueue

import (
	"context"
	"errors"
	"hash/fnv"
	"log/slog"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
	"github.com/riverqueue/river/rivershared/baseservice"
	"github.com/riverqueue/river/rivershared/riverpilot"
	"github.com/riverqueue/river/rivertype"

	"github.com/grapnelhq/grapnel/internal/sqldb"
)

// adders is how many callers may add jobs at once. Closer to a bound than that, they add one after the other.
const adders = 64

// postgresFlow has a pool of its own: River's driver needs one.
type postgresFlow struct {
	client[pgx.Tx]

	opts       Options
	db         *sqldb.DB
	statements *statements
	pool       *pgxpool.Pool
	lock       int64 // the queue's advisory lock; a collision with another one only delays
}

var _ flow = (*postgresFlow)(nil)

func openPostgres(ctx context.Context, db *sqldb.DB, o Options, id string, w *worker) (*postgresFlow, *statements, error) {
	server := db.Server()
	cfg, err := pgxpool.ParseConfig(server.ConnString())
	if err != nil {
		return nil, nil, db.Fail(ctx, "opening the queue", err)
	}
	cfg.ConnConfig.RuntimeParams = server.RuntimeParams // with the program's name
	cfg.MaxConns = int32(o.MaxConns)                    //nolint:gosec // checked
	schema, err := schemaFor(ctx, db, o)
	if err != nil {
		return nil, nil, err
	}
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, nil, db.Fail(ctx, "opening the queue", err)
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte("grapnel queue " + schema)) // it never fails
	f := &postgresFlow{
		client: client[pgx.Tx]{pilot: &pilot{}}, opts: o, db: db, statements: statementsFor(sqldb.Postgres, schema), pool: pool,
		lock: int64(h.Sum64()), //nolint:gosec // any number will do
	}
	if err := f.migrate(ctx, schema); err != nil {
		pool.Close()
		return nil, nil, db.Fail(ctx, "making the queue's tables", err)
	}
	driver := &postgresDriver{Driver: riverpgxv5.New(pool), pilot: f.pilot, log: o.Logger}
	if f.Client, err = river.NewClient(driver, riverConfig(o, id, schema, w)); err != nil {
		pool.Close()
		return nil, nil, err
	}
	driver.listens = true
	return f, f.statements, nil
}

// schemaFor is the schema of the queue's tables: each schema with a store has its own queue.
func schemaFor(ctx context.Context, db *sqldb.DB, o Options) (string, error) {
	if o.Schema != "" {
		return o.Schema, nil
	}
	var current string
	if err := db.Reader().QueryRowContext(ctx, "SELECT coalesce(current_schema(), 'public')").Scan(&current); err != nil {
		return "", db.Fail(ctx, "opening the queue", err)
	}
	o.Schema = "grapnel_queue"
	if current != "public" {
		o.Schema += "_" + current
	}
	return o.Schema, o.check()
}

// migrate upgrades River's tables. A second program waits and finds the work done.
func (f *postgresFlow) migrate(ctx context.Context, schema string) error {
	m, err := rivermigrate.New(riverpgxv5.New(f.pool), &rivermigrate.Config{Schema: schema, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	conn, err := f.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	var there bool
	if err := conn.QueryRow(ctx, "SELECT EXISTS (SELECT 1 FROM pg_namespace WHERE nspname = $1)", schema).Scan(&there); err != nil {
		return err
	}
	if there {
		existing, err := m.ExistingVersions(ctx)
		if current, err := migrated(ctx, f.db, m, existing, err); err != nil || current {
			return err
		}
	}
	if _, err := conn.Exec(ctx, "SELECT pg_advisory_lock($1)", f.lock); err != nil {
		return err
	}
	// A connection that cannot unlock is closed, which frees its locks.
	defer func() {
		if _, err := conn.Exec(context.WithoutCancel(ctx), "SELECT pg_advisory_unlock($1)", f.lock); err != nil {
			_ = conn.Conn().Close(context.WithoutCancel(ctx))
		}
	}()
	if !there { // one that is there may be all that this user may have
		if _, err := conn.Exec(ctx, "CREATE SCHEMA IF NOT EXISTS "+schema); err != nil {
			return err
		}
	}
	_, err = m.Migrate(ctx, rivermigrate.DirectionUp, nil)
	return err
}

// insert counts and adds beside other callers; close to a bound, one after the other.
func (f *postgresFlow) insert(ctx context.Context, args *jobArgs, opts *river.InsertOpts, plugin string) (duplicate bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, f.db.LockTimeout())
	defer cancel()
	var res *rivertype.JobInsertResult
	for _, exclusive := range []bool{false, true} {
		// After a restart of the server every connection of the pool may be dead.
		for range f.opts.MaxConns + 1 {
			if res, err = f.tryInsert(ctx, args, opts, plugin, exclusive); !pgconn.SafeToRetry(err) {
				break
			}
		}
		if !errors.Is(err, errAlmostFull) {
			break
		}
	}
	if err != nil {
		return false, err
	}
	return res.UniqueSkippedAsDuplicate, nil
}

var errAlmostFull = errors.New("the queue is almost full")

func (f *postgresFlow) tryInsert(ctx context.Context, args *jobArgs, opts *river.InsertOpts, plugin string, exclusive bool) (res *rivertype.JobInsertResult, err error) {
	err = pgx.BeginFunc(ctx, f.pool, func(tx pgx.Tx) error {
		waiting, ofPlugin, err := f.count(ctx, tx, plugin, exclusive)
		if err != nil {
			return err
		}
		if !exclusive && f.opts.almostFull(waiting, ofPlugin) {
			return errAlmostFull
		}
		if err := f.opts.full(plugin, waiting, ofPlugin); err != nil {
			return err
		}
		res, err = f.InsertTx(ctx, tx, args, opts)
		return err
	})
	return res, err
}

// count counts the waiting jobs, with a lock that makes the counts of concurrent callers add up.
func (f *postgresFlow) count(ctx context.Context, tx pgx.Tx, plugin string, exclusive bool) (waiting, ofPlugin int, err error) {
	lock := "SELECT pg_advisory_xact_lock_shared($1)"
	if exclusive {
		lock = "SELECT pg_advisory_xact_lock($1)"
	}
	batch := &pgx.Batch{} // two statements in one round trip: the second sees what the first waited for
	batch.Queue(lock, f.lock)
	batch.Queue(f.statements.count, plugin)
	results := tx.SendBatch(ctx, batch)
	if _, err = results.Exec(); err == nil {
		err = results.QueryRow().Scan(&waiting, &ofPlugin)
	}
	return waiting, ofPlugin, errors.Join(err, results.Close())
}

func (f *postgresFlow) close() { f.pool.Close() }

type postgresDriver struct {
	*riverpgxv5.Driver

	pilot *pilot
	log   *slog.Logger
	// listens says that the client has its listener.
	listens bool
}

var _ riverdriver.Driver[pgx.Tx] = (*postgresDriver)(nil)

// PluginInit implements riverdriver.Driver.
func (d *postgresDriver) PluginInit(*baseservice.Archetype) {}

// PluginPilot implements riverdriver.Driver.
func (d *postgresDriver) PluginPilot() riverpilot.Pilot { return d.pilot }

// SupportsListener implements riverdriver.Driver. A client asks once whether to listen for
// others' jobs, and later, for each job of its own, whether it will be notified of that anyway.
// Such notifications are merged and late, so the later answer is no.
func (d *postgresDriver) SupportsListener() bool { return !d.listens }

// GetExecutor implements riverdriver.Driver.
func (d *postgresDriver) GetExecutor() riverdriver.Executor {
	return &executor{Executor: d.Driver.GetExecutor(), log: d.log}
}
