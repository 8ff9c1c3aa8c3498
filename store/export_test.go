package store

import (
	"context"
	"database/sql"
)

// The statements that read the end of a conversation.
const (
	MeasureTail = measureTail
	ReadTail    = readTail
)

// PageQuery is the query of a page, and its arguments.
func (s *Store) PageQuery(ctx context.Context, f Filter, before string) (query string, args []any, err error) {
	err = s.db.Snapshot(ctx, "explaining", func(tx *sql.Tx) error {
		terms, err := pageTerms(ctx, tx, f, before)
		if err == nil {
			query, args = terms.query(keptColumns, "manifests", f.Limit)
		}
		return err
	})
	return query, args, err
}

// Writer is the connection that changes things, for tests that make it fail.
func (s *Store) Writer() *sql.DB { return s.db.Writer() }

// StopSettling lets Append settle nothing any more.
func (s *Store) StopSettling() { s.settler.stop() }

// SettleOnly settles up to 64 records.
func (s *Store) SettleOnly(ctx context.Context) error {
	var b batch
	err := s.db.Snapshot(ctx, "settling", func(tx *sql.Tx) (err error) {
		b, err = readBatch(ctx, tx, &s.phrase, 64)
		return err
	})
	if err != nil {
		return err
	}
	return s.db.Change(ctx, "settling", func(ctx context.Context, tx *sql.Tx) error { return s.settle(ctx, tx, &b) })
}

// PruneTexts removes the texts that no thread uses.
func (s *Store) PruneTexts(ctx context.Context) (int, error) {
	var p pace
	return s.pruneTexts(ctx, &p)
}
