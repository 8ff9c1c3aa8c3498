package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/pressly/goose/v3"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

func openSQLite(path string, o Options) (*DB, error) {
	if path == "" || path == ":memory:" || strings.ContainsRune(path, 0) {
		return nil, Failf(CodeDSN, "use sqlite:PATH", "sqlite: needs the path of a file")
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	if err := prepareFile(path, o.ReadOnly); err != nil {
		return nil, err
	}
	d := &DB{opts: o, name: path, maxLog: maxLog, batchTime: maxBatchTime, dialect: dialect{
		kind: SQLite, directory: "sqlite", goose: goose.DialectSQLite3, classify: classifySQLite, foreign: foreignSQLite,
		snapshot: &sql.TxOptions{ReadOnly: true},
	}}
	if d.file, err = os.Stat(path); err != nil {
		return nil, fileError(path, err)
	}
	d.reader = sqliteDSN(path, o, true)
	if d.read, err = sql.Open("sqlite", d.reader); err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	d.read.SetMaxOpenConns(o.MaxConns)
	d.read.SetMaxIdleConns(o.MaxConns)
	d.write = d.read
	if o.ReadOnly {
		return d, nil
	}
	o.fresh = d.file.Size() == 0
	if d.write, err = sql.Open("sqlite", sqliteDSN(path, o, false)); err != nil {
		return nil, errors.Join(fmt.Errorf("store: %w", err), d.read.Close())
	}
	d.write.SetMaxOpenConns(1)
	return d, nil
}

// prepareFile creates the directory and file for this user alone. SQLite gives the files beside it the same mode.
func prepareFile(path string, readOnly bool) error {
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		return Failf(CodeDSN, "give the path of a file", "%s is not a regular file", path)
	}
	if err == nil || readOnly || !errors.Is(err, fs.ErrNotExist) {
		return fileError(path, err)
	}
	if err := makeDirectory(filepath.Dir(path)); err != nil {
		return fileError(path, err)
	}
	return fileError(path, createFile(path))
}

// makeDirectory syncs each directory that it creates, as SQLite syncs files.
func makeDirectory(path string) error {
	err := os.Mkdir(path, 0o700)
	if errors.Is(err, fs.ErrNotExist) {
		if err = makeDirectory(filepath.Dir(path)); err == nil {
			err = os.Mkdir(path, 0o700)
		}
	}
	if errors.Is(err, fs.ErrExist) {
		return nil // a file in its place fails later
	}
	if err != nil {
		return err
	}
	parent, err := os.Open(filepath.Dir(path))
	if err != nil {
		return nil //nolint:nilerr // a directory that may be written and not read
	}
	_ = parent.Sync() // not every system can
	return parent.Close()
}

// createFile creates an empty file unless it exists. It is closed before it gets its name:
// closing a file that another store of this process has open would drop SQLite's locks on it.
func createFile(path string) error {
	file, err := os.CreateTemp(filepath.Dir(path), ".grapnel-*") // mode 0600
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(file.Name()) }()
	if err := file.Close(); err != nil {
		return err
	}
	if err = os.Link(file.Name(), path); err == nil || errors.Is(err, fs.ErrExist) {
		return nil
	}
	// Not all file systems have links. Then two stores that create a file at once must be in different processes.
	if file, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600); err == nil {
		return file.Close()
	} else if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

func fileError(path string, err error) error {
	if err == nil {
		return nil
	}
	e := &Error{Code: CodeInternal, Message: "cannot open " + path, Err: err, Hint: "check the path"}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		e.Code, e.Hint = CodeNotFound, "it is made when it is first written to; check the path"
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		e.Code, e.Hint = CodePermission, "run as the user that the store belongs to, or choose another path"
	}
	return e
}

// checkpointPages (8 MiB) is how long the write-ahead log grows before a change copies it into
// the database. Reusing the log waits less for the disk than growing it.
const checkpointPages = 2000

func sqliteDSN(path string, o Options, reader bool) string {
	// Readers hardly ever wait; writers do in DB.unlocked.
	wait := min(o.LockTimeout, 5*time.Second)
	if !reader {
		wait = 0
	}
	q := url.Values{"_error_rc": {"1"}, "_pragma": {fmt.Sprintf("busy_timeout(%d)", wait.Milliseconds())}}
	if reader {
		q.Set("mode", "ro")
		if o.atRest {
			q.Set("immutable", "1")
		}
	} else {
		q.Set("_txlock", "immediate")
		q.Set("_journal_mode", "WAL")
		q.Set("_synchronous", map[Synchronous]string{SynchronousFull: "FULL", SynchronousNormal: "NORMAL"}[o.Synchronous])
		q.Add("_pragma", fmt.Sprintf("wal_autocheckpoint(%d)", checkpointPages))
		if o.SecureDelete && o.fresh {
			q.Set("_auto_vacuum", "INCREMENTAL") // it can only be set then, and takes a lock
		}
		if o.SecureDelete {
			q.Add("_pragma", "secure_delete(1)")
		}
	}
	name := filepath.ToSlash(path)
	if !strings.HasPrefix(name, "/") {
		name = "/" + name // a drive
	}
	return "file://" + (&url.URL{Path: name}).EscapedPath() + "?" + q.Encode()
}

// isAtRest reports whether a SQLite file has no write-ahead log: the file alone is the database.
func isAtRest(dsn string) bool {
	path, ok := strings.CutPrefix(dsn, "sqlite:")
	info, err := os.Stat(path + "-wal")
	return ok && (errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() == 0)
}

// foreignSQLite refuses a database that has tables but not our table of migrations.
func foreignSQLite(ctx context.Context, db *sql.DB, table string) error {
	var tables, ours int
	err := db.QueryRowContext(ctx, "SELECT count(*), count(*) FILTER (WHERE name = $1) FROM sqlite_master WHERE type = 'table'", table).
		Scan(&tables, &ours)
	if err != nil || tables == 0 || ours > 0 {
		return err
	}
	return Failf(CodeSchema, "choose another path", "the database holds %d tables of another program", tables)
}

func classifySQLite(err error) *Error {
	e := &Error{Code: CodeInternal}
	cause, ok := errors.AsType[*sqlite.Error](err)
	if !ok {
		return e
	}
	switch cause.Code() & 0xff { // the primary code
	case sqlite3.SQLITE_NOTADB:
		e.Code, e.Message = CodeDamaged, "is not a SQLite database, or its beginning is damaged"
		e.Hint = "put a backup in its place, or move the file away and a new one is made"
	case sqlite3.SQLITE_CORRUPT:
		e.Code, e.Message = CodeDamaged, "is damaged"
		e.Hint = "put a backup in its place, or save what can be read: sqlite3 FILE .recover | sqlite3 NEWFILE"
		if IndexDamaged(err) {
			e.Message, e.Hint = "has a damaged index", "grapnel manifest prune makes that of a log again"
		}
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		e.Code, e.Message = CodeLocked, "is locked by another program"
		e.Hint = "end the program that holds it (fuser FILE), and try again"
	case sqlite3.SQLITE_FULL:
		e.Code, e.Message = CodeFull, "has no space left"
		e.Hint = "free space on the disk, or remove old entries; what was kept is safe"
	case sqlite3.SQLITE_IOERR:
		e.Message = "cannot be read or written"
		e.Hint = "check the disk: whether it is full, within the quota, and sound"
		if cause.Code() == sqlite3.SQLITE_IOERR_WRITE || cause.Code() == sqlite3.SQLITE_IOERR_TRUNCATE {
			e.Code = CodeFull
		}
	case sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM:
		e.Code, e.Message = CodePermission, "cannot be opened or written"
		e.Hint = "its directory must be writable too, also for reading; a copy elsewhere can be read"
	}
	return e
}

// IndexDamaged reports whether an index of words (FTS5) of a SQLite file is damaged.
func IndexDamaged(err error) bool {
	cause, ok := errors.AsType[*sqlite.Error](err)
	return ok && cause.Code() == sqlite3.SQLITE_CORRUPT_VTAB
}
