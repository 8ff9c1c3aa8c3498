package store

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"strings"
	"sync"
	"time"

	"github.com/grapnelhq/grapnel/manifest"
)

// Synchronous says what a power cut may take away of the embedded store. A
// crash of the program takes nothing in either case, and the log stays whole.
type Synchronous int

// The choices. Full is the default.
const (
	// SynchronousFull waits for the disk with each manifest.
	SynchronousFull Synchronous = iota
	// SynchronousNormal does not: a power cut may take the newest ones.
	SynchronousNormal
)

// Options say how to open a store. The zero value opens it for reading and
// writing, without keys.
type Options struct {
	// Key makes the hashes of manifests and sign-offs HMACs, which nobody without
	// it can make anew. It is copied.
	Key []byte
	// FingerprintKey is the key of the manifests' fingerprints, if they have one.
	// It is needed to verify texts.
	FingerprintKey []byte
	// Synchronous is for SQLite only.
	Synchronous Synchronous
	// ReadOnly opens a database that must be there, and changes nothing. A SQLite
	// file whose folder cannot be written, such as a copy on a medium that takes no
	// changes, is read as it is: nobody may change it meanwhile.
	ReadOnly bool
	// LockTimeout is how long appending waits for others; zero is 5 s.
	LockTimeout time.Duration
	// MaxConns bounds the connections: to a server, or for reading the embedded
	// store; zero is 8.
	MaxConns int
	// Now is the clock of states; nil is time.Now. Manifests bring their own times.
	Now func() time.Time

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
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

// check refuses what makes no sense.
func (o Options) check() error {
	switch {
	case o.LockTimeout < 0 || o.MaxConns < 0:
		return failf(CodeInternal, "", "options: a negative LockTimeout or MaxConns")
	case o.Synchronous != SynchronousFull && o.Synchronous != SynchronousNormal:
		return failf(CodeInternal, "", "options: unknown Synchronous %d", o.Synchronous)
	}
	return nil
}

// Store is an open database. [Open] makes it; the zero value is of no use. It is
// safe for concurrent use.
type Store struct {
	opts    Options
	dialect dialect
	// name is what messages call the database; it holds no password.
	name string
	// write is for transactions that change something; of SQLite it is one
	// connection, which takes the write lock as it begins. read is for the rest.
	write, read *sql.DB
	append      appendStatements
	// rooms are *[]byte where records are encoded, used again and again.
	rooms sync.Pool
}

// dialect is what differs between the databases.
type dialect struct {
	// folder holds the migrations that only this database takes.
	folder string
	// goose is the migrator's name of it.
	goose gooseDialect
	// snapshot are the options of a transaction that sees one state throughout.
	snapshot *sql.TxOptions
	// lockChain is the statement that locks a thread and returns its sign-off.
	lockChain string
	// putTexts is the statement that keeps a text, or all of them.
	putTexts    string
	textsAtOnce bool
	// sharing ends a statement that goes by a manifest which nobody may take away
	// before the transaction ends.
	sharing string
	// unlockedOnly ends a statement that takes rows which nobody else has locked.
	unlockedOnly string
	// blocks says that any statement can wait for others. Of SQLite only the first
	// one does; watching the context with each of the rest would cost more than
	// they do.
	blocks bool
	// classify gives a driver's error a code, and optionally a message that goes
	// on from the database's name.
	classify func(error) *Error
	// foreign refuses a database that holds something else.
	foreign func(context.Context, *sql.DB) error
}

// Open opens a store and brings its schema up to date. The DSN is "sqlite:PATH"
// or a PostgreSQL URL. A folder that a SQLite path needs is created for this user
// alone (0700), and so is the file (0600).
//
// The context bounds opening only. The store has to be closed.
func Open(ctx context.Context, dsn string, o Options) (*Store, error) {
	o = o.withDefaults()
	if err := o.check(); err != nil {
		return nil, err
	}
	o.Key, o.FingerprintKey = append([]byte(nil), o.Key...), append([]byte(nil), o.FingerprintKey...)
	s, err := open(ctx, dsn, o)
	if o.ReadOnly && HasCode(err, CodePermission) && isAtRest(dsn) {
		o.atRest = true
		return open(ctx, dsn, o)
	}
	return s, err
}

func open(ctx context.Context, dsn string, o Options) (*Store, error) {
	var s *Store
	var err error
	scheme, rest, _ := strings.Cut(dsn, ":")
	switch scheme {
	case "sqlite":
		s, err = openSQLite(rest, o)
	case "postgres", "postgresql":
		s, err = openPostgres(dsn, o)
	default:
		return nil, failf(CodeDSN, "use sqlite:PATH or postgres://USER@HOST/DATABASE", "the data source name has no known scheme")
	}
	if err != nil {
		return nil, err
	}
	if err := s.start(ctx); err != nil {
		return nil, errors.Join(s.fail(ctx, "opening", err), s.closePools())
	}
	return s, nil
}

// start makes the database ready. An upgrade may take longer than others may hold
// it up.
func (s *Store) start(ctx context.Context) error {
	bounded, cancel := context.WithTimeout(ctx, s.opts.LockTimeout)
	defer cancel()
	var missing fs.FS
	err := s.unlocked(bounded, func() (err error) {
		missing, err = s.checkSchema(bounded)
		return err
	})
	if err == nil && missing != nil {
		err = s.upgrade(ctx, missing)
	}
	if err != nil || s.opts.ReadOnly {
		return err
	}
	preparing, cancel := context.WithTimeout(ctx, s.opts.LockTimeout)
	defer cancel()
	return s.append.prepare(preparing, s.write, &s.dialect)
}

// Close closes the store. Calls that run end first; later ones fail. It is safe
// to call it twice.
func (s *Store) Close() error {
	return errors.Join(s.append.close(), s.closePools())
}

// closePools closes the writer last: it tidies up the embedded store's log.
func (s *Store) closePools() error {
	if s.read == s.write {
		return s.read.Close()
	}
	return errors.Join(s.read.Close(), s.write.Close())
}

// snapshot calls do with a read-only transaction that sees one state of the
// database throughout.
func (s *Store) snapshot(ctx context.Context, doing string, do func(tx *sql.Tx) error) error {
	tx, err := s.read.BeginTx(ctx, s.dialect.snapshot)
	if err != nil {
		return s.fail(ctx, doing, err)
	}
	defer func() { _ = tx.Rollback() }() // nothing was changed
	return s.fail(ctx, doing, do(tx))
}

// change calls do in a transaction and commits it. It waits for others no longer
// than LockTimeout.
func (s *Store) change(ctx context.Context, doing string, do func(ctx context.Context, tx *sql.Tx) error) error {
	if s.opts.ReadOnly {
		return failf(CodePermission, "open it without ReadOnly", "%s: the store was opened for reading", doing)
	}
	bounded, cancel := context.WithTimeout(ctx, s.opts.LockTimeout)
	defer cancel()
	var tx *sql.Tx
	err := s.unlocked(bounded, func() (err error) {
		tx, err = s.write.BeginTx(bounded, nil)
		return err
	})
	if err != nil {
		return s.fail(ctx, doing, err)
	}
	if !s.dialect.blocks {
		bounded = context.WithoutCancel(ctx)
	}
	if err := do(bounded, tx); err != nil {
		_ = tx.Rollback() // the first error counts
		return s.fail(ctx, doing, err)
	}
	return s.fail(ctx, doing, tx.Commit())
}

// unlocked calls do again while it fails because the database is locked, until
// ctx ends. SQLite's own wait is not used for that: not every version of the
// driver lets a context end it.
func (s *Store) unlocked(ctx context.Context, do func() error) error {
	const longest = 50 * time.Millisecond
	for wait := time.Millisecond; ; wait = min(2*wait, longest) {
		err := do()
		if err == nil || ctx.Err() != nil || s.dialect.classify(err).Code != CodeLocked {
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

// scanChain reads a sign-off out of a row with its columns.
func scanChain(scan func(...any) error) (manifest.Chain, error) {
	var c manifest.Chain
	var first, next int64
	err := scan(&c.WorkspaceID, &c.ThreadID, &first, &c.Before, &next, &c.Last, &c.Signature)
	c.First, c.Next = unsigned(first), unsigned(next)
	return c, err
}

// chainColumns are what scanChain reads.
const chainColumns = "workspace_id, thread_id, first_seq, first_prev, next_seq, last_hash, signature"

// unsigned turns a stored number into a seq. Numbers below 0 were not written by
// us; as very high ones they match nothing.
func unsigned(n int64) uint64 { return uint64(n) } //nolint:gosec // see above
