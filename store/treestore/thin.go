package treestore

import (
	"context"
	"database/sql"
	"strconv"
	"time"

	"github.com/grapnelhq/grapnel/tree"
)

// thinBatch is how many rows are looked for at a time.
const thinBatch = 1_000

// Thin implements [tree.Store]. Each batch is a transaction: when an error stops the
// work, what was done is done.
func (s *Store) Thin(ctx context.Context, now time.Time) (int, error) {
	taken := 0
	err := s.db.Pieces(ctx, func() (more bool, err error) {
		n, err := s.thinRevisions(ctx, now.Add(-tree.ThinAge))
		taken += n
		return n > 0, err
	})
	if err == nil {
		err = s.db.Pieces(ctx, func() (bool, error) { return s.thinChanges(ctx, now.Add(-tree.ChangesAge)) })
	}
	return taken, outcome(err)
}

// thinRevisions takes autosaves away that were made before a time, and that others
// of the same step and document follow. So the newest of a document stays, whoever
// else does this meanwhile: they are looked for before anything is locked.
func (s *Store) thinRevisions(ctx context.Context, before time.Time) (n int, err error) {
	type revision struct {
		doc     string
		version int64
		chars   int
	}
	step := strconv.FormatInt(int64(tree.ThinStep), 10)
	query := `SELECT r.doc_id, r.version, r.chars FROM thread_agents_doc_revision r
		WHERE r.save_reason = 'autosave' AND r.saved_at < $1 AND EXISTS (
			SELECT 1 FROM thread_agents_doc_revision n WHERE n.doc_id = r.doc_id AND n.version > r.version
				AND n.save_reason = 'autosave' AND n.saved_at < $1 AND n.saved_at / ` + step + ` = r.saved_at / ` + step + `)
		LIMIT $2`
	var found []revision
	err = s.read(ctx, "thinning revisions", func(tx txn) error {
		return each(ctx, tx, query, []any{before.UnixNano(), thinBatch}, &found, func(rows *sql.Rows, r *revision) error {
			return rows.Scan(&r.doc, &r.version, &r.chars)
		})
	})
	if err != nil || len(found) == 0 {
		return 0, err
	}
	err = s.db.Pieces(ctx, func() (more bool, err error) {
		fit := 0
		for left := deletePiece; fit < len(found) && left > 0; fit++ {
			left -= 1 + found[fit].chars/charsPerRow
		}
		err = s.quietly(ctx, "thinning revisions", func(ctx context.Context, tx txn) error {
			const remove = "DELETE FROM thread_agents_doc_revision WHERE doc_id = $1 AND version = $2"
			for _, r := range found[:fit] {
				if _, err := tx.exec(ctx, remove, r.doc, r.version); err != nil {
					return err
				}
			}
			return nil
		})
		n, found = n+fit, found[fit:]
		return len(found) > 0, err
	})
	return n, err
}

// thinChanges takes a batch away from the beginning of the log, as far as changes
// were made before a time, and notes up to where. It reports whether there may be
// more.
func (s *Store) thinChanges(ctx context.Context, before time.Time) (more bool, err error) {
	type row struct{ seq, id, at int64 }
	err = s.quietly(ctx, "thinning the log of changes", func(ctx context.Context, tx txn) error {
		var rows []row
		query := "SELECT seq, id, at FROM tree_changes WHERE seq > $1" + s.phrase.inLog + " LIMIT $2"
		if err := each(ctx, tx, query, []any{0, thinBatch}, &rows, func(rows *sql.Rows, r *row) error { return rows.Scan(&r.seq, &r.id, &r.at) }); err != nil {
			return err
		}
		var seq, id int64
		more = len(rows) == thinBatch
		for _, r := range rows {
			if r.at >= before.UnixNano() {
				more = false
				break
			}
			seq, id = r.seq, max(id, r.id)
		}
		if id == 0 {
			return nil
		}
		if _, err := tx.exec(ctx, "DELETE FROM tree_changes WHERE seq <= $1 AND id <= $2", seq, id); err != nil {
			return err
		}
		_, err := tx.exec(ctx, "UPDATE tree_log SET floor = $1 WHERE floor < $1", seq)
		return err
	})
	return more, err
}
