package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"math"

	"github.com/grapnelhq/grapnel/internal/jsonscan"
	"github.com/grapnelhq/grapnel/internal/sqldb"
	"github.com/grapnelhq/grapnel/phases"
)

// GetState returns a plugin's state for a session, nil if there is none. With PutState it is the runtime's State.
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

// MaxStateBytes bounds the state of one plugin over all workspaces and sessions. Each value
// counts with its ids and stateRow bytes more, which bounds the rows too.
const MaxStateBytes = 64 << 20

// The migration has this number too.
const stateRow = 640

// The statements of PutState. The first locks the plugin. Evictions hit the workspace that has
// the most, the session's own if it has as much: no workspace takes from one that has less.
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

// PutState replaces a plugin's state for a session; nil removes it. Beyond [MaxStateBytes] the
// oldest values of the workspace that has the most are evicted; it returns how many. The
// error's code is CodeInvalid for a value that is not JSON. It waits as [Store.Append] does.
func (s *Store) PutState(ctx context.Context, k phases.StateKey, value json.RawMessage) (evicted int, err error) {
	if value != nil {
		if err := jsonscan.Check(value, phases.MaxJSONDepth); err != nil {
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

// removeStates removes values that were put before a time and returns how many bytes the plugin then keeps.
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

// pruneStates removes states that were put before a time, one plugin at a time: each has a total.
func (s *Store) pruneStates(ctx context.Context, before int64, done *int) error {
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
