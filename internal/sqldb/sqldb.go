// Package sqldb opens SQL databases (SQLite or PostgreSQL) and runs transactions on them, for Grapnel's store and for
// plugins that own a database.
//
//   - [Open] takes a DSN, "sqlite:PATH" or "postgres://…", and a [Schema], and upgrades the
//     database.
//   - [DB.Snapshot] and [DB.Scan] read; [DB.Change] and [DB.Join] change.
//   - [DB.Watch] reports changes.
//   - [Error] has a code to branch on, and a hint for people.
//
// Stability: experimental until 1.0.
package sqldb

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/pressly/goose/v3"
)

// Kind says which database a [DB] is.
type Kind string

// The kinds. SQLite takes one writer at a time, PostgreSQL any number.
const (
	SQLite   Kind = "sqlite"
	Postgres Kind = "postgres"
)

// Synchronous says what a power cut may take from SQLite. A crash of the program takes nothing, and the database
// stays whole.
type Synchronous int

// The choices. Full is the default.
const (
	// SynchronousFull waits for the disk with each transaction.
	SynchronousFull Synchronous = iota
	// SynchronousNormal does not: a power cut may take the newest ones.
	SynchronousNormal
)

// Options say how to open a database. Only Schema is required.
type Options struct {
	Schema Schema
	// Synchronous is for SQLite only.
	Synchronous Synchronous
	// ReadOnly opens an existing database and changes nothing. A SQLite file in a directory that cannot be written is
	// read as it is: nobody may change it meanwhile.
	ReadOnly bool
	// SecureDelete makes SQLite overwrite deleted data with zeros, and lets [DB.Wipe] give its space back. The
	// write-ahead log holds it until then, or until the log is next copied.
	SecureDelete bool
	// LockTimeout is how long changes wait for others; zero is 5 s.
	LockTimeout time.Duration
	// MaxConns bounds the connections for reading, and separately those to a server for changes; zero is 8. Each
	// [DB.Watch] has one more.
	MaxConns int

	// atRest opens a SQLite file without its -wal and -shm.
	atRest bool
	// fresh says that a SQLite file has no tables yet.
	fresh bool

	_ struct{}
}

func (o Options) check() error {
	switch {
	case o.LockTimeout < 0 || o.MaxConns < 0:
		return Failf(CodeInternal, "", "options: a negative LockTimeout or MaxConns")
	case o.Synchronous != SynchronousFull && o.Synchronous != SynchronousNormal:
		return Failf(CodeInternal, "", "options: unknown Synchronous %d", o.Synchronous)
	}
	return nil
}

// DB is an open database, made by [Open]. It is safe for concurrent use.
type DB struct {
	opts    Options
	dialect dialect
	name    string
	// write is for changes; on SQLite it is one connection, which locks as it begins. Readers have a pool of their
	// own, so that they cannot block changes.
	write, read *sql.DB
	closed      atomic.Bool
	group       group
	scans       scans
	// reads has a value for each running snapshot; filling it blocks new ones.
	reads chan struct{}
	// Constants, smaller in tests.
	maxLog    int64
	batchTime time.Duration
	server    *pgx.ConnConfig
	reader    string
	// file identifies the SQLite file that was opened; nil on PostgreSQL.
	file fs.FileInfo
}

type dialect struct {
	kind             Kind
	directory        string
	goose            goose.Dialect
	snapshot, change *sql.TxOptions
	// blocks says that any statement may wait for others; on SQLite only the first does.
	blocks bool
	// classify gives a driver's error a code, and optionally a message to follow the database's name.
	classify func(error) *Error
	foreign  func(ctx context.Context, db *sql.DB, table string) error
}

// Open opens a database and upgrades its schema. The DSN is "sqlite:PATH" or a PostgreSQL URL. SQLite files and
// missing directories are created for this user alone. The context bounds opening only. The database must be closed.
func Open(ctx context.Context, dsn string, o Options) (*DB, error) {
	o.LockTimeout, o.MaxConns = cmp.Or(o.LockTimeout, 5*time.Second), cmp.Or(o.MaxConns, 8)
	if err := o.check(); err != nil {
		return nil, err
	}
	d, err := open(ctx, dsn, o)
	if o.ReadOnly && HasCode(err, CodePermission) && isAtRest(dsn) {
		o.atRest = true
		return open(ctx, dsn, o)
	}
	return d, err
}

func open(ctx context.Context, dsn string, o Options) (*DB, error) {
	var d *DB
	var err error
	scheme, rest, _ := strings.Cut(dsn, ":")
	switch scheme {
	case "sqlite":
		d, err = openSQLite(rest, o)
	case "postgres", "postgresql":
		d, err = openPostgres(dsn, o)
	default:
		return nil, Failf(CodeDSN, "use sqlite:PATH or postgres://USER@HOST/DATABASE", "the data source name has no known scheme")
	}
	if err != nil {
		return nil, err
	}
	d.reads = make(chan struct{}, o.MaxConns)
	if err := d.start(ctx); err != nil {
		return nil, errors.Join(d.Fail(ctx, "opening", err), d.Close())
	}
	return d, nil
}

// start checks the schema within LockTimeout; an upgrade may take longer.
func (d *DB) start(ctx context.Context) error {
	bounded, cancel := context.WithTimeout(ctx, d.opts.LockTimeout)
	defer cancel()
	var missing fs.FS
	err := d.unlocked(bounded, func() (err error) {
		missing, err = d.checkSchema(bounded)
		return err
	})
	if err != nil || missing == nil {
		return err
	}
	return d.upgrade(ctx, missing)
}

// Close closes the database after running calls have ended; later ones fail. It is safe to call twice.
func (d *DB) Close() error {
	d.closed.Store(true)
	if d.read == d.write {
		return d.read.Close()
	}
	return errors.Join(d.read.Close(), d.write.Close())
}

// Closed reports whether Close was called.
func (d *DB) Closed() bool { return d.closed.Load() }

// Kind says which database it is.
func (d *DB) Kind() Kind { return d.dialect.kind }

// ReadOnly reports whether it was opened for reading only.
func (d *DB) ReadOnly() bool { return d.opts.ReadOnly }

// LockTimeout is how long changes wait for others.
func (d *DB) LockTimeout() time.Duration { return d.opts.LockTimeout }

// Reader is the pool for single queries and statements prepared for them.
func (d *DB) Reader() *sql.DB { return d.read }

// Writer is the pool for changes, one connection on SQLite. Use it to prepare statements; [DB.Change] begins
// transactions.
func (d *DB) Writer() *sql.DB { return d.write }

// Code is the kind of failure of an [Error]. Other packages define more.
type Code string

// The codes.
const (
	CodeInternal    Code = "internal"    // everything without a code of its own
	CodeDSN         Code = "dsn"         // an unusable data source name
	CodeNotFound    Code = "not_found"   // a missing database, or something missing in it
	CodeSchema      Code = "schema"      // a database of a newer Grapnel, or of another program
	CodeDamaged     Code = "damaged"     // a file that is not a database, or no longer one
	CodeLocked      Code = "locked"      // others kept the database locked for too long
	CodeFull        Code = "full"        // a full disk or quota
	CodePermission  Code = "permission"  // a database that this user may not read or write
	CodeUnreachable Code = "unreachable" // a server that does not answer
)

// Error is a failure of a database.
type Error struct {
	Code Code
	// Message says what happened, without passwords.
	Message string
	// Hint says what to do about it; may be empty.
	Hint string
	// Err is the cause; may be nil.
	Err error
}

// Error implements error.
func (e *Error) Error() string {
	s := "store: " + e.Message
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	if e.Hint != "" {
		s += " (" + e.Hint + ")"
	}
	return s
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// HasCode reports whether err wraps an [*Error] with that code.
func HasCode(err error, code Code) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Code == code
}

// Failf makes an [*Error] without a cause.
func Failf(code Code, hint, format string, args ...any) error {
	return &Error{Code: code, Hint: hint, Message: fmt.Sprintf(format, args...)}
}

// Fail turns a failure of the database into an [*Error]. An [*Error] stays as it is, errors of the context are
// wrapped, nil stays nil.
func (d *DB) Fail(ctx context.Context, doing string, err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*Error](err); ok {
		return err
	}
	if ctx.Err() != nil {
		return fmt.Errorf("store: %s: %w", doing, context.Cause(ctx))
	}
	e := d.dialect.classify(err)
	e.Err = err
	if e.Code == CodeInternal && errors.Is(err, context.DeadlineExceeded) {
		e.Code, e.Message = CodeLocked, fmt.Sprintf("did not finish within %s", d.opts.LockTimeout)
		e.Hint = "another program holds it, or it is overloaded: find out what uses it, and try again"
	}
	if e.Message != "" {
		doing += ": " + d.name + " " + e.Message
	}
	e.Message = doing
	return e
}

// Prepare returns statements by their texts, including those before one that cannot be prepared. The caller closes them.
func Prepare(ctx context.Context, db *sql.DB, texts ...string) (map[string]*sql.Stmt, error) {
	all := map[string]*sql.Stmt{}
	for _, text := range texts {
		stmt, err := db.PrepareContext(ctx, text) //nolint:sqlclosecheck // see above
		if err != nil {
			return all, err
		}
		all[text] = stmt
	}
	return all, nil
}
