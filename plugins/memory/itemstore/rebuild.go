package itemstore

import (
	"context"
	"database/sql"
	"errors"
	"strconv"

	"github.com/grapnelhq/grapnel/plugins/memory/recall"
	"github.com/grapnelhq/grapnel/store/sqldb"
)

// rebuildPart is how many items are indexed between two words about it.
const rebuildPart = 500

// remake makes index or statistics anew, in one transaction: whoever is killed in it
// has done nothing. Others wait meanwhile.
func (s *Store) remake(ctx context.Context, do func(ctx context.Context, tx txn) error) error {
	if s.opts.ReadOnly {
		return sqldb.Failf(sqldb.CodeSchema, "open it for writing once", "the index was made by other rules than those of this program")
	}
	in := func(ctx context.Context, tx *sql.Tx) error {
		t := txn{Tx: tx, phrase: &s.phrase}
		if err := t.own(ctx, lockClassStore, lockIndex); err != nil {
			return err
		}
		return do(ctx, t)
	}
	if !s.phrase.postgres {
		return s.db.Change(ctx, "making the index anew", in)
	}
	// The bound of ordinary changes is too short for this one.
	tx, err := s.db.Writer().BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := in(ctx, tx); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

// recount makes the statistics from the index.
func (s *Store) recount(ctx context.Context, tx txn) error {
	if uncounted, err := tx.meta(ctx, metaUncounted); err != nil || uncounted == "" {
		return err // another program has done it meanwhile
	}
	var total int
	if err := tx.one(ctx, "SELECT count(*) FROM memory_items", nil, []any{&total}); err != nil {
		return err
	}
	s.opts.Progress(0, total)
	texts := []string{"DELETE FROM memory_counts"}
	if tx.phrase.postgres {
		texts = append(texts, "DELETE FROM memory_deltas", "INSERT INTO memory_counts (shelf, name, n) SELECT shelf, term, count(*) FROM memory_index WHERE term <> '' GROUP BY shelf, term")
	} else {
		texts = append(
			texts, "CREATE VIRTUAL TABLE temp.tokens USING fts5vocab ('main', 'memory_index', 'row')",
			`INSERT INTO memory_counts (shelf, name, n) SELECT CAST(substr(term, 1, instr(term, 'x') - 1) AS INTEGER), substr(term, instr(term, 'x') + 1), doc
				FROM temp.tokens WHERE length(term) > instr(term, 'x')`,
			"DROP TABLE temp.tokens",
		)
	}
	for _, text := range append(texts, insertTotals, "DELETE FROM memory_meta WHERE name = '"+metaUncounted+"'") {
		if _, err := tx.exec(ctx, text); err != nil {
			return err
		}
	}
	s.opts.Progress(total, total)
	return nil
}

// insertTotals counts the items of each shelf, and adds up their lengths.
const insertTotals = `INSERT INTO memory_counts (shelf, name, n)
	WITH shelves (shelf, scope_no) AS (
		SELECT no, no FROM memory_scopes
		UNION ALL SELECT r.no, s.no FROM memory_scopes s JOIN memory_scopes r ON r.workspace_id = s.workspace_id AND r.scope = 'rest' WHERE s.scope <> 'workspace'
		UNION ALL SELECT e.no, s.no FROM memory_scopes s JOIN memory_scopes e ON e.scope = 'everywhere' AND e.scope_id = s.scope_id WHERE s.scope = 'user'),
	totals (shelf, items, length) AS (
		SELECT v.shelf, count(*), sum(i.length) FROM shelves v JOIN memory_items i ON i.scope_no = v.scope_no WHERE i.superseded_by IS NULL GROUP BY v.shelf)
	SELECT shelf, '` + countItems + `', items FROM totals UNION ALL SELECT shelf, '` + countLength + `', length FROM totals`

// rebuild makes index and statistics by the rules of today. Tombstones stay as they are,
// and have no effect for a text whose hash is another now.
func (s *Store) rebuild(ctx context.Context, tx txn) error {
	want := strconv.Itoa(recall.Version)
	if version, err := tx.meta(ctx, metaVersion); err != nil || version == want {
		return err // another program has done it meanwhile
	}
	if err := tx.emptyIndex(ctx); err != nil {
		return err
	}
	var total int
	if err := tx.one(ctx, "SELECT count(*) FROM memory_items", nil, []any{&total}); err != nil {
		return err
	}
	index := tx.indexer(atlas{})
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
			if _, err := tx.exec(ctx, "DELETE FROM memory_meta WHERE name = '"+metaUncounted+"'"); err != nil {
				return err
			}
			return tx.setMeta(ctx, metaVersion, want)
		}
	}
}

// emptyIndex empties index and statistics.
func (tx txn) emptyIndex(ctx context.Context) error {
	texts := []string{"INSERT INTO memory_index (memory_index) VALUES ('delete-all')", "DELETE FROM memory_counts"}
	if tx.phrase.postgres {
		texts = []string{"DELETE FROM memory_index", "DELETE FROM memory_counts", "DELETE FROM memory_deltas"}
	}
	for _, text := range texts {
		if _, err := tx.exec(ctx, text); err != nil {
			return err
		}
	}
	return nil
}

// renew gives an item the terms and the hash of today, and puts it into the index.
// Where two items have become one by that, the older one becomes history.
func (x *indexer) renew(ctx context.Context, r *row) error {
	r.terms, r.length = termsOf(r.Text)
	r.Hash = hashOf(r.Text)
	if r.SupersededBy == "" {
		twin, err := x.tx.row(ctx, rowByHash, r.scopeNo, r.Hash)
		if err != nil {
			return err
		}
		switch {
		case twin == nil || twin.ID == r.ID:
		case twin.seq < r.seq:
			if err := x.supersede(ctx, twin, r.ID); err != nil {
				return err
			}
		default:
			r.SupersededBy = twin.ID
		}
	}
	var by any
	if r.SupersededBy != "" {
		by = r.SupersededBy
	}
	_, err := x.tx.exec(ctx, "UPDATE memory_items SET terms = $2, length = $3, hash = $4, superseded_by = $5 WHERE id = $1", r.ID, string(r.terms), r.length, r.Hash, by)
	if err != nil || by != nil {
		return err
	}
	return x.add(ctx, r)
}
