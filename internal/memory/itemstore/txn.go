package itemstore

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/grapnelhq/grapnel/internal/memory/recall"
	"github.com/grapnelhq/grapnel/internal/memory/turnpolicy"
	"github.com/grapnelhq/grapnel/internal/sqldb"
)

type txn struct {
	*sql.Tx

	phrase   *phrases
	prepared map[string]*sql.Stmt // by their texts
}

const maxCollisions = 10 // how often a transaction is retried after a collision with others

// change runs do in a transaction. It may be retried, by another goroutine.
//
// Transactions of PostgreSQL take locks in one order, so that they cannot deadlock: the index, the batch's name, new
// scopes, scopes by their numbers. Row locks come last.
func (s *Store) change(ctx context.Context, doing string, do func(ctx context.Context, tx txn) error) error {
	return s.transact(ctx, doing, s.phrase.share, do)
}

// transact is change with the statement that locks the index.
func (s *Store) transact(ctx context.Context, doing, lockIndexBy string, do func(ctx context.Context, tx txn) error) error {
	in := func(ctx context.Context, tx *sql.Tx) error {
		t := txn{tx, &s.phrase, s.writing}
		if err := t.exec(ctx, s.phrase.plan); err != nil {
			return err
		}
		if err := t.lock(ctx, lockIndexBy, lockClassStore, lockIndex); err != nil {
			return err
		}
		if err := t.checkVersion(ctx); err != nil {
			return err
		}
		return do(ctx, t)
	}
	err := s.db.Join(ctx, doing, in)
	for n := 0; n < maxCollisions && s.db.Collided(err); n++ {
		err = s.db.Join(ctx, doing, in)
	}
	return err
}

// read runs do on one snapshot of the database.
func (s *Store) read(ctx context.Context, doing string, do func(tx txn) error) error {
	return s.db.Snapshot(ctx, doing, func(tx *sql.Tx) error { return do(txn{tx, &s.phrase, s.reading}) })
}

// checkVersion refuses an index that another program has meanwhile rebuilt by other rules.
func (tx txn) checkVersion(ctx context.Context) error {
	version, err := tx.meta(ctx, metaVersion)
	if err != nil {
		return err
	}
	if version != strconv.Itoa(recall.Version) {
		return sqldb.Failf(sqldb.CodeSchema, "use one version of Grapnel for all programs that share the memory, and restart",
			"another program has made the index by the rules %q, and this program has %d", version, recall.Version)
	}
	return nil
}

// lock takes advisory locks by a statement, phrases.share or phrases.own.
func (tx txn) lock(ctx context.Context, text string, class int, numbers ...int64) error {
	if len(numbers) == 0 {
		return nil
	}
	return tx.exec(ctx, text, class, slices.Compact(slices.Sorted(slices.Values(numbers))))
}

// exec runs a statement; an empty one does nothing.
func (tx txn) exec(ctx context.Context, text string, args ...any) (err error) {
	if stmt := tx.prepared[text]; stmt != nil {
		_, err = tx.StmtContext(ctx, stmt).ExecContext(ctx, args...) //nolint:sqlclosecheck // closed with the transaction
	} else if text != "" {
		_, err = tx.ExecContext(ctx, text, args...)
	}
	return err
}

// one scans the only row of a query. Without a row it leaves into unchanged.
func (tx txn) one(ctx context.Context, text string, args, into []any) error {
	return tx.scan(ctx, text, args, into, func() {})
}

// scan calls do for each row of a query, after scanning it into the pointers.
func (tx txn) scan(ctx context.Context, text string, args, into []any, do func()) error {
	var rows *sql.Rows
	var err error
	if stmt := tx.prepared[text]; stmt != nil {
		rows, err = tx.StmtContext(ctx, stmt).QueryContext(ctx, args...) //nolint:sqlclosecheck // closed with the transaction
	} else {
		rows, err = tx.QueryContext(ctx, text, args...)
	}
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }() // Err has the error that matters
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return err
		}
		do()
	}
	return rows.Err()
}

func column[T any](ctx context.Context, tx txn, text string, args ...any) (all []T, err error) {
	var v T
	err = tx.scan(ctx, text, args, []any{&v}, func() { all = append(all, v) })
	return all, err
}

// phrases are the parts of statements that differ between the databases.
type phrases struct {
	postgres bool
	// list and numbers are the conditions that a column of texts or numbers is in a list: %s are the column and the
	// argument.
	list, numbers string
	// share and own take PostgreSQL's locks until the transaction ends; SQLite has one writer. See Store.change.
	share, own string
	newest     string
	clear      []string // empties index and statistics
	// counts reads statistics by shelves and names, with one or more rows for each pair. count adds to them: PostgreSQL
	// takes shelves, names and numbers, and returns how often that was done since the last fold; SQLite takes a shelf,
	// and numbers by names.
	counts, count string
	// vocabulary reads statistics as counts does, of the names that begin with given letters.
	vocabulary string
	// plan makes PostgreSQL use the indexes: it estimates new tables and common terms wrongly, and compiling such a
	// query takes it a hundred times as long as running it.
	plan string
	// hits finds the newest items of terms on shelves; SQLite's takes a match for each term and returns
	// lists. See txn.hits.
	hits        string
	used, bytes string
	skip        string // omits locked rows
}

// Classes of PostgreSQL's advisory locks: of the store as a whole, and of scopes by their numbers.
const (
	lockClassStore = 0x6d656d00
	lockClassScope = 0x6d656d01

	lockIndex, lockFold = 0, 1 // in lockClassStore
)

func phrasesOf(k sqldb.Kind) phrases {
	if k == sqldb.Postgres {
		return phrases{
			postgres: true,
			list:     "%s = ANY(CAST(%s AS TEXT[]))", numbers: "%s = ANY(CAST(%s AS BIGINT[]))",
			share:  "SELECT pg_advisory_xact_lock_shared($1, n) FROM unnest(CAST($2 AS INTEGER[])) n",
			own:    "SELECT pg_advisory_xact_lock($1, n) FROM unnest(CAST($2 AS INTEGER[])) n",
			newest: "nextval('memory_seq')",
			clear:  []string{"DELETE FROM memory_index", "DELETE FROM memory_counts", "DELETE FROM memory_deltas"},
			counts: `SELECT shelf, name, n FROM memory_counts WHERE shelf = ANY(CAST($1 AS INTEGER[])) AND name = ANY(CAST($2 AS TEXT[])) UNION ALL
				SELECT shelf, name, n FROM memory_deltas WHERE shelf = ANY(CAST($1 AS INTEGER[])) AND name = ANY(CAST($2 AS TEXT[]))`,
			vocabulary: `SELECT s.shelf, c.name, c.n FROM unnest(CAST($1 AS INTEGER[])) s (shelf) CROSS JOIN unnest(CAST($2 AS TEXT[])) p (letters) CROSS JOIN LATERAL (
				SELECT name, n FROM memory_counts m WHERE m.shelf = s.shelf AND m.name >= p.letters AND m.name < p.letters || '{' UNION ALL
				SELECT name, n FROM memory_deltas m WHERE m.shelf = s.shelf AND m.name >= p.letters AND m.name < p.letters || '{') c`,
			count: `WITH added AS (INSERT INTO memory_deltas (shelf, name, n)
				SELECT d.shelf, d.name, d.n FROM unnest(CAST($1 AS INTEGER[]), CAST($2 AS TEXT[]), CAST($3 AS BIGINT[])) d (shelf, name, n))
				SELECT count(*) FROM memory_deltas WHERE shelf = 0`,
			plan: `SELECT set_config('jit', 'off', true), set_config('enable_bitmapscan', 'off', true), set_config('enable_seqscan', 'off', true),
				set_config('enable_sort', 'off', true)`,
			hits: `SELECT t.term, h.seq FROM unnest(CAST($1 AS TEXT[]), CAST($2 AS INTEGER[])) t (term, shelf) CROSS JOIN LATERAL (
				SELECT i.seq FROM memory_index i WHERE i.shelf = t.shelf AND i.term = t.term
				ORDER BY i.shelf DESC, i.term DESC, i.seq DESC LIMIT $3) h`,
			used: `UPDATE memory_items SET uses = uses + 1, last_used_at = greatest(last_used_at, $2) WHERE seq IN (
				SELECT seq FROM memory_items WHERE id = ANY(CAST($1 AS TEXT[])) ORDER BY id FOR NO KEY UPDATE)`,
			skip: " FOR UPDATE SKIP LOCKED",
			bytes: `SELECT CAST(sum(pg_total_relation_size(CAST(t AS regclass))) AS BIGINT) FROM unnest(ARRAY['memory_meta', 'memory_scopes',
				'memory_items', 'memory_index', 'memory_counts', 'memory_deltas', 'memory_tombstones', 'memory_batches']) t`,
		}
	}
	return phrases{
		list: "%s IN (SELECT value FROM json_each(%s))", numbers: "%s IN (SELECT value FROM json_each(%s))",
		newest: "(SELECT coalesce(max(seq), 0) + 1 FROM memory_items)",
		clear:  []string{"INSERT INTO memory_index (memory_index) VALUES ('delete-all')", "DELETE FROM memory_counts"},
		counts: "SELECT shelf, name, n FROM memory_counts WHERE shelf IN (SELECT value FROM json_each($1)) AND name IN (SELECT value FROM json_each($2))",
		vocabulary: `SELECT c.shelf, c.name, c.n FROM json_each($2) p CROSS JOIN memory_counts c
			WHERE c.shelf IN (SELECT value FROM json_each($1)) AND c.name >= p.value AND c.name < p.value || '{'`,
		count: `INSERT INTO memory_counts (shelf, name, n) SELECT $1, key, value FROM json_each($2) WHERE true
			ON CONFLICT (shelf, name) DO UPDATE SET n = n + excluded.n`,
		hits: `SELECT t.key, (SELECT json_group_array(seq ORDER BY seq DESC) FROM (
			SELECT rowid AS seq FROM memory_index WHERE memory_index MATCH t.value ORDER BY rowid DESC LIMIT $2)) FROM json_each($1) t`,
		used:  "UPDATE memory_items SET uses = uses + 1, last_used_at = max(last_used_at, $2) WHERE id IN (SELECT value FROM json_each($1))",
		bytes: "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size",
	}
}

func (p *phrases) in(column, argument string) string { return fmt.Sprintf(p.list, column, argument) }

func (p *phrases) inNumbers(column, argument string) string {
	return fmt.Sprintf(p.numbers, column, argument)
}

func listOf[T string | int64](p *phrases, list []T) any {
	if p.postgres {
		return list
	}
	text, _ := json.Marshal(list) //nolint:errchkjson // texts and numbers always can
	return string(text)
}

// row is an item as stored.
type row struct {
	Item

	seq           int64
	home, scopeNo int64
	length        int
	terms         terms
}

const columns = `i.seq, i.home, i.scope_no, i.length, i.terms, i.id, s.workspace_id, s.scope, s.scope_id, i.category, i.text, i.evidence,
	i.source, i.slot, i.created_at, i.updated_at, i.last_used_at, i.uses, i.supersedes, coalesce(i.superseded_by, ''), i.hash`

const selectRows = "SELECT " + columns + " FROM memory_items i JOIN memory_scopes s ON s.no = i.scope_no WHERE "

func (tx txn) rows(ctx context.Context, text string, args ...any) (all []row, err error) {
	var r row
	var created, updated, used int64
	into := []any{
		&r.seq, &r.home, &r.scopeNo, &r.length, &r.terms, &r.ID, &r.WorkspaceID, &r.Scope, &r.ScopeID, &r.Category, &r.Text,
		&r.Evidence, &r.Source, &r.Slot, &created, &updated, &used, &r.Uses, &r.Supersedes, &r.SupersededBy, &r.Hash,
	}
	err = tx.scan(ctx, text, args, into, func() {
		r.CreatedAt, r.UpdatedAt, r.LastUsedAt = fromNanos(created), fromNanos(updated), fromNanos(used)
		all = append(all, r)
	})
	return all, err
}

func (tx txn) rowsByID(ctx context.Context, ids []string) ([]row, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	return tx.rows(ctx, selectRows+tx.phrase.in("i.id", "$1"), listOf(tx.phrase, ids))
}

func (tx txn) row(ctx context.Context, text string, args ...any) (*row, error) {
	all, err := tx.rows(ctx, text, args...)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	return &all[0], nil
}

func (i *Item) place() place { return place{i.WorkspaceID, i.Scope, i.ScopeID} }

// pinned reports whether recalls always return the item.
func (i *Item) pinned() bool { return i.Category == turnpolicy.Instruction }

// nanos is a time as stored; 0 means never.
func nanos(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

func fromNanos(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(0, n).UTC()
}

// terms are the terms of a text as stored: sorted, separated by blanks, with ":n" after terms that occur more than
// once. Terms contain neither sign.
type terms string

func termsOf(text string) (list terms, length int) {
	counts, length := recall.Index(text)
	var b strings.Builder
	for _, term := range slices.Sorted(maps.Keys(counts)) {
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(term)
		if n := counts[term]; n > 1 {
			fmt.Fprintf(&b, ":%d", n)
		}
	}
	return terms(b.String()), length
}

func (t terms) each(do func(term string, n int)) {
	for part := range strings.FieldsSeq(string(t)) {
		term, count, more := strings.Cut(part, ":")
		n := 1
		if more {
			n, _ = strconv.Atoi(count) // 0 in a damaged database, as if the term were missing
		}
		do(term, n)
	}
}
