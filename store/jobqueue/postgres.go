package jobqueue

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
	"github.com/riverqueue/river/rivershared/baseservice"
	"github.com/riverqueue/river/rivershared/riverpilot"
	"github.com/riverqueue/river/rivertype"

	"github.com/grapnelhq/grapnel/store/sqldb"
)

// adders is how many callers that add jobs at the same moment cannot exceed a
// bound: those who come closer to it add one after the other.
const adders = 64

// postgresFlow is River on the store's PostgreSQL, by a pool of its own: River's
// driver needs one.
type postgresFlow struct {
	opts    Options
	db      *sqldb.DB
	phrases *phrases
	pool    *pgxpool.Pool
	client  *river.Client[pgx.Tx]
	pilot   *pilot
	// lock is the number of the lock of those who add.
	lock int64
}

var _ flow = (*postgresFlow)(nil)

func openPostgres(ctx context.Context, db *sqldb.DB, o Options, id string, w *worker) (*postgresFlow, *phrases, error) {
	cfg, err := poolConfig(ctx, db)
	if err != nil {
		return nil, nil, db.Fail(ctx, "opening the queue", err)
	}
	cfg.MaxConns = int32(o.MaxConns) //nolint:gosec // checked
	schema, err := schemaFor(ctx, db, o)
	if err != nil {
		return nil, nil, err
	}
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, nil, db.Fail(ctx, "opening the queue", err)
	}
	f := &postgresFlow{opts: o, db: db, phrases: phrasesFor(sqldb.Postgres, schema), pool: pool, pilot: &pilot{}, lock: lockNumber(schema)}
	if err := f.migrate(ctx, schema); err != nil {
		pool.Close()
		return nil, nil, db.Fail(ctx, "making the queue's tables", err)
	}
	driver := &postgresDriver{Driver: riverpgxv5.New(pool), pilot: f.pilot, log: o.Logger}
	if f.client, err = river.NewClient(driver, riverConfig(o, id, schema, w)); err != nil {
		pool.Close()
		return nil, nil, err
	}
	driver.listens = true
	return f, f.phrases, nil
}

// poolConfig reaches the server as the store does.
func poolConfig(ctx context.Context, db *sqldb.DB) (cfg *pgxpool.Config, err error) {
	conn, err := db.Writer().Conn(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	err = conn.Raw(func(c any) error {
		own, ok := c.(*stdlib.Conn)
		if !ok {
			return fmt.Errorf("the store's driver is a %T", c)
		}
		of := own.Conn().Config()
		if cfg, err = pgxpool.ParseConfig(of.ConnString()); err == nil {
			cfg.ConnConfig.RuntimeParams = of.RuntimeParams // with the program's name
		}
		return err
	})
	return cfg, err
}

// schemaFor is the schema of the queue's tables. Stores in several schemas of one
// database have a queue each.
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

// lockNumber is a number for what is done to a schema's queue. Locks of others may
// have the same one, which delays and does no harm.
func lockNumber(schema string) int64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte("grapnel queue " + schema)) // it never fails
	return int64(h.Sum64())                           //nolint:gosec // any number will do
}

// migrate makes River's tables, or brings them up to date. A second program that
// comes meanwhile waits, and finds the work done.
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
		versions, err := m.ExistingVersions(ctx)
		if err != nil {
			return tooNew(ctx, f.db, err)
		}
		if isCurrent(m, versions) {
			return nil
		}
	}
	if _, err := conn.Exec(ctx, "SELECT pg_advisory_lock($1)", f.lock); err != nil {
		return err
	}
	// A connection that cannot unlock is not used again, and has no locks.
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

// insert implements flow. Callers who are far from the bounds count and add at the
// same time; the others one after the other, and when the former are done.
func (f *postgresFlow) insert(ctx context.Context, args *jobArgs, opts *river.InsertOpts, plugin string) (id int64, duplicate bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, f.db.LockTimeout())
	defer cancel()
	var res *rivertype.JobInsertResult
	for _, exclusive := range []bool{false, true} {
		// After a restart of the server, each connection of the pool may turn out to be
		// dead, before anything was sent by it.
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
		return 0, false, err
	}
	return res.Job.ID, res.UniqueSkippedAsDuplicate, nil
}

// errAlmostFull asks a caller who counted beside others to wait for them.
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
		res, err = f.client.InsertTx(ctx, tx, args, opts)
		return err
	})
	return res, err
}

// count has how many jobs wait, when nobody adds any who would not see the others.
func (f *postgresFlow) count(ctx context.Context, tx pgx.Tx, plugin string, exclusive bool) (waiting, ofPlugin int, err error) {
	lock := "SELECT pg_advisory_xact_lock_shared($1)"
	if exclusive {
		lock = "SELECT pg_advisory_xact_lock($1)"
	}
	batch := &pgx.Batch{} // one round trip, two statements: the second sees what the first waited for
	batch.Queue(lock, f.lock)
	batch.Queue(f.phrases.count, plugin)
	results := tx.SendBatch(ctx, batch)
	if _, err = results.Exec(); err == nil {
		err = results.QueryRow().Scan(&waiting, &ofPlugin)
	}
	return waiting, ofPlugin, errors.Join(err, results.Close())
}

func (f *postgresFlow) start(ctx context.Context) error { return start(ctx, f.client, f.pilot) }
func (f *postgresFlow) stop(ctx context.Context) error  { return stop(ctx, f.client, f.pilot) }
func (f *postgresFlow) wake()                           { f.pilot.wake() }
func (f *postgresFlow) close()                          { f.pool.Close() }

// postgresDriver is River's driver, with our pilot.
type postgresDriver struct {
	*riverpgxv5.Driver

	pilot *pilot
	log   *slog.Logger
	// listens says that the client has its listener.
	listens bool
}

var _ riverdriver.Driver[pgx.Tx] = (*postgresDriver)(nil)

// PluginInit is a part of how River asks for a pilot.
func (d *postgresDriver) PluginInit(*baseservice.Archetype) {}

// PluginPilot is the other.
func (d *postgresDriver) PluginPilot() riverpilot.Pilot { return d.pilot }

// SupportsListener implements riverdriver.Driver. A client asks once whether it is to
// listen for jobs of others, and later, for each job of its own process, whether it
// will hear of that anyway. It will, but not of each, and later.
func (d *postgresDriver) SupportsListener() bool { return !d.listens }

// GetExecutor implements riverdriver.Driver.
func (d *postgresDriver) GetExecutor() riverdriver.Executor {
	return &executor{Executor: d.Driver.GetExecutor(), log: d.log}
}
