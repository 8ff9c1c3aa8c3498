// Package store keeps manifests in a SQL database: SQLite, embedded, for one machine, and PostgreSQL for many.
//
//   - [Open] takes a DSN and gives a [Store].
//   - [Store.Append], [Store.Last] and [Store.Report] are the runtime's sink.
//   - [Store.List], [Store.Get] and [Store.Latest] read; [Store.Records] and
//     [Store.Export] stream.
//   - [Store.Verify] checks the whole log; [Store.Prune] removes old manifests so that
//     the rest can still be checked.
//   - [Store.Tree] and [Store.Queue] are the thread tree and the queue of background work in the same database.
//   - [Store.Usage] and [Store.Text] read providers' reports and texts of prompts.
//
// # What is kept
//
// A manifest is one row: its canonical JSON, compressed, and columns with copies of some of its fields as indexes. An
// auditor reads the log with the sqlite3 shell:
//
//	sqlite3 grapnel.db "SELECT sqlar_uncompress(record, bytes) FROM manifests WHERE thread_id = 't' ORDER BY seq"
//
// Providers report later, so their reports have a table of their own, outside of the hashes. Each thread has a
// sign-off ([manifest.Chain]), renewed in the transaction that appends. With a key, the hashes of manifests and the
// sign-offs are keyed.
//
// # Concurrency and errors
//
// A Store is safe for concurrent use, and several processes may share a database: SQLite takes one writer at a time,
// PostgreSQL locks the thread's sign-off.
//
// Failures of the database are an [*Error] with a code to branch on and a hint for people. Errors of a context are
// returned wrapped.
//
// Stability: experimental until 1.0.
package store

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/grapnelhq/grapnel/internal/engine/jobs"
	"github.com/grapnelhq/grapnel/internal/sqldb"
	"github.com/grapnelhq/grapnel/internal/sqldb/schema"
	"github.com/grapnelhq/grapnel/internal/tree"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/store/internal/jobqueue"
	"github.com/grapnelhq/grapnel/store/internal/treestore"
)

// Synchronous says what a power cut may take from SQLite. A crash of the program takes nothing.
type Synchronous = sqldb.Synchronous

// The choices. Full is the default.
const (
	// SynchronousFull waits for the disk with each manifest.
	SynchronousFull = sqldb.SynchronousFull
	// SynchronousNormal does not: a power cut may take the newest ones.
	SynchronousNormal = sqldb.SynchronousNormal
)

// Options say how to open a store. The zero value opens it for writing, without keys.
type Options struct {
	// Key makes the hashes of manifests and sign-offs HMACs. It is copied.
	Key []byte
	// FingerprintKey is the key of the manifests' hashes of texts, if any, to verify texts.
	FingerprintKey []byte
	// Synchronous is for SQLite only.
	Synchronous Synchronous
	// ReadOnly opens an existing database and changes nothing. A SQLite file in a directory that cannot be written is
	// read as it is: nobody may change it meanwhile.
	ReadOnly bool
	// LockTimeout is how long appending waits for others; zero is 5 s.
	LockTimeout time.Duration
	// MaxConns bounds the connections for reading, and separately those to a server for changes; zero is 8.
	MaxConns int
	// Now is the clock of states; nil is time.Now. Manifests bring their own times.
	Now func() time.Time

	_ struct{}
}

// Store is an open database, made by [Open]. It is safe for concurrent use.
type Store struct {
	opts    Options
	db      *sqldb.DB
	phrase  phrases
	packers packers
	settler settler
	// prepared are the statements of Append, by their texts.
	prepared map[string]*sql.Stmt
}

// phrases are the statements that differ between the databases.
type phrases struct {
	// putText keeps one text, and putUse its use; without that, putText keeps any number with their uses.
	putText, putUse string
	// sharing ends a statement about a manifest that must not be removed before the transaction ends.
	sharing string
	// unlockedOnly ends a statement that skips locked rows.
	unlockedOnly string
	indexPhrases
}

func phrasesOf(k sqldb.Kind) phrases {
	if k == sqldb.Postgres {
		return phrases{
			putText: putTextsPostgres, sharing: " FOR KEY SHARE", unlockedOnly: " FOR UPDATE SKIP LOCKED",
			indexPhrases: indexInPostgres(),
		}
	}
	return phrases{putText: putTextSQLite, putUse: putUseSQLite, indexPhrases: indexInSQLite()}
}

// Open opens a store and upgrades its schema. The DSN is "sqlite:PATH" or a PostgreSQL URL. SQLite files and missing
// directories are created for this user alone.
//
// The context bounds opening only. The store must be closed.
func Open(ctx context.Context, dsn string, o Options) (*Store, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	o.Key, o.FingerprintKey = append([]byte(nil), o.Key...), append([]byte(nil), o.FingerprintKey...)
	db, err := sqldb.Open(ctx, dsn, sqldb.Options{
		Schema: schema.Current(), Synchronous: o.Synchronous, ReadOnly: o.ReadOnly, SecureDelete: true, LockTimeout: o.LockTimeout, MaxConns: o.MaxConns,
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
	if err := s.prepare(preparing); err != nil {
		return nil, errors.Join(db.Fail(ctx, "opening", err), s.Close())
	}
	return s, nil
}

// DB returns the database, for what is kept beside the manifests. It is closed with the store.
func (s *Store) DB() *sqldb.DB { return s.db }

// Tree returns the thread tree that the store keeps, for gateway.Options.Tree; programs change it by the gateway's methods.
// It is closed with the store; the context bounds opening only.
func (s *Store) Tree(ctx context.Context) (tree.Store, error) {
	t, err := treestore.New(ctx, s.db, s.opts.Now)
	if err != nil {
		return nil, err
	}
	return t, nil
}

// QueueOptions configure a queue. The zero value is right for most.
type QueueOptions = jobs.QueueOptions

// JobFilter chooses what [Store.Jobs] lists.
type JobFilter = jobs.Filter

// Queue returns the queue of background work that the store keeps, for runtime.Options.Queue. It can also be listed
// and counted ([Store.Jobs]). The engine that uses it must be closed before the store.
func (s *Store) Queue(o QueueOptions) (jobs.Queue, error) {
	q, err := jobqueue.Open(s.db, o)
	if err != nil {
		return nil, err
	}
	return q, nil
}

// JobRecords is the background work that a store keeps, with the methods Counts, List, Job, Retry and Remove. The last two
// work on dead jobs, and return the ids of those that were dead.
type JobRecords = jobs.Records

// Jobs returns the background work that the store keeps, to look at it and to retry or remove what failed. It needs no
// queue, and of a store that is open for reading only it can be read.
func (s *Store) Jobs() JobRecords { return jobqueue.Look(s.db) }

// Close closes the store after running calls have ended; later ones fail. It is safe to call twice.
func (s *Store) Close() error {
	s.settler.stop()
	return s.db.Close()
}

func scanChain(scan func(...any) error) (manifest.Chain, error) {
	var c manifest.Chain
	var first, next, lastAt int64
	err := scan(&c.WorkspaceID, &c.ThreadID, &first, &c.Before, &next, &c.Last, &lastAt, &c.Signature)
	c.First, c.Next = unsigned(first), unsigned(next)
	if lastAt != 0 {
		c.LastAt = time.Unix(0, lastAt).UTC()
	}
	return c, err
}

const chainColumns = "workspace_id, thread_id, first_seq, first_prev, next_seq, last_hash, last_at, signature"

func unsigned(n int64) uint64 { return uint64(n) } //nolint:gosec // see above

// Code is the kind of failure of an [Error].
type Code = sqldb.Code

// The codes.
const (
	CodeInternal         = sqldb.CodeInternal    // everything without a code of its own
	CodeDSN              = sqldb.CodeDSN         // an unusable data source name
	CodeNotFound         = sqldb.CodeNotFound    // a missing manifest, text or database
	CodeAmbiguous   Code = "ambiguous"           // a short id that fits several manifests
	CodeInvalid     Code = "invalid"             // a manifest or text that cannot be kept, or a stored one that is not valid
	CodeKey         Code = "key_needed"          // a keyed thread in a store without the key
	CodeSchema           = sqldb.CodeSchema      // a database or manifest of a newer Grapnel, or of another program
	CodeDamaged          = sqldb.CodeDamaged     // a file that is not a database, or no longer one
	CodeLocked           = sqldb.CodeLocked      // others kept the database locked for too long
	CodeFull             = sqldb.CodeFull        // a full disk or quota
	CodePermission       = sqldb.CodePermission  // a database that this user may not read or write
	CodeUnreachable      = sqldb.CodeUnreachable // a server that does not answer
)

// Error is a failure of the store.
type Error = sqldb.Error

// HasCode reports whether err wraps an [*Error] with that code.
func HasCode(err error, code Code) bool { return sqldb.HasCode(err, code) }
