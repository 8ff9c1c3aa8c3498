package store

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/store/schema"
	"github.com/grapnelhq/grapnel/store/sqldb"
)

// Synchronous says what a power cut may take away of the embedded store. A
// crash of the program takes nothing in either case, and the log stays whole.
type Synchronous = sqldb.Synchronous

// The choices. Full is the default.
const (
	// SynchronousFull waits for the disk with each manifest.
	SynchronousFull = sqldb.SynchronousFull
	// SynchronousNormal does not: a power cut may take the newest ones.
	SynchronousNormal = sqldb.SynchronousNormal
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
	// MaxConns bounds the connections for reading, and those to a server for
	// changes; zero is 8.
	MaxConns int
	// Now is the clock of states; nil is time.Now. Manifests bring their own times.
	Now func() time.Time

	_ struct{}
}

// Store is an open database. [Open] makes it; the zero value is of no use. It is
// safe for concurrent use.
type Store struct {
	opts   Options
	db     *sqldb.DB
	phrase phrases
	append appendStatements
	// rooms are *[]byte where records are encoded, used again and again.
	rooms sync.Pool
}

// phrases are what differs between the databases in the statements of the log.
type phrases struct {
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
}

func phrasesOf(k sqldb.Kind) phrases {
	if k == sqldb.Postgres {
		return phrases{
			lockChain: lockChainPostgres, putTexts: putTextsPostgres, textsAtOnce: true,
			sharing: " FOR KEY SHARE", unlockedOnly: " FOR UPDATE SKIP LOCKED",
		}
	}
	return phrases{lockChain: lockChainSQLite, putTexts: putTextSQLite}
}

// Open opens a store and brings its schema up to date. The DSN is "sqlite:PATH"
// or a PostgreSQL URL. A folder that a SQLite path needs is created for this user
// alone (0700), and so is the file (0600).
//
// The context bounds opening only. The store has to be closed.
func Open(ctx context.Context, dsn string, o Options) (*Store, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	o.Key, o.FingerprintKey = append([]byte(nil), o.Key...), append([]byte(nil), o.FingerprintKey...)
	db, err := sqldb.Open(ctx, dsn, sqldb.Options{
		Schema: schema.Current(), Synchronous: o.Synchronous, ReadOnly: o.ReadOnly, LockTimeout: o.LockTimeout, MaxConns: o.MaxConns,
	})
	if err != nil {
		return nil, err
	}
	s := &Store{opts: o, db: db, phrase: phrasesOf(db.Kind())}
	if o.ReadOnly {
		return s, nil
	}
	preparing, cancel := context.WithTimeout(ctx, db.LockTimeout())
	defer cancel()
	if err := s.append.prepare(preparing, db.Writer(), &s.phrase); err != nil {
		return nil, errors.Join(db.Fail(ctx, "opening", err), s.Close())
	}
	return s, nil
}

// DB returns the database, for what is kept beside the manifests. It is closed
// with the store.
func (s *Store) DB() *sqldb.DB { return s.db }

// Close closes the store. Calls that run end first; later ones fail. It is safe
// to call it twice.
func (s *Store) Close() error { return errors.Join(s.append.close(), s.db.Close()) }

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
