package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	pollEvery = 50 * time.Millisecond // for changes of a SQLite file by others
	// A server that is silent for askEvery is pinged, and must answer within askTimeout.
	askEvery   = 15 * time.Second
	askTimeout = 5 * time.Second
)

// Watch calls changed soon after the database has changed, and once when it begins; spurious calls are possible. It
// returns when ctx ends or it can no longer watch. It uses a connection of its own.
//
// On PostgreSQL it listens to the channel. SQLite is polled; a value from wake polls at once,
// for changes of this program.
func (d *DB) Watch(ctx context.Context, channel string, wake <-chan struct{}, changed func()) error {
	var err error
	if d.dialect.kind == Postgres {
		err = d.watchPostgres(ctx, channel, wake, changed)
	} else {
		err = d.watchSQLite(ctx, wake, changed)
	}
	return d.Fail(ctx, "watching for changes", err)
}

// watchSQLite polls a number that changes when any other connection commits, this program's writer included.
func (d *DB) watchSQLite(ctx context.Context, wake <-chan struct{}, changed func()) (err error) {
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
		case <-wake:
		case <-ticker.C:
		}
	}
}

func (d *DB) watchPostgres(ctx context.Context, channel string, wake <-chan struct{}, changed func()) (err error) {
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
		case <-wake: // its notification came from the server
		default:
		}
		changed()
	}
}

// awaitNotice waits for a notification, and pings a silent server: its connection may be dead.
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

// lowSpace is the least free disk space that Probe accepts.
const lowSpace = 4 << 20

// Probe makes the smallest possible write and returns why it could not be kept, such as a full
// or read-only disk, a SQLite file that was removed, or a server that is gone or read-only. It
// waits up to LockTimeout. It changes no row, but wakes watchers.
func (d *DB) Probe(ctx context.Context) error {
	const doing = "probing"
	if err := d.checkWritable(doing); err != nil {
		return err
	}
	if d.dialect.kind == Postgres {
		return d.Change(ctx, doing, probePostgres)
	}
	if err := d.probeFile(d.name); err != nil {
		return err
	}
	if free, known := freeSpace(filepath.Dir(d.name)); known && free < lowSpace {
		return Failf(CodeFull, "free space on the disk; what was kept is safe", "%s: the disk has %d KiB left", d.name, free>>10)
	}
	// This writes a page of the file's header, with the same value.
	err := d.Join(ctx, doing, func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "PRAGMA user_version = 0")
		return err
	})
	if err != nil {
		return err
	}
	return d.probeFile(d.name + "-wal")
}

// probeFile reports a file that was removed or replaced while it was open: what is written to it is lost.
func (d *DB) probeFile(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && path == d.name && d.file != nil && !os.SameFile(info, d.file):
		return Failf(CodeNotFound, "stop this program, put the file or a backup back, and start again: what is written meanwhile is lost",
			"%s was removed or replaced while it was open", path)
	case err != nil:
		return fileError(path, err)
	}
	return nil
}

// probePostgres begins a change. It asks first, for errors that name the server's state rather than a statement.
func probePostgres(ctx context.Context, tx *sql.Tx) error {
	var recovering, readOnly bool
	err := tx.QueryRowContext(ctx, "SELECT pg_is_in_recovery(), current_setting('transaction_read_only')::boolean").Scan(&recovering, &readOnly)
	switch {
	case err != nil:
		return err
	case recovering:
		return Failf(CodePermission, "connect to the primary server", "the server is in recovery or a standby, and takes no changes")
	case readOnly:
		return Failf(CodePermission, "look at default_transaction_read_only of server, database and user", "the server takes no changes")
	}
	_, err = tx.ExecContext(ctx, "SELECT txid_current()") // writes to the server's log
	return err
}
