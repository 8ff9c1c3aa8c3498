package treestore

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/grapnelhq/grapnel/store/sqldb"
	"github.com/grapnelhq/grapnel/tree"
)

// Options say how to keep a tree. The zero value is fine.
type Options struct {
	// Now is the clock; nil is time.Now.
	Now func() time.Time
	// Random makes the ids that callers leave out; nil is crypto/rand.Reader. It has
	// to be safe for concurrent use.
	Random io.Reader

	_ struct{}
}

// Store is a [tree.Store] in a database. [New] makes it; the zero value is of no
// use.
type Store struct {
	db     *sqldb.DB
	opts   Options
	phrase phrases
	// saving and reading are statements on the way of many calls, by their texts: what
	// saving a document takes, and what looks for the document in effect.
	saving, reading map[string]*sql.Stmt

	mu sync.Mutex
	// nudges are of those who listen.
	nudges map[chan struct{}]struct{}
}

var _ tree.Store = (*Store)(nil)

// New returns the tree in a database. The context bounds New only. The store has
// to be closed before the database.
func New(ctx context.Context, db *sqldb.DB, o Options) (*Store, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Random == nil {
		o.Random = rand.Reader
	}
	s := &Store{db: db, opts: o, phrase: phrasesOf(db.Kind()), nudges: map[chan struct{}]struct{}{}}
	preparing, cancel := context.WithTimeout(ctx, db.LockTimeout())
	defer cancel()
	if err := s.prepare(preparing); err != nil {
		return nil, errors.Join(outcome(db.Fail(ctx, "opening the tree", err)), s.Close())
	}
	return s, nil
}

// prepare prepares what is on the way of many calls. For what PostgreSQL's driver
// sees often it does that by itself.
func (s *Store) prepare(ctx context.Context) (err error) {
	if s.reading, err = prepared(ctx, s.db.Reader(), forThread, forFolder); err != nil || s.db.ReadOnly() {
		return err
	}
	if s.db.Kind() == sqldb.Postgres {
		return s.adoptRestored(ctx)
	}
	s.saving, err = prepared(ctx, s.db.Writer(), s.savingTexts()...)
	return err
}

// prepared returns prepared statements by their texts, also those before one that
// failed.
func prepared(ctx context.Context, db *sql.DB, texts ...string) (map[string]*sql.Stmt, error) {
	all := map[string]*sql.Stmt{}
	for _, text := range texts {
		stmt, err := db.PrepareContext(ctx, text) //nolint:sqlclosecheck // by Close
		if err != nil {
			return all, err
		}
		all[text] = stmt
	}
	return all, nil
}

// Close gives back what the store has of the database, which stays open. Calls must
// have ended. It is safe to call it twice.
func (s *Store) Close() error {
	var errs []error
	for _, all := range []map[string]*sql.Stmt{s.saving, s.reading} {
		for _, stmt := range all {
			errs = append(errs, stmt.Close())
		}
	}
	return errors.Join(errs...)
}

// now is the time as it is kept and read again.
func (s *Store) now() time.Time { return fromNanos(s.opts.Now().UnixNano()) }

func fromNanos(n int64) time.Time { return time.Unix(0, n).UTC() }

// newID makes an id where the caller chose none.
func (s *Store) newID(chosen string) (string, error) {
	if chosen != "" {
		return chosen, nil
	}
	id, err := ulid.New(ulid.Timestamp(s.opts.Now()), s.opts.Random)
	if err != nil {
		return "", err
	}
	return id.String(), nil
}

// outcome turns an error of the database into one of trees, where the caller may
// know about it: what was refused, and a database that is out of reach now.
func outcome(err error) error {
	if err == nil {
		return nil
	}
	if refused, ok := errors.AsType[*tree.Error](err); ok {
		return refused
	}
	for _, code := range []sqldb.Code{sqldb.CodeUnreachable, sqldb.CodeLocked, sqldb.CodeFull} {
		if sqldb.HasCode(err, code) {
			return &tree.Error{Code: tree.CodeUnavailable, Message: "the database is not available now; try again", Err: err}
		}
	}
	return err
}

// nullable is a folder's id as the database has it: null for the root.
func nullable(id tree.FolderID) any {
	if id == "" {
		return nil
	}
	return string(id)
}
