package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"time"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/store/sqldb"
)

// GetState returns what a plugin put last for a session; nil if that is nothing.
// With PutState it is the runtime's State.
func (s *Store) GetState(ctx context.Context, k phases.StateKey) (json.RawMessage, error) {
	const query = "SELECT value FROM states WHERE workspace_id = $1 AND session_id = $2 AND plugin = $3"
	var value json.RawMessage
	err := s.db.Snapshot(ctx, "reading state", func(tx *sql.Tx) error {
		return sqldb.Each(ctx, tx, query, []any{k.WorkspaceID, k.SessionID, k.Plugin}, func(rows *sql.Rows) error {
			var text string
			err := rows.Scan(&text)
			value = json.RawMessage(text)
			return err
		})
	})
	return value, err
}

// PutState replaces what a plugin keeps for a session; nil removes it. The code of
// the error is CodeInvalid for what is no JSON. It waits as [Store.Append] does.
func (s *Store) PutState(ctx context.Context, k phases.StateKey, value json.RawMessage) error {
	if value != nil {
		if err := phases.CheckJSON(value, phases.MaxJSONDepth); err != nil {
			return &Error{Code: CodeInvalid, Message: "the state cannot be kept", Err: err}
		}
	}
	return s.db.Change(ctx, "keeping state", func(ctx context.Context, tx *sql.Tx) error {
		if value == nil {
			_, err := tx.ExecContext(ctx, "DELETE FROM states WHERE workspace_id = $1 AND session_id = $2 AND plugin = $3",
				k.WorkspaceID, k.SessionID, k.Plugin)
			return err
		}
		_, err := tx.ExecContext(ctx, `INSERT INTO states (workspace_id, session_id, plugin, value, updated_at) VALUES ($1, $2, $3, $4, $5)
			ON CONFLICT (workspace_id, session_id, plugin) DO UPDATE SET value = excluded.value, updated_at = excluded.updated_at`,
			k.WorkspaceID, k.SessionID, k.Plugin, string(value), s.opts.Now().UnixNano())
		return err
	})
}

// pruneStates takes states away that were not put for longer than the age.
func (s *Store) pruneStates(ctx context.Context, age time.Duration, now time.Time) (int, error) {
	if age == 0 {
		return 0, nil
	}
	var n int64
	err := s.db.Change(ctx, "retention of states", func(ctx context.Context, tx *sql.Tx) error {
		result, err := tx.ExecContext(ctx, "DELETE FROM states WHERE updated_at < $1", now.Add(-age).UnixNano())
		if err != nil {
			return err
		}
		n, err = result.RowsAffected()
		return err
	})
	return int(n), err
}
