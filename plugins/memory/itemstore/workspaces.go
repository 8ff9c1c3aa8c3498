package itemstore

import (
	"context"
	"database/sql"
	"slices"
	"strings"

	"github.com/oklog/ulid/v2"
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

// Check reports what [Store.Import] refuses of an item. What an item may lack there, it
// may lack here.
func (i *Item) Check() error {
	if err := i.check(); err != nil {
		return err
	}
	if err := i.checkTimes(); err != nil {
		return err
	}
	return i.checkOrigin()
}

func (i *Item) checkOrigin() error {
	for _, id := range []string{i.ID, i.Supersedes, i.SupersededBy} {
		if _, err := ulid.ParseStrict(id); id != "" && (err != nil || id != strings.ToUpper(id)) {
			return invalidf("leave it out, and it gets one", "%q is no id", id)
		}
	}
	if i.ID != "" && (i.ID == i.SupersededBy || i.ID == i.Supersedes) || i.Uses < 0 {
		return invalidf("", "the item takes its own place, or was used less than never")
	}
	return nil
}
