package store

import (
	"context"
	"database/sql"
	"time"

	"github.com/grapnelhq/grapnel/internal/sqldb"
)

// Scope says whose records are meant. An empty field is any.
type Scope struct {
	WorkspaceID string `json:"workspace_id,omitempty"`
	ThreadID    string `json:"thread_id,omitempty"`
	Actor       string `json:"actor,omitempty"`
}

// Hold keeps records and their texts from retention and erasure, while somebody has a reason to keep them.
type Hold struct {
	Scope

	// By is who holds them, Reason is why, and At is since when.
	By     string    `json:"by"`
	Reason string    `json:"reason"`
	At     time.Time `json:"at"`
}

// CodeHeld is the code of what cannot be erased, because it is held.
const CodeHeld Code = "held"

// heldRecord is the condition that the hold h is about the record m.
const heldRecord = `(h.workspace_id = '' OR h.workspace_id = m.workspace_id) AND (h.thread_id = '' OR h.thread_id = m.thread_id)
	AND (h.actor = '' OR h.actor = m.actor)`

// Hold holds what is in a scope. A hold of the same scope is replaced.
func (s *Store) Hold(ctx context.Context, h Hold) error {
	for _, value := range []string{h.WorkspaceID, h.ThreadID, h.Actor, h.By, h.Reason} {
		if !isText(value) {
			return sqldb.Failf(CodeInvalid, "", "the hold is not text: %.80q", value)
		}
	}
	if h.Scope == (Scope{}) || h.By == "" || h.Reason == "" {
		return sqldb.Failf(CodeInvalid, "", "a hold is of a workspace, a thread or an actor, by somebody, for a reason")
	}
	const put = `INSERT INTO holds (workspace_id, thread_id, actor, held_by, reason, created_at) VALUES ($1, $2, $3, $4, $5, $6)
		ON CONFLICT (workspace_id, thread_id, actor) DO UPDATE SET held_by = excluded.held_by, reason = excluded.reason, created_at = excluded.created_at`
	return s.db.Change(ctx, "holding records", func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, put, h.WorkspaceID, h.ThreadID, h.Actor, h.By, h.Reason, h.At.UnixNano())
		return err
	})
}

// Release ends the hold of a scope. The error's code is CodeNotFound if there is none.
func (s *Store) Release(ctx context.Context, of Scope) error {
	const remove = "DELETE FROM holds WHERE workspace_id = $1 AND thread_id = $2 AND actor = $3"
	return s.db.Change(ctx, "releasing records", func(ctx context.Context, tx *sql.Tx) error {
		n, err := affected(tx.ExecContext(ctx, remove, of.WorkspaceID, of.ThreadID, of.Actor))
		if err == nil && n == 0 {
			err = sqldb.Failf(CodeNotFound, "grapnel manifest hold lists the holds", "there is no such hold")
		}
		return err
	})
}

// Holds returns all holds, by scope; never nil.
func (s *Store) Holds(ctx context.Context) (list []Hold, err error) {
	err = s.db.Snapshot(ctx, "reading holds", func(tx *sql.Tx) error {
		list, err = holds(ctx, tx, "")
		return err
	})
	return list, err
}

func holds(ctx context.Context, tx *sql.Tx, where string, args ...any) ([]Hold, error) {
	query := "SELECT workspace_id, thread_id, actor, held_by, reason, created_at FROM holds h" + where + " ORDER BY workspace_id, thread_id, actor"
	return sqldb.List(ctx, tx, query, args, func(rows *sql.Rows, h *Hold) error {
		return rows.Scan(&h.WorkspaceID, &h.ThreadID, &h.Actor, &h.By, &h.Reason, sqldb.Nanos{To: &h.At})
	})
}
