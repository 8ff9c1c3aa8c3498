package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/store/sqldb"
)

// auditColumns are those of audits, in the order of KeepAudits and scanAudit.
const auditColumns = `at, place, workspace_id, thread_id, turn_id, session_id, phase, plugin, plugin_version,
	subscription_id, event_kind, contribution_hash, details, details_fingerprint, details_bytes`

// KeepAudits keeps audit events that are in no manifest, all of them or none. They
// are beside the log: no chain covers them.
//
// It waits as [Store.Append] does.
func (s *Store) KeepAudits(ctx context.Context, events []manifest.AuditEvent) error {
	for i := range events {
		if !inRange(events[i].At) {
			return sqldb.Failf(CodeInvalid, "", "the time %s of an audit event is out of range", events[i].At)
		}
	}
	const put = "INSERT INTO audits (" + auditColumns + ") VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)"
	return s.db.Change(ctx, "keeping audit events", func(ctx context.Context, tx *sql.Tx) error {
		for i := range events {
			e := &events[i]
			_, err := tx.ExecContext(ctx, put, e.At.UnixNano(), i, e.WorkspaceID, e.ThreadID, e.TurnID, e.SessionID, string(e.Phase), e.Plugin,
				e.PluginVersion, e.SubscriptionID, e.EventKind, e.ContributionHash, string(e.Details), e.DetailsFingerprint, e.DetailsBytes)
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// AuditFilter says which audit events are meant. Empty fields are all.
type AuditFilter struct {
	Workspace, Thread, Turn, Plugin string
	// Limit gives the newest so many; 0 gives all.
	Limit int
}

// Audits returns audit events that are in no manifest, newest last; never nil.
func (s *Store) Audits(ctx context.Context, f AuditFilter) ([]manifest.AuditEvent, error) {
	var query strings.Builder
	args := []any{}
	query.WriteString("SELECT " + auditColumns + " FROM audits WHERE TRUE")
	bind := func(clause string, value any) {
		args = append(args, value)
		query.WriteString(clause + "$" + strconv.Itoa(len(args)))
	}
	for _, c := range []struct{ column, value string }{
		{"workspace_id", f.Workspace}, {"thread_id", f.Thread}, {"turn_id", f.Turn}, {"plugin", f.Plugin},
	} {
		if c.value != "" {
			bind(" AND "+c.column+" = ", c.value)
		}
	}
	query.WriteString(" ORDER BY at DESC, place DESC")
	if f.Limit > 0 {
		bind(" LIMIT ", f.Limit)
	}
	list := []manifest.AuditEvent{}
	err := s.db.Snapshot(ctx, "reading audit events", func(tx *sql.Tx) error {
		return sqldb.Each(ctx, tx, query.String(), args, func(rows *sql.Rows) error {
			e, err := scanAudit(rows)
			list = append(list, e)
			return err
		})
	})
	slices.Reverse(list)
	return list, err
}

// scanAudit reads a row of auditColumns.
func scanAudit(rows *sql.Rows) (manifest.AuditEvent, error) {
	var e manifest.AuditEvent
	var at, place int64
	var details string
	err := rows.Scan(&at, &place, &e.WorkspaceID, &e.ThreadID, &e.TurnID, &e.SessionID, (*string)(&e.Phase), &e.Plugin,
		&e.PluginVersion, &e.SubscriptionID, &e.EventKind, &e.ContributionHash, &details, &e.DetailsFingerprint, &e.DetailsBytes)
	e.At = time.Unix(0, at).UTC()
	if details != "" {
		e.Details = json.RawMessage(details)
	}
	return e, err
}

// pruneAuditsBefore takes the audit events of a thread away from before its first
// manifest.
func (s *Store) pruneAuditsBefore(ctx context.Context, t thread, done *int) error {
	var first sql.NullInt64
	err := s.db.Snapshot(ctx, "retention of audit events", func(tx *sql.Tx) error {
		const query = "SELECT min(created_at) FROM manifests WHERE thread_id = $1 AND workspace_id = $2"
		return tx.QueryRowContext(ctx, query, t.id, t.workspace).Scan(&first)
	})
	if err != nil || !first.Valid {
		return err
	}
	return s.deleteAudits(ctx, first.Int64, done, "thread_id = $2 AND workspace_id = $3 AND", t.id, t.workspace)
}

// pruneAudits takes audit events away that are older than an age.
func (s *Store) pruneAudits(ctx context.Context, age time.Duration, now time.Time, done *int) error {
	if age == 0 {
		return nil
	}
	return s.deleteAudits(ctx, now.Add(-age).UnixNano(), done, "")
}

// deleteAudits deletes audit events from before a time, in batches: up to the event
// that follows so many, with all that were kept at the same time. Which is a condition
// with its arguments.
func (s *Store) deleteAudits(ctx context.Context, before int64, done *int, which string, args ...any) error {
	batch := strconv.Itoa(pruneBatch)
	query := "DELETE FROM audits WHERE " + which + " at < coalesce((SELECT at + 1 FROM audits WHERE " + which +
		" at < $1 ORDER BY at LIMIT 1 OFFSET " + batch + "), $1)"
	return s.db.Pieces(ctx, func() (more bool, err error) {
		n := 0
		err = s.db.Change(ctx, "retention of audit events", func(ctx context.Context, tx *sql.Tx) (err error) {
			n, err = affected(tx.ExecContext(ctx, query, append([]any{before}, args...)...))
			return err
		})
		*done += n
		return n > 0, err
	})
}

// affected is how many rows a statement has changed.
func affected(r sql.Result, err error) (int, error) {
	if err != nil {
		return 0, err
	}
	n, err := r.RowsAffected()
	return int(n), err
}
