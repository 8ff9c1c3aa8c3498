package itemstore

import (
	"context"
	"database/sql"
	"slices"
)

// Workspaces returns the ids of the workspaces that have items, sorted.
func (s *Store) Workspaces(ctx context.Context) ([]string, error) {
	const query = `SELECT s.workspace_id FROM memory_scopes s
		WHERE s.scope = 'workspace' AND EXISTS (SELECT 1 FROM memory_items i WHERE i.home = s.no)`
	var list []string
	err := s.read(ctx, "listing workspaces", func(tx txn) error {
		return tx.each(ctx, query, nil, func(rows *sql.Rows) error {
			var id string
			err := rows.Scan(&id)
			list = append(list, id)
			return err
		})
	})
	slices.Sort(list) // as Go does it: databases have orders of their own
	return list, err
}
