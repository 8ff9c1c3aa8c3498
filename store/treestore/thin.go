package treestore

import (
	"context"
	"database/sql"
	"strconv"
	"time"

	"github.com/grapnelhq/grapnel/tree"
)

// thinBatch is how many rows go in one transaction, so that saving never waits long.
const thinBatch = 1_000

// Thin implements [tree.Store]. Each batch is a transaction: when an error stops the
// work, what was done is done.
func (s *Store) Thin(ctx context.Context, now time.Time) (int, error) {
	taken := 0
	for n := thinBatch; n == thinBatch; {
		var err error
		if n, err = s.thinRevisions(ctx, now.Add(-tree.ThinAge)); err != nil {
			return taken, err
		}
		taken += n
	}
	for more := true; more; {
		var err error
		if more, err = s.thinChanges(ctx, now.Add(-tree.ChangesAge)); err != nil {
			return taken, err
		}
	}
	return taken, nil
}

// thinRevisions takes autosaves away that were made before a time, and that others
// of the same step and document follow. So the newest of a document stays.
func (s *Store) thinRevisions(ctx context.Context, before time.Time) (n int, err error) {
	step := strconv.FormatInt(int64(tree.ThinStep), 10)
	query := `DELETE FROM thread_agents_doc_revision WHERE (doc_id, version) IN (
		SELECT r.doc_id, r.version FROM thread_agents_doc_revision r
		WHERE r.save_reason = 'autosave' AND r.saved_at < $1 AND EXISTS (
			SELECT 1 FROM thread_agents_doc_revision n WHERE n.doc_id = r.doc_id AND n.version > r.version
				AND n.save_reason = 'autosave' AND n.saved_at < $1 AND n.saved_at / ` + step + ` = r.saved_at / ` + step + `)
		LIMIT $2)`
	err = s.quietly(ctx, "thinning revisions", func(ctx context.Context, tx txn) error {
		deleted, err := tx.exec(ctx, query, before.UnixNano(), thinBatch)
		n = int(deleted)
		return err
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
