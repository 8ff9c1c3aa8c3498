package itemstore

import (
	"context"
	"slices"
)

// Forget deletes items in view, and the versions that these had taken the place of:
// texts, evidence, and what the index and the statistics had of them. Ids of others
// are passed over. Of each text a keyed hash stays, so that it is not remembered again
// in its scope before the user asks for it.
//
// Then the database is tidied up, so that the bytes are gone from its files too; see
// [Removed.Lingering]. That takes the longer, the larger the database is. PostgreSQL
// frees the rows, but keeps their bytes until others are written over them, and in its
// own log and backups.
//
// Many items are deleted in several transactions: with an error come those that are
// gone by then.
func (s *Store) Forget(ctx context.Context, v View, ids []string) (Removed, error) {
	var removed Removed
	if err := v.check(); err != nil {
		return removed, err
	}
	for part := range slices.Chunk(plainIDs(ids), MaxBatch) {
		var gone []string
		err := s.changeAlone(ctx, "forgetting", func(ctx context.Context, tx txn) (err error) {
			gone, err = s.forget(ctx, tx, v, part)
			return err
		})
		if err != nil {
			return removed, err
		}
		removed.IDs = append(removed.IDs, gone...)
	}
	if len(removed.IDs) > 0 {
		removed.Lingering = s.tidy(ctx)
	}
	return removed, nil
}

// forget deletes some items, and returns the ids of all that are gone. Versions may be
// in other scopes than those.
func (s *Store) forget(ctx context.Context, tx txn, v View, ids []string) ([]string, error) {
	rows, err := tx.rows(ctx, selectRows+tx.phrase.in("i.id", "$1"), listOf(tx.phrase, ids))
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

// erase deletes rows.
func (s *Store) erase(ctx context.Context, tx txn, rows []row) ([]string, error) {
	index := tx.indexer(atlas{})
	var gone []string
	for n := range rows {
		r := &rows[n]
		gone = append(gone, r.ID)
		if r.SupersededBy == "" {
			if err := index.remove(ctx, r); err != nil {
				return nil, err
			}
		}
		_, err := tx.exec(ctx, "INSERT INTO memory_tombstones (mark, at) VALUES ($1, $2) ON CONFLICT DO NOTHING", s.mark(r.place(), r.Hash), nanos(s.now()))
		if err != nil {
			return nil, err
		}
		// A successor that stays does not name what is gone.
		if _, err := tx.exec(ctx, "UPDATE memory_items SET supersedes = '' WHERE id = $1 AND supersedes = $2 AND home = $3", r.SupersededBy, r.ID, r.home); err != nil {
			return nil, err
		}
		if _, err := tx.exec(ctx, "DELETE FROM memory_items WHERE seq = $1", r.seq); err != nil {
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
