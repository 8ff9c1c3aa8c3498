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

// rebuild makes index and statistics anew by the rules of today, in one transaction:
// whoever is killed in it has done nothing. Tombstones stay as they are, and have no
// effect for a text whose hash is another now.
func (s *Store) rebuild(ctx context.Context) error {
	if s.opts.ReadOnly {
		return sqldb.Failf(sqldb.CodeSchema, "open it for writing once", "the index was made by other rules than those of this program")
	}
	if !s.phrase.postgres {
		return s.db.Change(ctx, "making the index anew", func(ctx context.Context, tx *sql.Tx) error {
			return s.rebuildIn(ctx, txn{Tx: tx, phrase: &s.phrase})
		})
	}
	// The bound of ordinary changes is too short for this one.
	tx, err := s.db.Writer().BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := s.rebuildIn(ctx, txn{Tx: tx, phrase: &s.phrase}); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

func (s *Store) rebuildIn(ctx context.Context, tx txn) error {
	if err := tx.own(ctx, lockClassStore, lockIndex); err != nil {
		return err
	}
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
