package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// lowSpace is how much room a disk has to have for a database to be well: some
// transactions' worth.
const lowSpace = 4 << 20

// Probe writes the least that there is to write, and returns why that was not kept:
// a full or read-only disk, a SQLite file that was removed or replaced while it was
// open, a server that is gone, in recovery or read-only. It waits until ctx ends, and
// no longer than LockTimeout.
//
// It changes no row. Of SQLite it costs what each transaction does, a wait for the
// disk, and wakes those who watch.
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
	// A page of the file's header is written to the log and kept, though its value is
	// the same.
	err := d.Join(ctx, doing, func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "PRAGMA user_version = 0")
		return err
	})
	if err != nil {
		return err
	}
	return d.probeFile(d.name + "-wal")
}

// probeFile reports a file that has lost its name, or has given it to another one:
// what is written into it is gone with the process.
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

// probePostgres has the server begin a change. It refuses by itself what takes no
// changes, but with a reason that names the statement and not the server.
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
	_, err = tx.ExecContext(ctx, "SELECT txid_current()") // which ends in its log
	return err
}
