package store

import (
	"context"
	"database/sql"
	"math"
	"time"

	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/store/sqldb"
)

// usageColumns are those of usages, in the order of usageValues.
const usageColumns = "manifest_id, reported_at, rounds, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens"

// putUsage keeps a report where its manifest is. A report that comes again, as
// after a commit whose answer was lost, is the same row.
const putUsage = "INSERT INTO usages (" + usageColumns + `)
	SELECT manifest_id, $2, $3, $4, $5, $6, $7 FROM manifests WHERE manifest_id = $1`

const usageIsThere = ` ON CONFLICT (manifest_id, reported_at) DO UPDATE SET rounds = excluded.rounds,
	input_tokens = excluded.input_tokens, output_tokens = excluded.output_tokens,
	cache_read_tokens = excluded.cache_read_tokens, cache_write_tokens = excluded.cache_write_tokens`

// Last returns the newest manifest of a workspace and thread, and nil where there
// is none. Unlike in a [Filter], an empty id is the id "".
func (s *Store) Last(ctx context.Context, workspace, thread string) (*manifest.Manifest, error) {
	const query = "SELECT manifest_id, record FROM manifests WHERE workspace_id = $1 AND thread_id = $2 ORDER BY seq DESC LIMIT 1"
	var last *manifest.Manifest
	err := s.db.Snapshot(ctx, "reading the last manifest", func(tx *sql.Tx) error {
		return sqldb.Each(ctx, tx, query, []any{workspace, thread}, func(rows *sql.Rows) (err error) {
			last, err = scanManifest(rows)
			return err
		})
	})
	return last, err
}

// Report keeps what a provider reported for a manifest, beside the record and
// outside its hash. The code of the error is CodeNotFound where the manifest is
// not there, and CodeInvalid for numbers that make no sense.
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
		return sqldb.Failf(CodeNotFound, "retention may have taken it away", "there is no manifest %s to report for", u.ManifestID)
	})
}

// Usage returns what was reported for a manifest, newest last; never nil. Of a
// manifest that is not there nothing was reported.
func (s *Store) Usage(ctx context.Context, manifestID string) ([]manifest.Usage, error) {
	list := []manifest.Usage{}
	const query = "SELECT " + usageColumns + " FROM usages WHERE manifest_id = $1 ORDER BY reported_at"
	err := s.db.Snapshot(ctx, "reading reports", func(tx *sql.Tx) error {
		return sqldb.Each(ctx, tx, query, []any{manifestID}, func(rows *sql.Rows) error {
			var u manifest.Usage
			var at int64
			err := rows.Scan(&u.ManifestID, &at, &u.Rounds, &u.InputTokens, &u.OutputTokens, &u.CacheReadTokens, &u.CacheWriteTokens)
			u.ReportedAt = time.Unix(0, at).UTC()
			list = append(list, u)
			return err
		})
	})
	return list, err
}

// inRange reports whether a time can be kept in nanoseconds since 1970.
func inRange(t time.Time) bool {
	return !t.Before(time.Unix(0, math.MinInt64)) && !t.After(time.Unix(0, math.MaxInt64))
}
