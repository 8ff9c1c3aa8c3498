// Package treestore keeps the thread tree of package tree in a SQL database: SQLite or PostgreSQL, beside the
// manifests of package store.
//
//	st, err := store.Open(ctx, "sqlite:grapnel.db", store.Options{})
//	tr, err := st.Tree(ctx)
//
// [Store] implements [tree.Store]. Several programs may use one database at once.
//
// # Concurrency
//
// The database enforces the rules. Two partial unique indexes allow one live document per scope. Each change is one
// transaction, which also writes the log of changes.
//
// On SQLite concurrent calls share a transaction ([sqldb.DB.Join]). On PostgreSQL rows are locked in this order: the
// workspace, folders, documents, threads. Changes of folders lock the workspace's row; calls that need a folder to
// exist share its row. A missing live document is inserted; if another caller was faster, the call is judged again.
//
// # The log of changes
//
// On SQLite the number of a transaction is the id of its first change, in the order of commits. On PostgreSQL it is
// the transaction's own number, and transactions commit in another order: so [Store.Changes] stops before the oldest
// that still runs, and waits a moment for it if nothing else is new. A transaction gets its number with its first row
// lock. So that numbers follow the order of changes, callers first queue up for advisory locks on names, which give
// no number.
//
// A restored database may have a log whose numbers mean nothing on its new server. The log then begins again with new
// numbers, and readers see a gap.
//
// Stability: internal.
package treestore

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/grapnelhq/grapnel/internal/sqldb"
	"github.com/grapnelhq/grapnel/internal/tree"
)

// Store is a [tree.Store] in a database, made by [New].
type Store struct {
	db     *sqldb.DB
	clock  func() time.Time
	phrase phrases
	// saving and reading are prepared statements of frequent calls, by their texts.
	saving, reading map[string]*sql.Stmt

	mu        sync.Mutex
	listeners map[chan struct{}]struct{}
}

var _ tree.Store = (*Store)(nil)

// New returns the tree in a database, with which its statements are closed. The context bounds New only.
func New(ctx context.Context, db *sqldb.DB, now func() time.Time) (*Store, error) {
	s := &Store{db: db, clock: now, phrase: phrasesOf(db.Kind()), listeners: map[chan struct{}]struct{}{}}
	preparing, cancel := context.WithTimeout(ctx, db.LockTimeout())
	defer cancel()
	if err := s.prepare(preparing); err != nil {
		return nil, outcome(db.Fail(ctx, "opening the tree", err))
	}
	return s, nil
}

// prepare prepares frequent statements; PostgreSQL's driver prepares those of changes by itself.
func (s *Store) prepare(ctx context.Context) (err error) {
	if s.reading, err = sqldb.Prepare(ctx, s.db.Reader(), forThread, forFolder); err != nil || s.db.ReadOnly() {
		return err
	}
	if s.db.Kind() == sqldb.Postgres {
		return s.adopt(ctx)
	}
	s.saving, err = sqldb.Prepare(ctx, s.db.Writer(), s.savingTexts()...)
	return err
}

// now has the precision of stored times.
func (s *Store) now() time.Time { return fromNanos(s.clock().UnixNano()) }

func fromNanos(n int64) time.Time { return time.Unix(0, n).UTC() }

func (s *Store) newID(chosen string) (string, error) {
	if chosen != "" {
		return chosen, nil
	}
	id, err := ulid.New(ulid.Timestamp(s.clock()), rand.Reader)
	if err != nil {
		return "", fmt.Errorf("making an id: %w", err)
	}
	return id.String(), nil
}

// outcome turns a database error into a [tree.Error] if it means a refusal or an unavailable database.
func outcome(err error) error {
	if refused, ok := errors.AsType[*tree.Error](err); ok {
		return refused
	}
	if failed, ok := errors.AsType[*sqldb.Error](err); ok &&
		slices.Contains([]sqldb.Code{sqldb.CodeUnreachable, sqldb.CodeLocked, sqldb.CodeFull}, failed.Code) {
		return &tree.Error{Code: tree.CodeUnavailable, Message: "the database is not available now; try again", Err: err}
	}
	return err
}

// nullable is a folder's id in the database: null for the root.
func nullable(id tree.FolderID) any {
	if id == "" {
		return nil
	}
	return string(id)
}

type txn struct {
	*sql.Tx

	// prepared are statements of its connections, by their texts.
	prepared map[string]*sql.Stmt
}

const maxCollisions = 10

// change checks the caller's parameters, if any, runs do in a transaction, which may be retried, and wakes the
// listeners.
func (s *Store) change(ctx context.Context, doing string, params any, do func(ctx context.Context, tx txn) error) error {
	if err := check(params); err != nil {
		return err
	}
	if err := s.quietly(ctx, doing, do); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.listeners {
		select {
		case c <- struct{}{}:
		default: // it will look anyway
		}
	}
	return nil
}

// quietly is change for changes that are not in the log.
func (s *Store) quietly(ctx context.Context, doing string, do func(ctx context.Context, tx txn) error) error {
	if err := ctx.Err(); err != nil {
		return s.db.Fail(ctx, doing, err)
	}
	in := func(ctx context.Context, tx *sql.Tx) error { return do(ctx, txn{tx, s.saving}) }
	err := s.db.Join(ctx, doing, in)
	for n := 0; n < maxCollisions && s.db.Collided(err); n++ {
		err = s.db.Join(ctx, doing, in)
	}
	return outcome(err)
}

func check(params any) error {
	if params == nil {
		return nil
	}
	return tree.Check(params)
}

func (s *Store) read(ctx context.Context, doing string, params any, do func(tx txn) error) error {
	if err := check(params); err != nil {
		return err
	}
	return outcome(s.db.Snapshot(ctx, doing, func(tx *sql.Tx) error { return do(txn{tx, s.reading}) }))
}

func (tx txn) exec(ctx context.Context, text string, args ...any) (n int64, err error) {
	var result sql.Result
	if stmt := tx.prepared[text]; stmt != nil {
		result, err = tx.StmtContext(ctx, stmt).ExecContext(ctx, args...) //nolint:sqlclosecheck // closed with the transaction
	} else {
		result, err = tx.ExecContext(ctx, text, args...)
	}
	if err == nil {
		n, err = result.RowsAffected()
	}
	return n, err
}

func (tx txn) one(ctx context.Context, text string, args, into []any) (bool, error) {
	var row *sql.Row
	if stmt := tx.prepared[text]; stmt != nil {
		row = tx.StmtContext(ctx, stmt).QueryRowContext(ctx, args...) //nolint:sqlclosecheck // closed with the transaction
	} else {
		row = tx.QueryRowContext(ctx, text, args...)
	}
	return found(row.Scan(into...))
}

func found(err error) (bool, error) {
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

// phrases are the parts of statements that differ between the databases. On SQLite the first statement locks the
// whole database.
type phrases struct {
	// queue waits for all others who change a workspace, queueBeside for those who change the same item. They come
	// first in a transaction, which has no number while it waits, so that numbers are in the order of changes.
	queue, queueBeside string
	// share ends a query for a folder f that must not be deleted before the transaction ends, own one for rows that
	// nobody else may change, seize one for rows that nobody else may share.
	share, own, seize string
	// seq is the transaction's number in the log, around what the caller knows of it, which nextSeq asks for on
	// SQLite.
	seq     [2]string
	nextSeq string
	inLog   string    // continues a condition that seq is greater than $1: in the log's order, by an index
	list    [2]string // around a JSON array of texts, makes a table with the column "value"
	notify  string    // ends an insert into the log and notifies listeners
}

// channel is PostgreSQL's; notifications carry a workspace's id.
const channel = "grapnel_tree"

func phrasesOf(k sqldb.Kind) phrases {
	if k == sqldb.Postgres {
		return phrases{
			queue:       "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))",
			queueBeside: "SELECT pg_advisory_xact_lock_shared(hashtextextended($1, 0)), pg_advisory_xact_lock(hashtextextended($2, 0))",
			share:       " FOR KEY SHARE OF f", own: " FOR NO KEY UPDATE", seize: " FOR UPDATE",
			seq: [2]string{
				"coalesce(CAST(", " AS BIGINT), (SELECT (generation << 48) | CAST(CAST(pg_current_xact_id() AS TEXT) AS BIGINT) FROM tree_log))",
			},
			inLog:  " ORDER BY seq, id",
			list:   [2]string{"json_array_elements_text(CAST(", " AS JSON))"},
			notify: " RETURNING pg_notify('" + channel + "', workspace_id)",
		}
	}
	return phrases{
		inLog:   " AND id > $1 ORDER BY id",
		list:    [2]string{"json_each(", ")"},
		nextSeq: "SELECT seq + 1 FROM sqlite_sequence WHERE name = 'tree_changes'",
	}
}
