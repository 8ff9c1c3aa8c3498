package itemstore

import (
	"context"
	"database/sql"
	"slices"
)

// Forget deletes items in view with their older versions: texts, evidence, and their share of the index and the
// statistics. It ignores other ids. A keyed hash of each text stays, so that the text is not remembered again in its
// scope before the user asks for it.
//
// Then the bytes are removed from the database's files too, which takes longer the larger the database is; see
// [Removed.Lingering]. PostgreSQL frees the rows, but their bytes stay until overwritten, and in its log and backups.
//
// Many items are deleted in several transactions: an error comes with the ids that are gone.
func (s *Store) Forget(ctx context.Context, v View, ids []string) (Removed, error) {
	var removed Removed
	if err := v.check(); err != nil {
		return removed, err
	}
	for part := range slices.Chunk(plainIDs(ids), MaxBatch) {
		var gone []string
		// The scopes are not known in advance, so this locks out all other changes.
		err := s.transact(ctx, "forgetting", s.phrase.own, func(ctx context.Context, tx txn) (err error) {
			gone, err = s.forget(ctx, tx, v, part)
			return err
		})
		if err != nil {
			return removed, err
		}
		removed.IDs = append(removed.IDs, gone...)
	}
	if len(removed.IDs) > 0 {
		removed.Lingering = s.eraseFreed(ctx)
	}
	return removed, nil
}

// forget returns the ids of all items that are gone. Older versions may be in other scopes.
func (s *Store) forget(ctx context.Context, tx txn, v View, ids []string) ([]string, error) {
	rows, err := tx.rowsByID(ctx, ids)
	if err != nil {
		return nil, err
	}
	var roots []string
	for n := range rows {
		if v.sees(rows[n].place()) {
			roots = append(roots, rows[n].ID)
		}
	}
	if len(roots) == 0 {
		return nil, nil
	}
	rows, err = tx.rows(ctx, "WITH RECURSIVE gone (id, home) AS (SELECT id, home FROM memory_items WHERE "+tx.phrase.in("id", "$1")+
		" UNION SELECT o.id, o.home FROM memory_items o JOIN gone ON o.superseded_by = gone.id AND o.home = gone.home) "+
		selectRows+"i.id IN (SELECT id FROM gone) ORDER BY i.id", listOf(tx.phrase, roots))
	if err != nil {
		return nil, err
	}
	return s.erase(ctx, tx, rows)
}

func (s *Store) erase(ctx context.Context, tx txn, rows []row) ([]string, error) {
	index := &indexer{tx: tx, numbers: placeNumbers{}}
	var gone []string
	for n := range rows {
		r := &rows[n]
		gone = append(gone, r.ID)
		if r.SupersededBy == "" {
			if err := index.note(ctx, r, true); err != nil {
				return nil, err
			}
		}
		err := tx.exec(ctx, "INSERT INTO memory_tombstones (mark, at) VALUES ($1, $2) ON CONFLICT DO NOTHING", s.mark(r.place(), r.Hash), nanos(s.now()))
		if err != nil {
			return nil, err
		}
		// A successor that stays must not name a deleted item.
		err = tx.exec(ctx, "UPDATE memory_items SET supersedes = '' WHERE id = $1 AND supersedes = $2 AND home = $3", r.SupersededBy, r.ID, r.home)
		if err != nil {
			return nil, err
		}
		if err := tx.exec(ctx, "DELETE FROM memory_items WHERE seq = $1", r.seq); err != nil {
			return nil, err
		}
	}
	if err := index.flush(ctx); err != nil {
		return nil, err
	}
	which, err := s.newID(s.now())
	if err != nil {
		return nil, err
	}
	return gone, tx.setMeta(ctx, metaUntidy, which)
}

// eraseFreed removes forgotten bytes from the files of the database.
func (s *Store) eraseFreed(ctx context.Context) error {
	const doing = "tidying up"
	meta, err := s.readMeta(ctx)
	if err == nil {
		clean := s.eraseFreedSQLite
		if s.phrase.postgres {
			clean = s.eraseFreedPostgres
		}
		err = clean(ctx)
	}
	if err != nil {
		return s.db.Fail(ctx, doing, err)
	}
	return s.change(ctx, doing, func(ctx context.Context, tx txn) error {
		return tx.exec(ctx, "DELETE FROM memory_meta WHERE name = $1 AND value = $2", metaUntidy, meta[metaUntidy])
	})
}

// eraseFreedSQLite merges the full-text index first, whose pages are keyed by prefixes of terms, deleted ones included.
func (s *Store) eraseFreedSQLite(ctx context.Context) error {
	err := s.db.Change(ctx, "merging the index", func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "INSERT INTO memory_index (memory_index) VALUES ('optimize')")
		return err
	})
	if err != nil {
		return err
	}
	return s.db.Wipe(ctx, "memory_items", "memory_items_slot", "memory_items_text", "memory_items_scope", "memory_items_home", "memory_items_history",
		"memory_items_order", "sqlite_autoindex_memory_items_1", "memory_counts", "memory_index_data", "memory_index_idx")
}

// eraseFreedPostgres frees the rows, after folding the statistics' rows that hold forgotten words.
func (s *Store) eraseFreedPostgres(ctx context.Context) error {
	if err := s.fold(ctx, true); err != nil {
		return err
	}
	_, err := s.db.Writer().ExecContext(ctx, "VACUUM (SKIP_LOCKED) memory_items, memory_index, memory_counts, memory_deltas")
	return err
}

// foldEvery is after how many transactions PostgreSQL's statistics are folded. It bounds how many rows a reader sums
// for a term.
const foldEvery = 64

func (s *Store) foldWhereDue(ctx context.Context, x *indexer) {
	if x != nil && x.unfolded >= foldEvery {
		_ = s.fold(ctx, false) // a later call retries
	}
}

// fold sums PostgreSQL's statistics. If another transaction is doing so, it waits or returns.
func (s *Store) fold(ctx context.Context, wait bool) error {
	return s.change(ctx, "adding up statistics", func(ctx context.Context, tx txn) (err error) {
		mine := wait
		if wait {
			err = tx.lock(ctx, tx.phrase.own, lockClassStore, lockFold)
		} else {
			err = tx.one(ctx, "SELECT pg_try_advisory_xact_lock($1, $2)", []any{lockClassStore, lockFold}, []any{&mine})
		}
		if err != nil || !mine {
			return err
		}
		return tx.exec(ctx, foldDeltas)
	})
}

// foldDeltas sums the changes and deletes sums of 0. It reads no other rows.
const foldDeltas = `WITH gone AS (DELETE FROM memory_deltas RETURNING shelf, name, n),
	sums AS (SELECT shelf, name, sum(n) AS n FROM gone WHERE shelf <> 0 GROUP BY shelf, name ORDER BY shelf, name),
	totals AS MATERIALIZED (SELECT shelf, name, n + coalesce((SELECT c.n FROM memory_counts c WHERE c.shelf = s.shelf AND c.name = s.name), 0) AS n FROM sums s),
	nothing AS (DELETE FROM memory_counts c USING totals t WHERE c.shelf = t.shelf AND c.name = t.name AND t.n = 0)
	INSERT INTO memory_counts (shelf, name, n) SELECT shelf, name, n FROM totals WHERE n <> 0
	ON CONFLICT (shelf, name) DO UPDATE SET n = excluded.n`
