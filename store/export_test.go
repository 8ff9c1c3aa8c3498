package store

import (
	"context"
	"database/sql"
	"errors"
)

// The statements that read the end of a conversation.
const (
	MeasureTail = measureTail
	ReadTail    = readTail
)

// ExplainPage returns the rows of a plan of a page's query.
func (s *Store) ExplainPage(ctx context.Context, explain string, f Filter, before string) (plan []string, err error) {
	err = s.db.Snapshot(ctx, "explaining", func(tx *sql.Tx) error {
		terms, err := pageTerms(ctx, tx, f, before)
		if err != nil {
			return err
		}
		query, args := terms.query(keptColumns, "manifests", f.Limit)
		rows, err := tx.QueryContext(ctx, explain+query, args...)
		if err != nil {
			return err
		}
		defer func() { _ = rows.Close() }()
		columns, err := rows.Columns()
		for err == nil && rows.Next() {
			var line string
			to := make([]any, len(columns))
			for i := range to {
				to[i] = new(any)
			}
			to[len(to)-1] = &line
			err = rows.Scan(to...)
			plan = append(plan, line)
		}
		return errors.Join(err, rows.Err())
	})
	return plan, err
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
