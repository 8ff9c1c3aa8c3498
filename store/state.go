package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
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

// The most that one plugin may keep as state, in all workspaces and sessions: values,
// and their bytes with those of their ids. A value has 64 KiB at most, see the runtime.
const (
	MaxStates     = 100_000
	MaxStateBytes = 64 << 20
)

// The statements of PutState. The first makes other changes of the plugin's states
// wait; stateBytes is what a row counts for.
const (
	lockTotal = `INSERT INTO state_totals (plugin, kept, bytes) VALUES ($1, 0, 0)
		ON CONFLICT (plugin) DO UPDATE SET kept = state_totals.kept RETURNING kept, bytes`
	stateBytes  = "octet_length(workspace_id) + octet_length(session_id) + octet_length(value)"
	thisState   = " FROM states WHERE workspace_id = $1 AND session_id = $2 AND plugin = $3"
	stateSize   = "SELECT count(*), coalesce(sum(" + stateBytes + "), 0)" + thisState
	deleteState = "DELETE" + thisState
	putState    = `INSERT INTO states (workspace_id, session_id, plugin, value, updated_at) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (workspace_id, session_id, plugin) DO UPDATE SET value = excluded.value, updated_at = excluded.updated_at`
	putTotal = "UPDATE state_totals SET kept = $2, bytes = $3 WHERE plugin = $1"
)

// PutState replaces what a plugin keeps for a session; nil removes it. The code of
// the error is CodeInvalid for what is no JSON; a plugin that would keep more than
// [MaxStates] or [MaxStateBytes] gets a *phases.Error with CauseOverloaded. It waits
// as [Store.Append] does.
func (s *Store) PutState(ctx context.Context, k phases.StateKey, value json.RawMessage) error {
	if value != nil {
		if err := phases.CheckJSON(value, phases.MaxJSONDepth); err != nil {
			return &Error{Code: CodeInvalid, Message: "the state cannot be kept", Err: err}
		}
	}
	err := s.db.Change(ctx, "keeping state", func(ctx context.Context, tx *sql.Tx) error {
		var kept, bytes, before, size int
		if err := tx.QueryRowContext(ctx, lockTotal, k.Plugin).Scan(&kept, &bytes); err != nil {
			return err
		}
		key := []any{k.WorkspaceID, k.SessionID, k.Plugin}
		if err := tx.QueryRowContext(ctx, stateSize, key...).Scan(&before, &size); err != nil {
			return err
		}
		kept, bytes = kept-before, bytes-size
		statement := deleteState
		if value != nil {
			statement, key = putState, append(key, string(value), s.opts.Now().UnixNano())
			kept, bytes = kept+1, bytes+len(k.WorkspaceID)+len(k.SessionID)+len(value)
			if kept > MaxStates || bytes > MaxStateBytes {
				return phases.Errorf(phases.CauseOverloaded, "%s would keep %d values with %d bytes as state, and may keep %d with %d: "+
					"it has to remove some, or the operator old ones with \"grapnel manifest prune --older\"", k.Plugin, kept, bytes, MaxStates, MaxStateBytes)
			}
		}
		if _, err := tx.ExecContext(ctx, statement, key...); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, putTotal, k.Plugin, kept, bytes)
		return err
	})
	if full, ok := errors.AsType[*phases.Error](err); ok {
		return full
	}
	return err
}

// pruneStates takes states away that were not put for longer than the age, and counts
// what is left of all plugins.
func (s *Store) pruneStates(ctx context.Context, age time.Duration, now time.Time) (n int, err error) {
	if age == 0 {
		return 0, nil
	}
	err = s.db.Change(ctx, "retention of states", func(ctx context.Context, tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, "UPDATE state_totals SET kept = kept"); err != nil { // puts wait
			return err
		}
		n, err = affected(tx.ExecContext(ctx, "DELETE FROM states WHERE updated_at < $1", now.Add(-age).UnixNano()))
		if err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `UPDATE state_totals SET kept = (SELECT count(*) FROM states s WHERE s.plugin = state_totals.plugin),
			bytes = (SELECT coalesce(sum(`+stateBytes+"), 0) FROM states s WHERE s.plugin = state_totals.plugin)")
		return err
	})
	return n, err
}
