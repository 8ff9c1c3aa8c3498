package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"math"
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

// MaxStateBytes is the most that one plugin keeps as state, in all workspaces and
// sessions. Each value counts with its ids and stateRow bytes more, so that there are
// some 100,000 at most. A value has 64 KiB at most, see the runtime.
const MaxStateBytes = 64 << 20

// stateRow is what a value counts for besides its bytes; the migration has it, too.
const stateRow = 640

// The statements of PutState. The first makes other changes of the plugin's states
// wait. A session is evicted from the workspace that has the most, its own if that has
// as much: so no workspace takes from another that has less.
const (
	lockTotal = `INSERT INTO state_totals (plugin, bytes) VALUES ($1, 0)
		ON CONFLICT (plugin) DO UPDATE SET bytes = state_totals.bytes RETURNING bytes`
	oldestState = `SELECT workspace_id, session_id FROM states WHERE plugin = $1 AND workspace_id = (
			SELECT workspace_id FROM state_shares WHERE plugin = $1 ORDER BY bytes DESC, workspace_id = $2 DESC LIMIT 1)
		ORDER BY updated_at LIMIT 1`
	deleteState = `DELETE FROM states WHERE workspace_id = $1 AND session_id = $2 AND plugin = $3 AND updated_at < $4
		RETURNING 640 + octet_length(workspace_id) + octet_length(session_id) + octet_length(value)`
	insertState = "INSERT INTO states (workspace_id, session_id, plugin, value, updated_at) VALUES ($1, $2, $3, $4, $5)"
	addShare    = `INSERT INTO state_shares (plugin, workspace_id, bytes) VALUES ($1, $2, $3)
		ON CONFLICT (plugin, workspace_id) DO UPDATE SET bytes = state_shares.bytes + excluded.bytes`
	dropShare = "DELETE FROM state_shares WHERE plugin = $1 AND workspace_id = $2 AND bytes <= 0"
	putTotal  = "UPDATE state_totals SET bytes = $2 WHERE plugin = $1"
)

// PutState replaces what a plugin keeps for a session; nil removes it. A plugin that
// would keep more than [MaxStateBytes] loses values instead: those that were put first,
// of the workspace that has the most. It returns how many. The code of the error is
// CodeInvalid for what is no JSON. It waits as [Store.Append] does.
func (s *Store) PutState(ctx context.Context, k phases.StateKey, value json.RawMessage) (evicted int, err error) {
	if value != nil {
		if err := phases.CheckJSON(value, phases.MaxJSONDepth); err != nil {
			return 0, &Error{Code: CodeInvalid, Message: "the state cannot be kept", Err: err}
		}
	}
	err = s.db.Change(ctx, "keeping state", func(ctx context.Context, tx *sql.Tx) error {
		total, err := removeStates(ctx, tx, k.Plugin, math.MaxInt64, k)
		if err != nil || value == nil {
			return err
		}
		size := stateRow + len(k.WorkspaceID) + len(k.SessionID) + len(value)
		for ; total+size > MaxStateBytes; evicted++ {
			oldest := phases.StateKey{Plugin: k.Plugin}
			if err := tx.QueryRowContext(ctx, oldestState, k.Plugin, k.WorkspaceID).Scan(&oldest.WorkspaceID, &oldest.SessionID); err != nil {
				return err
			}
			if total, err = removeStates(ctx, tx, k.Plugin, math.MaxInt64, oldest); err != nil {
				return err
			}
		}
		if _, err := tx.ExecContext(ctx, insertState, k.WorkspaceID, k.SessionID, k.Plugin, string(value), s.opts.Now().UnixNano()); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, addShare, k.Plugin, k.WorkspaceID, size); err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, putTotal, k.Plugin, total+size)
		return err
	})
	if err != nil {
		return 0, err
	}
	return evicted, nil
}

// removeStates removes values of a plugin that were put before a time, where they are
// there, and returns how many bytes the plugin keeps then.
func removeStates(ctx context.Context, tx *sql.Tx, plugin string, before int64, keys ...phases.StateKey) (total int, err error) {
	if err := tx.QueryRowContext(ctx, lockTotal, plugin).Scan(&total); err != nil {
		return 0, err
	}
	for _, k := range keys {
		var size int
		err := tx.QueryRowContext(ctx, deleteState, k.WorkspaceID, k.SessionID, plugin, before).Scan(&size)
		if errors.Is(err, sql.ErrNoRows) {
			continue
		}
		if err != nil {
			return 0, err
		}
		total -= size
		if _, err := tx.ExecContext(ctx, addShare, plugin, k.WorkspaceID, -size); err != nil {
			return 0, err
		}
		if _, err := tx.ExecContext(ctx, dropShare, plugin, k.WorkspaceID); err != nil {
			return 0, err
		}
	}
	_, err = tx.ExecContext(ctx, putTotal, plugin, total)
	return total, err
}

// pruneStates takes states away that were not put for longer than the age: those of
// one plugin at a time, whose total they all change.
func (s *Store) pruneStates(ctx context.Context, age time.Duration, now time.Time, done *int) error {
	if age == 0 {
		return nil
	}
	before := now.Add(-age).UnixNano()
	const query = "SELECT workspace_id, session_id, plugin FROM states WHERE updated_at < $1 ORDER BY plugin LIMIT $2"
	return s.db.Pieces(ctx, func() (more bool, err error) {
		var keys []phases.StateKey
		err = s.db.Snapshot(ctx, "retention of states", func(tx *sql.Tx) error {
			return sqldb.Each(ctx, tx, query, []any{before, pruneBatch}, func(rows *sql.Rows) error {
				var k phases.StateKey
				err := rows.Scan(&k.WorkspaceID, &k.SessionID, &k.Plugin)
				if len(keys) == 0 || keys[0].Plugin == k.Plugin {
					keys = append(keys, k)
				}
				return err
			})
		})
		if err != nil || len(keys) == 0 {
			return false, err
		}
		err = s.db.Change(ctx, "retention of states", func(ctx context.Context, tx *sql.Tx) error {
			_, err := removeStates(ctx, tx, keys[0].Plugin, before, keys...)
			return err
		})
		*done += len(keys)
		return true, err
	})
}
