package jobqueue

import (
	"context"
	"database/sql"
	"log/slog"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	"github.com/riverqueue/river/rivermigrate"
	"github.com/riverqueue/river/rivershared/baseservice"
	"github.com/riverqueue/river/rivershared/riverpilot"
	"github.com/riverqueue/river/rivertype"

	"github.com/grapnelhq/grapnel/store/sqldb"
)

const (
	// pluginSQLite is whose job it is. To read it from a row takes as long as
	// reading the whole job, for which SQLite has to follow a chain of pages; so
	// there is an index, and the statement that counts uses nothing else.
	pluginSQLite = "json_extract(metadata, '$.plugin')"
	indexSQLite  = "CREATE INDEX IF NOT EXISTS grapnel_job_waiting ON river_job (queue, " + pluginSQLite + ", state) WHERE state IN " + waitingStates
	// cleanBatch is how many old jobs are removed while others wait for the writer.
	cleanBatch = 250
	// lockedWait is how often a lock of another process is tried again.
	lockedWait = 5 * time.Millisecond
)

// sqliteFlow is River on the store's SQLite file, by the file's one writer.
type sqliteFlow struct {
	opts    Options
	db      *sqldb.DB
	phrases *phrases
	client  *river.Client[*sql.Tx]
	pilot   *pilot
}

var _ flow = (*sqliteFlow)(nil)

func openSQLite(ctx context.Context, db *sqldb.DB, o Options, id string, w *worker) (*sqliteFlow, *phrases, error) {
	if err := migrateSQLite(ctx, db); err != nil {
		return nil, nil, err
	}
	f := &sqliteFlow{opts: o, db: db, phrases: phrasesFor(sqldb.SQLite, "")}
	f.pilot = &pilot{due: f.due}
	cfg := riverConfig(o, id, "", w)
	// River would build its indexes anew each night, as PostgreSQL's need at times.
	cfg.ReindexerSchedule = river.NeverSchedule()
	var err error
	f.client, err = river.NewClient(&sqliteDriver{Driver: riversqlite.New(db.Writer()), db: db, pilot: f.pilot, log: o.Logger}, cfg)
	return f, f.phrases, err
}

// migrateSQLite makes River's tables, or brings them up to date, in one transaction.
func migrateSQLite(ctx context.Context, db *sqldb.DB) error {
	m, err := rivermigrate.New(riversqlite.New(nil), &rivermigrate.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	var current bool
	err = db.Snapshot(ctx, "opening the queue", func(tx *sql.Tx) error {
		there, err := m.ExistingVersionsTx(ctx, tx)
		if err != nil {
			return tooNew(ctx, db, err)
		}
		current = isCurrent(m, there)
		return nil
	})
	if err != nil || current {
		return err
	}
	return db.Change(ctx, "making the queue's tables", func(ctx context.Context, tx *sql.Tx) error {
		// What speaks against one transaction for all is of PostgreSQL's types.
		if _, err := m.MigrateTx(ctx, tx, rivermigrate.DirectionUp, nil); err != nil { //nolint:staticcheck // see above
			return err
		}
		_, err := tx.ExecContext(ctx, indexSQLite)
		return err
	})
}

// insert implements flow.
func (f *sqliteFlow) insert(ctx context.Context, args *jobArgs, opts *river.InsertOpts, plugin string) (id int64, duplicate bool, err error) {
	var refused error
	err = f.db.Join(ctx, "queueing a job", func(ctx context.Context, tx *sql.Tx) error {
		var waiting, ofPlugin int
		if err := tx.QueryRowContext(ctx, f.phrases.count, plugin).Scan(&waiting, &ofPlugin); err != nil {
			return err
		}
		if refused = f.opts.full(plugin, waiting, ofPlugin); refused != nil {
			return nil //nolint:nilerr // nothing was written, and those who share the transaction go on
		}
		res, err := f.client.InsertTx(ctx, tx, args, opts)
		if err != nil {
			return err
		}
		id, duplicate = res.Job.ID, res.UniqueSkippedAsDuplicate
		return nil
	})
	if err == nil {
		err = refused
	}
	return id, duplicate, err
}

// due implements pilot.due: to look costs a reader 20 µs, to take jobs the writer.
// Whether the database can be read, taking will tell.
func (f *sqliteFlow) due(ctx context.Context) bool {
	due := true
	_ = f.db.Reader().QueryRowContext(ctx, f.phrases.soon).Scan(&due)
	return due
}

func (f *sqliteFlow) start(ctx context.Context) error { return start(ctx, f.client, f.pilot) }
func (f *sqliteFlow) stop(ctx context.Context) error  { return stop(ctx, f.client, f.pilot) }
func (f *sqliteFlow) wake()                           { f.pilot.wake() }
func (f *sqliteFlow) close()                          {}

// sqliteDriver is River's driver, with our way to the database.
type sqliteDriver struct {
	*riversqlite.Driver

	db    *sqldb.DB
	pilot *pilot
	log   *slog.Logger
}

var _ riverdriver.Driver[*sql.Tx] = (*sqliteDriver)(nil)

// PluginInit is a part of how River asks for a pilot.
func (d *sqliteDriver) PluginInit(*baseservice.Archetype) {}

// PluginPilot is the other.
func (d *sqliteDriver) PluginPilot() riverpilot.Pilot { return d.pilot }

// GetExecutor implements riverdriver.Driver.
func (d *sqliteDriver) GetExecutor() riverdriver.Executor {
	inner := d.Driver.GetExecutor()
	return &sqliteExecutor{executor: executor{Executor: inner, log: d.log}, inner: inner, driver: d}
}

// sqliteExecutor makes River's changes like all others: in the order in which they
// come, and waiting for other processes. River by itself would fail at once where
// another process is about to write.
type sqliteExecutor struct {
	executor

	inner  riverdriver.Executor
	driver *sqliteDriver
}

// change runs one of River's statements in a transaction that it may share.
func change[T any](ctx context.Context, e *sqliteExecutor, doing string, do func(ctx context.Context, exec riverdriver.Executor) (T, error)) (v T, err error) {
	err = e.driver.db.Join(ctx, doing, func(ctx context.Context, tx *sql.Tx) (err error) {
		v, err = do(ctx, e.driver.UnwrapExecutor(tx))
		return err
	})
	return v, err
}

// Begin implements riverdriver.Executor.
func (e *sqliteExecutor) Begin(ctx context.Context) (riverdriver.ExecutorTx, error) {
	for {
		tx, err := e.inner.Begin(ctx)
		if err == nil || !sqldb.HasCode(e.driver.db.Fail(ctx, "beginning", err), sqldb.CodeLocked) {
			return tx, err
		}
		timer := time.NewTimer(lockedWait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil, context.Cause(ctx)
		case <-timer.C:
		}
	}
}

// JobGetAvailable implements riverdriver.Executor.
func (e *sqliteExecutor) JobGetAvailable(ctx context.Context, params *riverdriver.JobGetAvailableParams) ([]*rivertype.JobRow, error) {
	return change(ctx, e, "taking jobs", func(ctx context.Context, exec riverdriver.Executor) ([]*rivertype.JobRow, error) {
		return exec.JobGetAvailable(ctx, params)
	})
}

// JobDeleteBefore implements riverdriver.Executor. It lets others write between
// small batches.
func (e *sqliteExecutor) JobDeleteBefore(ctx context.Context, params *riverdriver.JobDeleteBeforeParams) (int, error) {
	batch := *params
	for total := 0; ; {
		batch.Max = min(params.Max-total, cleanBatch)
		n, err := change(ctx, e, "removing old jobs", func(ctx context.Context, exec riverdriver.Executor) (int, error) {
			return exec.JobDeleteBefore(ctx, &batch)
		})
		if total += n; err != nil || n < batch.Max || total >= params.Max {
			return total, err
		}
	}
}

// QueueCreateOrSetUpdatedAt implements riverdriver.Executor.
func (e *sqliteExecutor) QueueCreateOrSetUpdatedAt(ctx context.Context, params *riverdriver.QueueCreateOrSetUpdatedAtParams) (*rivertype.Queue, error) {
	return change(ctx, e, "noting the queue", func(ctx context.Context, exec riverdriver.Executor) (*rivertype.Queue, error) {
		return exec.QueueCreateOrSetUpdatedAt(ctx, params)
	})
}

// QueueDeleteExpired implements riverdriver.Executor.
func (e *sqliteExecutor) QueueDeleteExpired(ctx context.Context, params *riverdriver.QueueDeleteExpiredParams) ([]string, error) {
	return change(ctx, e, "removing old queues", func(ctx context.Context, exec riverdriver.Executor) ([]string, error) {
		return exec.QueueDeleteExpired(ctx, params)
	})
}
