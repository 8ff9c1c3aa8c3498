package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// Kind says which database a [DB] is.
type Kind string

// The kinds. SQLite takes one writer at a time, PostgreSQL any number.
const (
	SQLite   Kind = "sqlite"
	Postgres Kind = "postgres"
)

// Synchronous says what a power cut may take away of the embedded database. A
// crash of the program takes nothing in either case, and the database stays whole.
type Synchronous int

// The choices. Full is the default.
const (
	// SynchronousFull waits for the disk with each transaction.
	SynchronousFull Synchronous = iota
	// SynchronousNormal does not: a power cut may take the newest ones.
	SynchronousNormal
)

// Options say how to open a database. A Schema is needed; with nothing else, it is
// opened for reading and writing.
type Options struct {
	// Schema is what is kept in it.
	Schema Schema
	// Synchronous is for SQLite only.
	Synchronous Synchronous
	// ReadOnly opens a database that must be there, and changes nothing. A SQLite
	// file whose folder cannot be written, such as a copy on a medium that takes no
	// changes, is read as it is: nobody may change it meanwhile.
	ReadOnly bool
	// SecureDelete makes SQLite overwrite what is deleted with zeros. The log beside
	// the file holds it until that is next copied.
	SecureDelete bool
	// LockTimeout is how long changes wait for others; zero is 5 s.
	LockTimeout time.Duration
	// MaxConns bounds the connections for reading, and those to a server for
	// changes; zero is 8. Neither can use up the other's. Each [DB.Watch] has one
	// besides.
	MaxConns int

	// atRest reads a SQLite file that nobody changes, without its neighbours.
	atRest bool

	_ struct{}
}

func (o Options) withDefaults() Options {
	if o.LockTimeout == 0 {
		o.LockTimeout = 5 * time.Second
	}
	if o.MaxConns == 0 {
		o.MaxConns = 8
	}
	return o
}

// check refuses what makes no sense.
func (o Options) check() error {
	switch {
	case o.LockTimeout < 0 || o.MaxConns < 0:
		return Failf(CodeInternal, "", "options: a negative LockTimeout or MaxConns")
	case o.Synchronous != SynchronousFull && o.Synchronous != SynchronousNormal:
		return Failf(CodeInternal, "", "options: unknown Synchronous %d", o.Synchronous)
	}
	return o.Schema.check()
}

// DB is an open database. [Open] makes it; the zero value is of no use. It is
// safe for concurrent use.
type DB struct {
	opts    Options
	dialect dialect
	// name is what messages call the database; it holds no password.
	name string
	// write is for transactions that change something; of SQLite it is one
	// connection, which takes the write lock as it begins. read is for the rest, so
	// that nobody who reads keeps others from writing.
	write, read *sql.DB
	// group are those who change a SQLite database together.
	group group
	scans scans
	// maxLog and batchTime are the constants; tests have smaller ones.
	maxLog    int64
	batchTime time.Duration
	// server is how a PostgreSQL server is reached, reader how a SQLite file is opened
	// for reading.
	server *pgx.ConnConfig
	reader string
	// file is the SQLite file as it was when it was opened; nil on PostgreSQL.
	file fs.FileInfo
}

// dialect is what differs between the databases.
type dialect struct {
	kind Kind
	// folder holds the migrations that only this database takes.
	folder string
	// goose is the migrator's name of it.
	goose gooseDialect
	// snapshot are the options of a transaction that sees one state throughout,
	// change those of one that changes something.
	snapshot, change *sql.TxOptions
	// blocks says that any statement can wait for others. Of SQLite only the first
	// one does; watching the context with each of the rest would cost more than
	// they do.
	blocks bool
	// classify gives a driver's error a code, and optionally a message that goes
	// on from the database's name.
	classify func(error) *Error
	// foreign refuses a database that holds something else than the schema whose
	// table of migrations it is given.
	foreign func(ctx context.Context, db *sql.DB, table string) error
}

// Open opens a database and brings its schema up to date. The DSN is "sqlite:PATH"
// or a PostgreSQL URL. A folder that a SQLite path needs is created for this user
// alone (0700), and so is the file (0600).
//
// The context bounds opening only. The database has to be closed.
func Open(ctx context.Context, dsn string, o Options) (*DB, error) {
	o = o.withDefaults()
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
	if err := d.start(ctx); err != nil {
		return nil, errors.Join(d.Fail(ctx, "opening", err), d.Close())
	}
	return d, nil
}

// start makes the database ready. An upgrade may take longer than others may hold
// it up.
func (d *DB) start(ctx context.Context) error {
	bounded, cancel := context.WithTimeout(ctx, d.opts.LockTimeout)
	defer cancel()
	var missing fs.FS
	err := d.unlocked(bounded, func() (err error) {
		missing, err = d.checkSchema(bounded)
		return err
	})
	if err == nil && missing != nil {
		err = d.upgrade(ctx, missing)
	}
	return err
}

// Close closes the database. Calls that run end first; later ones fail. It is safe
// to call it twice. The writer is closed last: it tidies up SQLite's log.
func (d *DB) Close() error {
	if d.read == d.write {
		return d.read.Close()
	}
	return errors.Join(d.read.Close(), d.write.Close())
}

// Kind says which database it is.
func (d *DB) Kind() Kind { return d.dialect.kind }

// ReadOnly says that it was opened for reading.
func (d *DB) ReadOnly() bool { return d.opts.ReadOnly }

// LockTimeout is how long changes wait for others.
func (d *DB) LockTimeout() time.Duration { return d.opts.LockTimeout }

// Reader is the pool of connections for single queries and statements prepared
// for them. What changes something takes [DB.Change].
func (d *DB) Reader() *sql.DB { return d.read }

// Writer is the pool of connections for changes: of SQLite it is one, and who
// holds it keeps all others from changing anything. It is there to prepare
// statements; transactions are begun by [DB.Change].
func (d *DB) Writer() *sql.DB { return d.write }
