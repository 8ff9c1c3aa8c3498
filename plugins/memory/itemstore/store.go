package itemstore

import (
	"context"
	"crypto/rand"
	"database/sql"
	"embed"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"strconv"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/grapnelhq/grapnel/plugins/memory/recall"
	"github.com/grapnelhq/grapnel/store/sqldb"
)

//go:embed migrations
var migrations embed.FS

// Options say how to open a store. The zero value is fine.
type Options struct {
	// Now is the clock; nil is time.Now.
	Now func() time.Time
	// Entropy makes ids and the secret of a new store; nil is crypto/rand.Reader. It is
	// read by one goroutine at a time.
	Entropy io.Reader
	// Synchronous is for SQLite only: see [sqldb.Synchronous].
	Synchronous sqldb.Synchronous
	// LockTimeout is how long changes wait for others; zero is 5 s.
	LockTimeout time.Duration
	// MaxConns bounds the connections; zero is 4.
	MaxConns int
	// ReadOnly opens a store that must be there, and changes nothing.
	ReadOnly bool
	// Progress is told how many items of how many are done, where opening has to make
	// the index anew; nil is nobody.
	Progress func(done, total int)

	_ struct{}
}

func (o Options) withDefaults() Options {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Entropy == nil {
		o.Entropy = rand.Reader
	}
	if o.MaxConns == 0 {
		o.MaxConns = 4
	}
	if o.Progress == nil {
		o.Progress = func(int, int) {}
	}
	return o
}

// Store keeps items. [Open] makes it; the zero value is of no use. It is safe for
// concurrent use, and several may be open on one database, also in other programs.
type Store struct {
	db     *sqldb.DB
	opts   Options
	phrase phrases
	secret []byte
	ids    *ulid.LockedMonotonicReader
	// writing and reading are statements on the way of many calls, by their texts.
	writing, reading map[string]*sql.Stmt
}

// schema is what the store keeps in its database.
func schema() sqldb.Schema {
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		files = migrations // never: the name is valid; opening says what is missing
	}
	return sqldb.Schema{Migrations: files, Table: "memory_migrations", Holds: "memories"}
}

// Open opens a store: "sqlite:PATH" or "postgres://…", as package sqldb has it. A
// database that is not there is made, if it is SQLite's. It has to be closed.
//
// A store whose index was made by other rules of package recall is indexed anew first,
// which takes a while: see [Options.Progress]. The context bounds opening only.
func Open(ctx context.Context, dsn string, o Options) (*Store, error) {
	o = o.withDefaults()
	db, err := sqldb.Open(ctx, dsn, sqldb.Options{
		Schema: schema(), Synchronous: o.Synchronous, ReadOnly: o.ReadOnly, SecureDelete: true, LockTimeout: o.LockTimeout, MaxConns: o.MaxConns,
	})
	if err != nil {
		return nil, err
	}
	s := &Store{
		db: db, opts: o, phrase: phrasesOf(db.Kind()),
		ids: &ulid.LockedMonotonicReader{MonotonicReader: ulid.Monotonic(o.Entropy, 0)},
	}
	if err := s.start(ctx); err != nil {
		return nil, errors.Join(db.Fail(ctx, "opening the memory", err), s.Close())
	}
	return s, nil
}

// start makes the store ready.
func (s *Store) start(ctx context.Context) error {
	meta, err := s.readMeta(ctx)
	if err == nil && meta[metaSecret] == "" && !s.opts.ReadOnly {
		err = s.db.Change(ctx, "making a memory", func(ctx context.Context, tx *sql.Tx) error {
			return txn{Tx: tx, phrase: &s.phrase}.found(ctx, s.opts.Entropy)
		})
		if err == nil {
			meta, err = s.readMeta(ctx)
		}
	}
	if err != nil {
		return err
	}
	if s.secret, err = hex.DecodeString(meta[metaSecret]); err != nil || len(s.secret) == 0 {
		return sqldb.Failf(sqldb.CodeDamaged, "put a backup in its place", "the store's secret is not there")
	}
	switch {
	case meta[metaVersion] != strconv.Itoa(recall.Version):
		err = s.remake(ctx, s.rebuild)
	case meta[metaUncounted] != "":
		err = s.remake(ctx, s.recount)
	}
	if err != nil {
		return err
	}
	if meta[metaUntidy] != "" && !s.opts.ReadOnly {
		s.tidyAgain(ctx)
	}
	return s.prepare(ctx)
}

// tidyAgain does what could not be done when it was asked for, unless it takes too
// long for somebody who waits for a store. What fails again stays noted.
func (s *Store) tidyAgain(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	_ = s.tidy(ctx)
}

// readMeta returns what memory_meta has.
func (s *Store) readMeta(ctx context.Context) (map[string]string, error) {
	meta := map[string]string{}
	err := s.read(ctx, "opening the memory", func(tx txn) error {
		for _, name := range []string{metaSecret, metaVersion, metaUntidy, metaUncounted} {
			value, err := tx.meta(ctx, name)
			if err != nil {
				return err
			}
			meta[name] = value
		}
		return nil
	})
	return meta, err
}

// prepare prepares what is on the way of many calls. For what PostgreSQL's driver
// sees often it does that by itself.
func (s *Store) prepare(ctx context.Context) (err error) {
	if s.phrase.postgres {
		return nil
	}
	p := &s.phrase
	if s.reading, err = prepare(ctx, s.db.Reader(), p.readScopes(), p.counts, p.hits, p.readCandidates(), p.readScopeNames()); err != nil || s.opts.ReadOnly {
		return err
	}
	s.writing, err = prepare(ctx, s.db.Writer(), readMeta, p.readScopes(), p.rowsByHash(), rowBySlot, insertRow, insertTokens, deleteTokens, p.count)
	return err
}

// Close closes the store. Calls that run end first. It is safe to call it twice.
func (s *Store) Close() error {
	var errs []error
	for _, all := range []map[string]*sql.Stmt{s.writing, s.reading} {
		for _, stmt := range all {
			errs = append(errs, stmt.Close())
		}
	}
	return errors.Join(append(errs, s.db.Close())...)
}

// now is the time as it is kept and read again.
func (s *Store) now() time.Time { return fromNanos(s.opts.Now().UnixNano()) }

// newID makes an id.
func (s *Store) newID(now time.Time) (string, error) {
	id, err := ulid.New(ulid.Timestamp(now), s.ids)
	return id.String(), err
}
