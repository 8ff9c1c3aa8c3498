package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// Each calls do for each row of a query.
func Each(ctx context.Context, tx *sql.Tx, query string, args []any, do func(rows *sql.Rows) error) error {
	rows, err := tx.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }() // Err tells what matters
	for rows.Next() {
		if err := do(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// Snapshot calls do with a read-only transaction that sees one state of the
// database throughout. Doing names the work in errors.
func (d *DB) Snapshot(ctx context.Context, doing string, do func(tx *sql.Tx) error) error {
	d.tryEmptyLog(ctx)
	tx, err := d.beginTx(ctx, d.read, d.dialect.snapshot)
	if err != nil {
		return d.Fail(ctx, doing, err)
	}
	defer func() { _ = tx.Rollback() }() // nothing was changed
	return d.Fail(ctx, doing, do(tx))
}

// beginTx begins a transaction. After a restart of the server each connection of the
// pool may turn out to be dead, before anything was sent by it.
func (d *DB) beginTx(ctx context.Context, pool *sql.DB, o *sql.TxOptions) (tx *sql.Tx, err error) {
	for range d.opts.MaxConns + 1 {
		if tx, err = pool.BeginTx(ctx, o); !pgconn.SafeToRetry(err) {
			break
		}
	}
	return tx, err
}

// Change calls do in a transaction and commits it. It waits for others no longer
// than LockTimeout. Doing names the work in errors.
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
		_ = tx.Rollback() // the first error counts
		return d.Fail(ctx, doing, err)
	}
	return d.Fail(ctx, doing, tx.Commit())
}

// Pieces calls do, which is one short transaction (some 50 ms), until it reports that
// there is no more to do: of SQLite nobody else changes anything meanwhile. After each
// it leaves the database to others for as long, since other processes have no queue and
// only look now and then. When an error stops the work, the pieces before are kept.
func (d *DB) Pieces(ctx context.Context, do func() (more bool, err error)) error {
	for {
		began := time.Now()
		more, err := do()
		if err != nil || !more {
			return err
		}
		var pause time.Duration
		if !d.dialect.blocks {
			pause = time.Since(began)
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return d.Fail(ctx, "working in pieces", context.Cause(ctx))
		case <-timer.C:
		}
	}
}

func (d *DB) checkWritable(doing string) error {
	if d.opts.ReadOnly {
		return Failf(CodePermission, "open it without ReadOnly", "%s: the store was opened for reading", doing)
	}
	return nil
}

// begin begins a transaction that changes something. It waits for others until
// ctx ends. Of SQLite nothing waits behind that, and the transaction outlives ctx:
// database/sql would roll it back in the middle of its work, and of everybody's
// who shares it. End frees what belongs to the transaction, when it is over.
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
	if ctx.Err() != nil { // whatever it was that this ended
		err = errors.Join(context.Cause(ctx), err)
	}
	if tx != nil {
		_ = tx.Rollback() // it was never used
	}
	end()
	return nil, nil, err
}

// unlocked calls do again while it fails because the database is locked, until
// ctx ends. SQLite's own wait is not used for that: not every version of the
// driver lets a context end it.
func (d *DB) unlocked(ctx context.Context, do func() error) error {
	const longest = 50 * time.Millisecond
	for wait := time.Millisecond; ; wait = min(2*wait, longest) {
		err := do()
		if err == nil || ctx.Err() != nil || d.dialect.classify(err).Code != CodeLocked {
			return err
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return errors.Join(context.Cause(ctx), err)
		case <-timer.C:
		}
	}
}

// Collided reports whether a transaction failed only for others that ran at the
// same time: the same again may succeed. SQLite's never do.
func (d *DB) Collided(err error) bool {
	cause, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		return false
	}
	switch cause.Code {
	case "23505", "40001", "40P01": // unique_violation, serialization_failure, deadlock_detected
		return true
	default:
		return false
	}
}
