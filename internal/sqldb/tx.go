package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// Each calls do for each row of a query.
func Each(ctx context.Context, tx *sql.Tx, query string, args []any, do func(rows *sql.Rows) error) error {
	rows, err := tx.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		if err := do(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// List returns what scan reads from each row of a query; never nil.
func List[T any](ctx context.Context, tx *sql.Tx, query string, args []any, scan func(rows *sql.Rows, item *T) error) ([]T, error) {
	list := []T{}
	err := Each(ctx, tx, query, args, func(rows *sql.Rows) error {
		var item T
		err := scan(rows, &item)
		list = append(list, item)
		return err
	})
	return list, err
}

// ReadList is [List] in a [DB.Snapshot].
func ReadList[T any](ctx context.Context, d *DB, doing, query string, args []any, scan func(rows *sql.Rows, item *T) error) (list []T, err error) {
	err = d.Snapshot(ctx, doing, func(tx *sql.Tx) (err error) {
		list, err = List(ctx, tx, query, args, scan)
		return err
	})
	return list, err
}

type orZero[T any] struct{ to *T }

// OrZero is a destination that scans NULL as the zero value.
func OrZero[T any](to *T) sql.Scanner { return orZero[T]{to} }

func (z orZero[T]) Scan(value any) error {
	var n sql.Null[T]
	err := n.Scan(value)
	*z.to = n.V
	return err
}

// Nanos scans a time in nanoseconds since 1970, NULL as the zero time.
type Nanos struct{ To *time.Time }

// Scan implements [sql.Scanner].
func (n Nanos) Scan(value any) error {
	var at sql.NullInt64
	err := at.Scan(value)
	if *n.To = (time.Time{}); at.Valid {
		*n.To = time.Unix(0, at.Int64).UTC()
	}
	return err
}

// Snapshot calls do with a read-only transaction that sees one state of the database. Errors name what it was doing.
func (d *DB) Snapshot(ctx context.Context, doing string, do func(tx *sql.Tx) error) error {
	d.tryEmptyLog(ctx)
	select {
	case d.reads <- struct{}{}:
		defer func() { <-d.reads }()
	case <-ctx.Done():
		return d.Fail(ctx, doing, context.Cause(ctx))
	}
	tx, err := d.beginTx(ctx, d.read, d.dialect.snapshot)
	if err != nil {
		return d.Fail(ctx, doing, err)
	}
	defer func() { _ = tx.Rollback() }()
	return d.Fail(ctx, doing, do(tx))
}

// beginTx retries: after a server's restart every connection of the pool may be dead.
func (d *DB) beginTx(ctx context.Context, pool *sql.DB, o *sql.TxOptions) (tx *sql.Tx, err error) {
	for range d.opts.MaxConns + 1 {
		if tx, err = pool.BeginTx(ctx, o); !pgconn.SafeToRetry(err) {
			break
		}
	}
	return tx, err
}

// Change calls do in a transaction and commits it. It waits for others up to LockTimeout.
// Errors name what it was doing.
func (d *DB) Change(ctx context.Context, doing string, do func(ctx context.Context, tx *sql.Tx) error) error {
	if err := d.checkWritable(doing); err != nil {
		return err
	}
	bounded, cancel := context.WithTimeout(ctx, d.opts.LockTimeout)
	defer cancel()
	tx, end, err := d.begin(bounded)
	if err != nil {
		return d.Fail(ctx, doing, err)
	}
	defer end()
	if !d.dialect.blocks {
		bounded = context.WithoutCancel(ctx)
	}
	if err := do(bounded, tx); err != nil {
		_ = tx.Rollback()
		return d.Fail(ctx, doing, err)
	}
	return d.Fail(ctx, doing, tx.Commit())
}

// Pieces calls do, a short transaction (some 10 ms), until it reports that nothing is left, and lets others in after each
// ([DB.Yield]). Earlier pieces are kept after an error.
func (d *DB) Pieces(ctx context.Context, do func() (more bool, err error)) error {
	for {
		began := time.Now()
		more, err := do()
		if err != nil || !more {
			return err
		}
		if err := d.Yield(ctx, time.Since(began)); err != nil {
			return err
		}
	}
}

// Yield lets others change something after a transaction that took so long. On SQLite it pauses for twice as long: others
// retry after 1, 2, 4, 8 ms, and so get their turn at the latest after the next one.
func (d *DB) Yield(ctx context.Context, took time.Duration) error {
	pause := 2 * took
	if d.dialect.blocks {
		pause = 0
	}
	select {
	case <-ctx.Done():
		return d.Fail(ctx, "working in pieces", context.Cause(ctx))
	case <-time.After(pause):
		return nil
	}
}

func (d *DB) checkWritable(doing string) error {
	if d.opts.ReadOnly {
		return Failf(CodePermission, "open it without ReadOnly", "%s: the store was opened for reading", doing)
	}
	return nil
}

// begin waits for others until ctx ends. On SQLite the transaction then outlives ctx, which
// would otherwise roll it back for everybody who shares it. The caller must call end.
func (d *DB) begin(ctx context.Context) (tx *sql.Tx, end func(), err error) {
	living, end := ctx, func() {}
	detach := func() bool { return true }
	if !d.dialect.blocks {
		living, end = context.WithCancel(context.WithoutCancel(ctx))
		detach = context.AfterFunc(ctx, end)
	}
	err = d.unlocked(ctx, func() (err error) {
		tx, err = d.beginTx(living, d.write, d.dialect.change)
		return err
	})
	if err == nil && detach() {
		return tx, end, nil
	}
	detach()
	if ctx.Err() != nil {
		err = errors.Join(context.Cause(ctx), err)
	}
	if tx != nil {
		_ = tx.Rollback()
	}
	end()
	return nil, nil, err
}

// unlocked retries while the database is locked, until ctx ends. SQLite's own wait ignores the
// context in some versions of the driver.
func (d *DB) unlocked(ctx context.Context, do func() error) error {
	const longest = 50 * time.Millisecond
	for wait := time.Millisecond; ; wait = min(2*wait, longest) {
		err := do()
		if err == nil || ctx.Err() != nil || d.dialect.classify(err).Code != CodeLocked {
			return err
		}
		select {
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), err)
		case <-time.After(wait):
		}
	}
}

// Collided reports whether a transaction failed only because of concurrent ones, so that it may
// succeed when retried. On SQLite that never happens.
func (d *DB) Collided(err error) bool {
	cause, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		return false
	}
	// unique_violation, serialization_failure, deadlock_detected
	return slices.Contains([]string{"23505", "40001", "40P01"}, cause.Code)
}

// Bounds of a transaction that calls of Join share, so that other writers get their turn.
const (
	maxBatch     = 128
	maxBatchTime = 20 * time.Millisecond
)

var errBatchLost = errors.New("the transaction was given up")

// Join is [DB.Change] for many concurrent callers. On SQLite, where each transaction waits for the disk, waiting
// calls share one: the first caller leads and runs what has queued up. Each call is a savepoint, so that one that
// fails is undone alone. It returns when the transaction is committed.
//
// Do may run in the goroutine of another caller. On PostgreSQL, Join is Change.
func (d *DB) Join(ctx context.Context, doing string, do func(ctx context.Context, tx *sql.Tx) error) error {
	if d.dialect.blocks {
		return d.Change(ctx, doing, do)
	}
	if err := d.checkWritable(doing); err != nil {
		return err
	}
	bounded, cancel := context.WithTimeout(ctx, d.opts.LockTimeout)
	defer cancel()
	j := &job{answer: make(chan error, 1), lead: make(chan struct{}, 1)}
	j.do = func(tx *sql.Tx) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return do(context.WithoutCancel(ctx), tx)
	}
	d.group.enter(j)
	select {
	case err := <-j.answer:
		return d.Fail(ctx, doing, err)
	case <-j.lead:
		d.leadBatch(bounded, j)
	case <-bounded.Done():
		if d.group.leave(j) {
			return d.Fail(ctx, doing, context.Cause(bounded))
		}
	}
	return d.Fail(ctx, doing, <-j.answer)
}

type job struct {
	do func(tx *sql.Tx) error
	// answer gets the outcome, once. lead signals that the job's caller leads the next batch.
	answer    chan error
	lead      chan struct{}
	appointed bool
}

// group queues calls of Join. While it is not empty or a batch runs, exactly one caller leads:
// the first in the queue until it takes its batch.
type group struct {
	mu    sync.Mutex
	queue []*job
	led   bool
}

func (g *group) enter(j *job) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.queue = append(g.queue, j)
	if !g.led {
		g.next()
	}
}

// leave removes a queued job; it reports false if the job runs already and will be answered.
func (g *group) leave(j *job) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	at := slices.Index(g.queue, j)
	if at < 0 {
		return false
	}
	g.queue = slices.Delete(g.queue, at, at+1)
	if j.appointed {
		g.next()
	}
	return true
}

// take removes the first job, if any, and reports whether the queue is then empty.
func (g *group) take() (j *job, last bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.queue) > 0 {
		j = g.queue[0]
		g.queue = slices.Delete(g.queue, 0, 1)
	}
	return j, len(g.queue) == 0
}

// next makes the first in the queue the leader. The mutex is held.
func (g *group) next() {
	g.led = len(g.queue) > 0
	if g.led {
		g.queue[0].appointed = true
		g.queue[0].lead <- struct{}{}
	}
}

// leadBatch runs the queued jobs in one transaction and answers all of them, its own in any case.
func (d *DB) leadBatch(ctx context.Context, j *job) {
	tx, end, err := d.begin(ctx)
	if err != nil {
		d.group.leave(j) // the others try for themselves
		j.answer <- err
		return
	}
	defer end()
	var b batch
	defer func() {
		d.group.mu.Lock()
		d.group.next()
		d.group.mu.Unlock()
		for n, j := range b.jobs {
			j.answer <- b.answers[n]
		}
	}()
	defer func() { _ = tx.Rollback() }()                                  // no effect after Commit
	if err = d.runBatch(context.WithoutCancel(ctx), tx, &b); err == nil { // on SQLite only begin waits
		err = tx.Commit()
	}
	if err != nil {
		for n := range b.answers {
			b.answers[n] = err
		}
	}
}

type batch struct {
	jobs    []*job
	answers []error
}

// runBatch runs jobs and notes their outcomes. An error loses the whole transaction.
func (d *DB) runBatch(ctx context.Context, tx *sql.Tx, b *batch) error {
	began := time.Now()
	for n := 0; n < maxBatch && (n == 0 || time.Since(began) < d.batchTime); n++ {
		j, last := d.group.take()
		if j == nil {
			break
		}
		b.jobs, b.answers = append(b.jobs, j), append(b.answers, errBatchLost)
		if n == 0 && last {
			b.answers[0] = j.do(tx)
			return b.answers[0]
		}
		if _, err := tx.ExecContext(ctx, "SAVEPOINT part"); err != nil {
			return err
		}
		b.answers[n] = j.do(tx)
		if b.answers[n] != nil {
			// Some failures, such as a full disk, end the whole transaction and its savepoints.
			if _, err := tx.ExecContext(ctx, "ROLLBACK TO part"); err != nil {
				return b.answers[n]
			}
		}
		if _, err := tx.ExecContext(ctx, "RELEASE part"); err != nil {
			return err
		}
	}
	return nil
}
