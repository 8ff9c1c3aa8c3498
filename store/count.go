package store

import (
	"context"
	"database/sql"
)

// Count returns how many manifests the filter takes. The limit does not count
// here.
func (s *Store) Count(ctx context.Context, f Filter) (int, error) {
	where, args := f.where()
	n := 0
	err := s.db.Snapshot(ctx, "counting manifests", func(tx *sql.Tx) error {
		return tx.QueryRowContext(ctx, "SELECT count(*) FROM manifests"+where, args...).Scan(&n)
	})
	return n, err
}
