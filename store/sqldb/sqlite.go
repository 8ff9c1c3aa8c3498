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

// openSQLite opens the embedded store. SQLite takes one writer at a time, so
// there is one connection for writing; readers go beside it (WAL).
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
		kind: SQLite, folder: "sqlite", goose: goose.DialectSQLite3, classify: classifySQLite, foreign: foreignSQLite,
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
	if d.write, err = sql.Open("sqlite", sqliteDSN(path, o, false)); err != nil {
		return nil, errors.Join(fmt.Errorf("store: %w", err), d.read.Close())
	}
	d.write.SetMaxOpenConns(1)
	return d, nil
}

// prepareFile creates folder and file for this user alone. SQLite gives the
// files that it puts beside it the same mode.
func prepareFile(path string, readOnly bool) error {
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		return Failf(CodeDSN, "give the path of a file", "%s is a folder, or no file at all", path)
	}
	if err == nil || readOnly || !errors.Is(err, fs.ErrNotExist) {
		return fileError(path, err)
	}
	if err := makeFolder(filepath.Dir(path)); err != nil {
		return fileError(path, err)
	}
	return fileError(path, createFile(path))
}

// makeFolder creates a folder and those above it, and waits until the disk has them:
// SQLite does so for its files, which a power cut would take away with their folder.
func makeFolder(path string) error {
	err := os.Mkdir(path, 0o700)
	if errors.Is(err, fs.ErrNotExist) {
		if err = makeFolder(filepath.Dir(path)); err == nil {
			err = os.Mkdir(path, 0o700)
		}
	}
	if errors.Is(err, fs.ErrExist) {
		return nil // a file in its place is what creating the database fails with
	}
	if err != nil {
		return err
	}
	parent, err := os.Open(filepath.Dir(path))
	if err != nil {
		return nil //nolint:nilerr // a folder that may be written and not read
	}
	_ = parent.Sync() // not every system can
	return parent.Close()
}

// createFile creates an empty file, or leaves one that is there by now alone. It
// is closed before it has its name: closing a file that another store of this
// process has open would take away the locks that SQLite holds on it.
func createFile(path string) error {
	file, err := os.CreateTemp(filepath.Dir(path), ".grapnel-*") // mode 0600
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(file.Name()) }() // the other name stays
	if err := file.Close(); err != nil {
		return err
	}
	err = os.Link(file.Name(), path)
	if err == nil || errors.Is(err, fs.ErrExist) {
		return nil
	}
	// Some file systems have no links. Then two stores that create the same file
	// at the same moment have to be those of two processes.
	file, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return file.Close()
}

func fileError(path string, err error) error {
	if err == nil {
		return nil
	}
	e := &Error{Code: CodeInternal, Message: "cannot open " + path, Err: err, Remedy: "check the path"}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		e.Code, e.Remedy = CodeNotFound, "it is made when it is first written to; check the path"
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		e.Code, e.Remedy = CodePermission, "run as the user that the store belongs to, or choose another path"
	}
	return e
}

// checkpointPages is how long the write-ahead log grows before it is copied into
// the database, which one append in so many then waits for: 8 MiB. It is then
// written from its beginning again, which waits less for the disk than growing.
const checkpointPages = 2000

// sqliteDSN is a connection's name for the driver.
func sqliteDSN(path string, o Options, reader bool) string {
	// Readers hardly ever wait; writers do so in DB.unlocked.
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
		level := "FULL"
		if o.Synchronous == SynchronousNormal {
			level = "NORMAL"
		}
		q.Set("_txlock", "immediate")
		q.Set("_journal_mode", "WAL")
		q.Set("_synchronous", level)
		q.Add("_pragma", fmt.Sprintf("wal_autocheckpoint(%d)", checkpointPages))
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

// isAtRest reports whether a SQLite file has nothing beside it that belongs to it:
// then the file alone is the whole database.
func isAtRest(dsn string) bool {
	path, ok := strings.CutPrefix(dsn, "sqlite:")
	if !ok {
		return false
	}
	info, err := os.Stat(path + "-wal")
	return errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() == 0
}

// foreignSQLite refuses a database of another program, which has tables and not
// the one that notes our migrations: ours would be in its way.
func foreignSQLite(ctx context.Context, db *sql.DB, table string) error {
	var tables, ours int
	err := db.QueryRowContext(ctx, "SELECT count(*), count(*) FILTER (WHERE name = $1) FROM sqlite_master WHERE type = 'table'", table).
		Scan(&tables, &ours)
	if err != nil || tables == 0 || ours > 0 {
		return err
	}
	return Failf(CodeSchema, "choose another path", "the database holds %d tables of another program", tables)
}

// classifySQLite gives SQLite's result codes a meaning.
func classifySQLite(err error) *Error {
	e := &Error{Code: CodeInternal}
	cause, ok := errors.AsType[*sqlite.Error](err)
	if !ok {
		return e
	}
	switch cause.Code() & 0xff { // the primary code
	case sqlite3.SQLITE_NOTADB:
		e.Code, e.Message = CodeDamaged, "is not a SQLite database, or its beginning is damaged"
		e.Remedy = "put a backup in its place, or move the file away and a new one is made"
	case sqlite3.SQLITE_CORRUPT:
		e.Code, e.Message = CodeDamaged, "is damaged"
		e.Remedy = "put a backup in its place, or save what can be read: sqlite3 FILE .recover | sqlite3 NEWFILE"
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		e.Code, e.Message = CodeLocked, "is locked by another program"
		e.Remedy = "end the program that holds it (fuser FILE), and try again"
	case sqlite3.SQLITE_FULL:
		e.Code, e.Message = CodeFull, "has no room left"
		e.Remedy = "free space on the disk, or remove old entries; what was kept is safe"
	case sqlite3.SQLITE_IOERR:
		e.Message = "cannot be read or written"
		e.Remedy = "check the disk: whether it is full, within the quota, and sound"
		if cause.Code() == sqlite3.SQLITE_IOERR_WRITE || cause.Code() == sqlite3.SQLITE_IOERR_TRUNCATE {
			e.Code = CodeFull
		}
	case sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM:
		e.Code, e.Message = CodePermission, "cannot be opened or written"
		e.Remedy = "its folder must be writable too, also for reading; a copy elsewhere can be read"
	}
	return e
}
