// Package itemstore keeps what the memory plugin remembers, in SQLite or PostgreSQL, with the index and the statistics
// that package recall ranks by. Start at [Open], [Store.Remember], [Store.Recall] and [Store.Forget]. Each read and
// each removal takes a [View] and never goes beyond it. Errors are *[sqldb.Error] or the context's cause.
//
// # Finding
//
// Both databases find the newest items of a term in a set of scopes. Package recall calculates the rest, so both
// return the same order to the byte.
//
//   - The index holds a term under the number of its scope, and again under the number of the whole workspace.
//     Statistics are kept by the same numbers. Items out of view change no answer and no score.
//   - SQLite: contentless FTS5 with these tokens. Row ids grow with each change of an item, and the rows of a token
//     are read backwards. User text is never part of a query.
//   - PostgreSQL: a table ordered by scope, term and number of the change. Its own text search (GIN) has no order: on
//     100,000 items the newest 200 of a common term took 6 to 14 ms, and take 0.2 ms here.
//   - Changes of PostgreSQL's statistics are rows of their own, so that writers do not wait for the row of a common
//     word; every 64 transactions they are folded.
//
// Any number of processes may share a database if they have one version of package recall: opening a store that
// another version has indexed indexes it again, and programs with the old rules are refused.
package itemstore

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"embed"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"strconv"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/grapnelhq/grapnel/internal/memory/recall"
	"github.com/grapnelhq/grapnel/internal/sqldb"
)

//go:embed migrations
var migrations embed.FS

// Options say how to open a store. The zero value is fine.
type Options struct {
	// Now is the clock; nil is time.Now.
	Now func() time.Time
	// Entropy makes ids and the secret of a new store; nil is crypto/rand.Reader. It is read by one goroutine at a
	// time.
	Entropy io.Reader
	// LockTimeout is how long changes wait for others; zero is 5 s.
	LockTimeout time.Duration
	// ReadOnly opens an existing store and changes nothing.
	ReadOnly bool
	// Progress is called while opening rebuilds the index; it may be nil.
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
	if o.Progress == nil {
		o.Progress = func(int, int) {}
	}
	return o
}

// Store keeps items. [Open] makes it; the zero value is not usable. It is safe for concurrent use, and several may be
// open on one database, also in other programs.
type Store struct {
	db     *sqldb.DB
	opts   Options
	phrase phrases
	secret []byte
	ids    *ulid.LockedMonotonicReader
	// writing and reading are prepared statements by their texts.
	writing, reading map[string]*sql.Stmt
}

// Open opens a store, "sqlite:PATH" or "postgres://…", and creates a SQLite file that does not exist. The store must
// be closed.
//
// Indexing by another version of package recall takes a while: see [Options.Progress]. The context bounds opening only.
func Open(ctx context.Context, dsn string, o Options) (*Store, error) {
	o = o.withDefaults()
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return nil, err
	}
	db, err := sqldb.Open(ctx, dsn, sqldb.Options{
		Schema:   sqldb.Schema{Migrations: files, Table: "memory_migrations", Holds: "memories"},
		ReadOnly: o.ReadOnly, SecureDelete: true, LockTimeout: o.LockTimeout, MaxConns: 4,
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

func (s *Store) start(ctx context.Context) error {
	meta, err := s.readMeta(ctx)
	if err == nil && meta[metaSecret] == "" && !s.opts.ReadOnly {
		secret := make([]byte, sha256.Size)
		if _, err := io.ReadFull(s.opts.Entropy, secret); err != nil {
			return err
		}
		err = s.db.Change(ctx, "making a memory", func(ctx context.Context, tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, "INSERT INTO memory_meta (name, value) VALUES ($1, $2), ($3, $4) ON CONFLICT (name) DO NOTHING",
				metaSecret, hex.EncodeToString(secret), metaVersion, strconv.Itoa(recall.Version))
			return err
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
	if meta[metaVersion] != strconv.Itoa(recall.Version) {
		if err := s.remake(ctx); err != nil {
			return err
		}
	}
	if meta[metaUntidy] != "" && !s.opts.ReadOnly {
		short, cancel := context.WithTimeout(ctx, 2*time.Second) // the caller waits
		defer cancel()
		_ = s.eraseFreed(short)
	}
	return s.prepare(ctx)
}

func (s *Store) readMeta(ctx context.Context) (map[string]string, error) {
	meta := map[string]string{}
	err := s.read(ctx, "opening the memory", func(tx txn) error {
		var name, value string
		return tx.scan(ctx, "SELECT name, value FROM memory_meta", nil, []any{&name, &value}, func() { meta[name] = value })
	})
	return meta, err
}

// prepare prepares the statements of frequent calls. PostgreSQL's driver does so by itself.
func (s *Store) prepare(ctx context.Context) (err error) {
	if s.phrase.postgres {
		return nil
	}
	p := &s.phrase
	if s.reading, err = sqldb.Prepare(ctx, s.db.Reader(), p.readScopes(), p.counts, p.vocabulary, p.hits, p.readCandidates()); err != nil || s.opts.ReadOnly {
		return err
	}
	s.writing, err = sqldb.Prepare(ctx, s.db.Writer(), readMeta, p.readScopes(), p.rowsByHash(), rowBySlot, insertRow, insertTokens, deleteTokens, p.count)
	return err
}

// Close closes the store after running calls have ended. It is safe to call it twice.
func (s *Store) Close() error {
	var errs []error
	for _, all := range []map[string]*sql.Stmt{s.writing, s.reading} {
		for _, stmt := range all {
			errs = append(errs, stmt.Close())
		}
	}
	return errors.Join(append(errs, s.db.Close())...)
}

// now is the time with the precision of the database.
func (s *Store) now() time.Time { return fromNanos(s.opts.Now().UnixNano()) }

func (s *Store) newID(now time.Time) (string, error) {
	id, err := ulid.New(ulid.Timestamp(now), s.ids)
	return id.String(), err
}

// Names in memory_meta.
const (
	metaSecret  = "secret"
	metaVersion = "recall_version"
	// metaUntidy says that bytes of forgotten items may still be in the database. Its value names the last forgetting,
	// so that an earlier cleanup does not clear it.
	metaUntidy = "untidy"
)

func (tx txn) meta(ctx context.Context, name string) (string, error) {
	var value string
	err := tx.one(ctx, readMeta, []any{name}, []any{&value})
	return value, err
}

const readMeta = "SELECT value FROM memory_meta WHERE name = $1"

func (tx txn) setMeta(ctx context.Context, name, value string) error {
	return tx.exec(ctx, "INSERT INTO memory_meta (name, value) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = excluded.value", name, value)
}

func hashOf(text string) string {
	sum := sha256.Sum256([]byte(recall.Key(text)))
	return hex.EncodeToString(sum[:])
}

// mark is the tombstone of a text in a scope. It is keyed, because short texts can be guessed from a plain hash.
func (s *Store) mark(p place, hash string) string {
	mac := hmac.New(sha256.New, s.secret)
	for _, part := range []string{p.workspace, string(p.scope), p.id, hash} {
		mac.Write([]byte(part)) // never fails; names have no NUL
		mac.Write([]byte{0})
	}
	return hex.EncodeToString(mac.Sum(nil))
}

// rebuildPart is how many items are indexed between two calls of Progress.
const rebuildPart = 500

// remake rebuilds index and statistics in one transaction, while others wait.
func (s *Store) remake(ctx context.Context) error {
	if s.opts.ReadOnly {
		return sqldb.Failf(sqldb.CodeSchema, "open it for writing once", "the index was made by another version's rules")
	}
	if !s.phrase.postgres {
		return s.db.Change(ctx, "making the index", s.rebuild)
	}
	// The time limit of ordinary changes is too short here.
	tx, err := s.db.Writer().BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := s.rebuild(ctx, tx); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

// rebuild indexes all items by the current rules. Tombstones stay, and have no effect on a text whose hash has
// changed.
func (s *Store) rebuild(ctx context.Context, sqlTx *sql.Tx) error {
	tx := txn{Tx: sqlTx, phrase: &s.phrase}
	if err := tx.lock(ctx, s.phrase.own, lockClassStore, lockIndex); err != nil {
		return err
	}
	want := strconv.Itoa(recall.Version)
	if version, err := tx.meta(ctx, metaVersion); err != nil || version == want {
		return err // another program has done it
	}
	for _, text := range s.phrase.clear {
		if err := tx.exec(ctx, text); err != nil {
			return err
		}
	}
	var total int
	if err := tx.one(ctx, "SELECT count(*) FROM memory_items", nil, []any{&total}); err != nil {
		return err
	}
	index := &indexer{tx: tx, numbers: placeNumbers{}}
	var last int64
	for done := 0; ; s.opts.Progress(done, total) {
		rows, err := tx.rows(ctx, selectRows+"i.seq > $1 ORDER BY i.seq LIMIT $2", last, rebuildPart)
		if err != nil {
			return err
		}
		for n := range rows {
			if err := index.renew(ctx, &rows[n]); err != nil {
				return err
			}
			last = rows[n].seq
		}
		if err := index.flush(ctx); err != nil {
			return err
		}
		if done += len(rows); len(rows) < rebuildPart {
			s.opts.Progress(done, total)
			return tx.setMeta(ctx, metaVersion, want)
		}
	}
}

// renew gives an item current terms and hash, and indexes it. Of two items that have become duplicates, the older
// becomes history.
func (x *indexer) renew(ctx context.Context, r *row) error {
	r.terms, r.length = termsOf(r.Text)
	r.Hash = hashOf(r.Text)
	if r.SupersededBy == "" {
		duplicate, err := x.tx.row(ctx, rowByHash, r.scopeNo, r.Hash)
		if err != nil {
			return err
		}
		switch {
		case duplicate == nil || duplicate.ID == r.ID:
		case duplicate.seq < r.seq:
			if err := x.supersede(ctx, duplicate, r.ID); err != nil {
				return err
			}
		default:
			r.SupersededBy = duplicate.ID
		}
	}
	err := x.tx.exec(ctx, "UPDATE memory_items SET terms = $2, length = $3, hash = $4, superseded_by = $5 WHERE id = $1",
		r.ID, string(r.terms), r.length, r.Hash, nullable(r.SupersededBy))
	if err != nil || r.SupersededBy != "" {
		return err
	}
	return x.note(ctx, r, false)
}
