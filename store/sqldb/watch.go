package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// pollEvery is how often a SQLite file is looked at for changes of others.
	pollEvery = 50 * time.Millisecond
	// askEvery is how often a silent server is asked whether it is there still, and
	// askTimeout how long it may take to say so.
	askEvery   = 15 * time.Second
	askTimeout = 5 * time.Second
)

// Watch calls changed soon after somebody has changed the database, from the
// caller's goroutine: once as soon as it watches, and at times also without a
// change. It returns when ctx ends, or when it cannot watch any more. It has a
// connection of its own.
//
// Of PostgreSQL it tells what is notified on the channel. SQLite tells of itself
// that something was committed, whatever it was, but only when it is asked; a value
// from nudge makes it ask at once, as after a change of this program.
func (d *DB) Watch(ctx context.Context, channel string, nudge <-chan struct{}, changed func()) error {
	watch := d.watchSQLite
	if d.dialect.kind == Postgres {
		watch = d.watchPostgres
	}
	err := watch(ctx, channel, nudge, changed)
	return d.Fail(ctx, "watching for changes", err)
}

// watchSQLite reads a number that changes when another connection commits. That is
// also the case for the writer of this program.
func (d *DB) watchSQLite(ctx context.Context, _ string, nudge <-chan struct{}, changed func()) (err error) {
	db, err := sql.Open("sqlite", d.reader)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()

	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	for last := int64(-1); ; {
		var version int64
		if err := conn.QueryRowContext(ctx, "PRAGMA data_version").Scan(&version); err != nil {
			return err
		}
		if version != last {
			last = version
			changed()
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-nudge:
		case <-ticker.C:
		}
	}
}

// watchPostgres listens first and tells then, so that nothing falls between.
func (d *DB) watchPostgres(ctx context.Context, channel string, nudge <-chan struct{}, changed func()) (err error) {
	conn, err := pgx.ConnectConfig(ctx, d.server)
	if err != nil {
		return err
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), askTimeout)
		defer cancel()
		err = errors.Join(err, conn.Close(closing))
	}()
	if _, err := conn.Exec(ctx, "LISTEN "+pgx.Identifier{channel}.Sanitize()); err != nil {
		return err
	}
	changed()
	for {
		if err := awaitNotice(ctx, conn); err != nil {
			return err
		}
		select {
		case <-nudge: // its notice came by the server
		default:
		}
		changed()
	}
}

// awaitNotice waits for a notification. A server that is silent for long is asked
// whether it is there still: a connection may be dead without anybody saying so.
func awaitNotice(ctx context.Context, conn *pgx.Conn) error {
	for {
		waiting, cancel := context.WithTimeout(ctx, askEvery)
		_, err := conn.WaitForNotification(waiting)
		cancel()
		if err == nil || ctx.Err() != nil || conn.IsClosed() || !errors.Is(err, context.DeadlineExceeded) {
			return err
		}
		asking, cancel := context.WithTimeout(ctx, askTimeout)
		err = conn.Ping(asking)
		cancel()
		if err != nil {
			return fmt.Errorf("the server does not answer: %w", err)
		}
	}
}
