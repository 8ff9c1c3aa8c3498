package store

import (
	"context"
	"database/sql"
	"time"
)

// Writer is the connection that changes things, for tests that make it fail.
func (s *Store) Writer() *sql.DB { return s.db.Writer() }

// StopSettling lets Append settle nothing any more.
func (s *Store) StopSettling() { s.settler.stop() }

// SettleOnly settles up to 64 records, and merges nothing.
func (s *Store) SettleOnly(ctx context.Context) error {
	b := batch{indexing: indexing{marks: map[mark][]int64{}}}
	if err := s.db.Snapshot(ctx, "settling", func(tx *sql.Tx) error { return b.read(ctx, tx, &s.phrase, 64) }); err != nil || len(b.records) == 0 {
		return err
	}
	return s.db.Change(ctx, "settling", func(ctx context.Context, tx *sql.Tx) error { return s.settleRecords(ctx, tx, &b) })
}

// MergeStep moves one range of marks, and reports whether there was something to do.
func (s *Store) MergeStep(ctx context.Context, thin bool) (more bool, err error) {
	err = s.db.Change(ctx, "merging", func(ctx context.Context, tx *sql.Tx) error {
		more, err = compact(ctx, tx, thin, time.Time{})
		return err
	})
	return more, err
}

// PruneTexts removes the texts that no thread uses.
func (s *Store) PruneTexts(ctx context.Context) (int, error) {
	var p pace
	return s.pruneTexts(ctx, &p)
}
