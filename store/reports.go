package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/grapnelhq/grapnel/internal/sqldb"
	"github.com/grapnelhq/grapnel/manifest"
)

const usageColumns = "manifest_id, reported_at, rounds, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens"

// putUsage keeps a report if its manifest exists. A retried report is the same row.
const putUsage = "INSERT INTO usages (" + usageColumns + `)
	SELECT manifest_id, $2, $3, $4, $5, $6, $7 FROM manifests WHERE manifest_id = $1`

const usageIsThere = ` ON CONFLICT (manifest_id, reported_at) DO UPDATE SET rounds = excluded.rounds,
	input_tokens = excluded.input_tokens, output_tokens = excluded.output_tokens,
	cache_read_tokens = excluded.cache_read_tokens, cache_write_tokens = excluded.cache_write_tokens`

// Report keeps a provider's report about a manifest, outside of its hash. The error's code is
// CodeNotFound if the manifest is missing, and CodeInvalid for impossible numbers.
//
// It waits as [Store.Append] does.
func (s *Store) Report(ctx context.Context, u manifest.Usage) error {
	if err := u.Check(); err != nil {
		return &Error{Code: CodeInvalid, Message: "the report cannot be kept", Err: err}
	}
	if !inRange(u.ReportedAt) {
		return sqldb.Failf(CodeInvalid, "", "the report's time %s is out of range", u.ReportedAt)
	}
	return s.db.Change(ctx, "keeping a report", func(ctx context.Context, tx *sql.Tx) error {
		result, err := tx.ExecContext(ctx, putUsage+s.phrase.sharing+usageIsThere, u.ManifestID, u.ReportedAt.UnixNano(), u.Rounds,
			u.InputTokens, u.OutputTokens, u.CacheReadTokens, u.CacheWriteTokens)
		if err != nil {
			return err
		}
		if n, err := result.RowsAffected(); err != nil || n > 0 {
			return err
		}
		return sqldb.Failf(CodeNotFound, "retention may have removed it", "there is no manifest %s to report for", u.ManifestID)
	})
}

// Usage returns the reports about a manifest, newest last; never nil.
func (s *Store) Usage(ctx context.Context, manifestID string) ([]manifest.Usage, error) {
	const query = "SELECT " + usageColumns + " FROM usages WHERE manifest_id = $1 ORDER BY reported_at"
	return sqldb.ReadList(ctx, s.db, "reading reports", query, []any{manifestID}, func(rows *sql.Rows, u *manifest.Usage) error {
		return rows.Scan(&u.ManifestID, sqldb.Nanos{To: &u.ReportedAt}, &u.Rounds, &u.InputTokens, &u.OutputTokens, &u.CacheReadTokens, &u.CacheWriteTokens)
	})
}

// inRange reports whether a time can be kept in nanoseconds since 1970.
func inRange(t time.Time) bool {
	return !t.Before(time.Unix(0, math.MinInt64)) && !t.After(time.Unix(0, math.MaxInt64))
}

const auditColumns = `at, place, workspace_id, thread_id, turn_id, session_id, phase, plugin, plugin_version,
	subscription_id, event_kind, contribution_hash, details, details_fingerprint, details_bytes`

// KeepAudits keeps audit events that are in no manifest, all or none. No chain covers them.
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

// AuditFilter selects audit events. Empty fields select all.
type AuditFilter struct {
	Workspace, Thread, Turn, Plugin string
	// Limit takes the newest; 0 is all.
	Limit int
}

// Audits returns audit events that are in no manifest, newest last; never nil.
func (s *Store) Audits(ctx context.Context, f AuditFilter) ([]manifest.AuditEvent, error) {
	where, args := whereEqual([]equal{{"workspace_id", f.Workspace}, {"thread_id", f.Thread}, {"turn_id", f.Turn}, {"plugin", f.Plugin}})
	query := "SELECT " + auditColumns + " FROM audits" + where + " ORDER BY at DESC, place DESC"
	if f.Limit > 0 {
		args = append(args, f.Limit)
		query += fmt.Sprintf(" LIMIT $%d", len(args))
	}
	list, err := sqldb.ReadList(ctx, s.db, "reading audit events", query, args, scanAudit)
	slices.Reverse(list)
	return list, err
}

func scanAudit(rows *sql.Rows, e *manifest.AuditEvent) error {
	var place int64
	var details string
	err := rows.Scan(sqldb.Nanos{To: &e.At}, &place, &e.WorkspaceID, &e.ThreadID, &e.TurnID, &e.SessionID, &e.Phase, &e.Plugin,
		&e.PluginVersion, &e.SubscriptionID, &e.EventKind, &e.ContributionHash, &details, &e.DetailsFingerprint, &e.DetailsBytes)
	if details != "" {
		e.Details = json.RawMessage(details)
	}
	return err
}

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

// deleteAudits deletes audit events before a time in batches. A batch is extended by all events
// of its last moment. The condition which has its own arguments.
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

func affected(r sql.Result, err error) (int, error) {
	if err != nil {
		return 0, err
	}
	n, err := r.RowsAffected()
	return int(n), err
}
