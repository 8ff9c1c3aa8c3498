package jobqueue

import (
	"cmp"
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

	"github.com/grapnelhq/grapnel/internal/sqldb"
)

const (
	// pluginSQLite has an index: reading it from a row takes as long as reading the whole job.
	pluginSQLite = "json_extract(metadata, '$.plugin')"
	indexSQLite  = "CREATE INDEX IF NOT EXISTS grapnel_job_waiting ON river_job (queue, " + pluginSQLite + ", state) WHERE state IN " + waitingStates
	// cleanBatch is how many old jobs are removed in one transaction.
	cleanBatch = 250
	// lockedWait is the pause between attempts at another process's lock.
	lockedWait = 5 * time.Millisecond
)

type sqliteFlow struct {
	client[*sql.Tx]

	opts       Options
	db         *sqldb.DB
	statements *statements
}

var _ flow = (*sqliteFlow)(nil)

func openSQLite(ctx context.Context, db *sqldb.DB, o Options, id string, w *worker) (*sqliteFlow, *statements, error) {
	if err := migrateSQLite(ctx, db); err != nil {
		return nil, nil, err
	}
	f := &sqliteFlow{client: client[*sql.Tx]{pilot: &pilot{}}, opts: o, db: db, statements: statementsFor(sqldb.SQLite, "")}
	cfg := riverConfig(o, id, "", w)
	// River would rebuild its indexes each night, which only PostgreSQL's may need.
	cfg.ReindexerSchedule = river.NeverSchedule()
	var err error
	f.Client, err = river.NewClient(&sqliteDriver{Driver: riversqlite.New(db.Writer()), flow: f}, cfg)
	return f, f.statements, err
}

func migrateSQLite(ctx context.Context, db *sqldb.DB) error {
	m, err := rivermigrate.New(riversqlite.New(nil), &rivermigrate.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	var current bool
	err = db.Snapshot(ctx, "opening the queue", func(tx *sql.Tx) error {
		existing, err := m.ExistingVersionsTx(ctx, tx)
		current, err = migrated(ctx, db, m, existing, err)
		return err
	})
	if err != nil || current {
		return err
	}
	return db.Change(ctx, "making the queue's tables", func(ctx context.Context, tx *sql.Tx) error {
		// Only PostgreSQL's types need several transactions.
		if _, err := m.MigrateTx(ctx, tx, rivermigrate.DirectionUp, nil); err != nil { //nolint:staticcheck // see above
			return err
		}
		_, err := tx.ExecContext(ctx, indexSQLite)
		return err
	})
}

func (f *sqliteFlow) insert(ctx context.Context, args *jobArgs, opts *river.InsertOpts, plugin string) (duplicate bool, err error) {
	var refused error
	err = f.db.Join(ctx, "queueing a job", func(ctx context.Context, tx *sql.Tx) error {
		var waiting, ofPlugin int
		if err := tx.QueryRowContext(ctx, f.statements.count, plugin).Scan(&waiting, &ofPlugin); err != nil {
			return err
		}
		if refused = f.opts.full(plugin, waiting, ofPlugin); refused != nil {
			return nil //nolint:nilerr // nothing was written, and others in the same transaction continue
		}
		res, err := f.InsertTx(ctx, tx, args, opts)
		duplicate = err == nil && res.UniqueSkippedAsDuplicate
		return err
	})
	return duplicate, cmp.Or(err, refused)
}

func (f *sqliteFlow) close() {}

type sqliteDriver struct {
	*riversqlite.Driver

	flow *sqliteFlow
}

var _ riverdriver.Driver[*sql.Tx] = (*sqliteDriver)(nil)

// PluginInit implements riverdriver.Driver.
func (d *sqliteDriver) PluginInit(*baseservice.Archetype) {}

// PluginPilot implements riverdriver.Driver.
func (d *sqliteDriver) PluginPilot() riverpilot.Pilot { return d.flow.pilot }

// GetExecutor implements riverdriver.Driver.
func (d *sqliteDriver) GetExecutor() riverdriver.Executor {
	return &sqliteExecutor{executor: executor{Executor: d.Driver.GetExecutor(), log: d.flow.opts.Logger}, driver: d}
}

// sqliteExecutor makes River's changes in our queue of changes, and waits for other processes.
// River itself would fail at once.
type sqliteExecutor struct {
	executor

	driver *sqliteDriver
}

func change[T any](ctx context.Context, e *sqliteExecutor, doing string, do func(ctx context.Context, exec riverdriver.Executor) (T, error)) (v T, err error) {
	err = e.driver.flow.db.Join(ctx, doing, func(ctx context.Context, tx *sql.Tx) (err error) {
		v, err = do(ctx, e.driver.UnwrapExecutor(tx))
		return err
	})
	return v, err
}

// Begin implements riverdriver.Executor.
func (e *sqliteExecutor) Begin(ctx context.Context) (riverdriver.ExecutorTx, error) {
	for {
		tx, err := e.Executor.Begin(ctx)
		if err == nil || !sqldb.HasCode(e.driver.flow.db.Fail(ctx, "beginning", err), sqldb.CodeLocked) {
			return tx, err
		}
		if !sleep(ctx, lockedWait) {
			return nil, context.Cause(ctx)
		}
	}
}

// JobGetAvailable implements riverdriver.Executor. It looks with a reader before fetching, which takes the writer.
func (e *sqliteExecutor) JobGetAvailable(ctx context.Context, params *riverdriver.JobGetAvailableParams) ([]*rivertype.JobRow, error) {
	due, f := true, e.driver.flow
	if err := f.db.Reader().QueryRowContext(ctx, f.statements.due).Scan(&due); err == nil && !due {
		return nil, nil
	}
	return change(ctx, e, "taking jobs", func(ctx context.Context, exec riverdriver.Executor) ([]*rivertype.JobRow, error) {
		return exec.JobGetAvailable(ctx, params)
	})
}

// JobDeleteBefore implements riverdriver.Executor, in small batches.
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
