package store

import (
	"context"
	"database/sql"
	"errors"
	"math"
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
		if _, err := tx.ExecContext(ctx, lockTree); err != nil {
			return err
		}
		var st stretch
		const place = "SELECT workspace_id, thread_id, seq FROM manifests WHERE manifest_id = $1"
		err := tx.QueryRowContext(ctx, place, u.ManifestID).Scan(&st.workspace, &st.thread, &st.from)
		if errors.Is(err, sql.ErrNoRows) {
			return noManifestFor(&u)
		}
		if err == nil {
			st, err = stretchOf(ctx, tx, st.workspace, st.thread, st.from, st.from+1)
		}
		if err != nil {
			return err
		}
		add := func(c *manifest.Counter) error {
			where, args := st.where()
			if err := follow(ctx, tx, c, where, args); err != nil {
				return err
			}
			return addEntries(ctx, tx, c, where, args)
		}
		return st.correct(ctx, tx, add, func() error { return s.putUsage(ctx, tx, &u) })
	})
}

func (s *Store) putUsage(ctx context.Context, tx *sql.Tx, u *manifest.Usage) error {
	n, err := affected(tx.ExecContext(ctx, putUsage+s.phrase.sharing+usageIsThere, u.ManifestID, u.ReportedAt.UnixNano(), u.Rounds,
		u.InputTokens, u.OutputTokens, u.CacheReadTokens, u.CacheWriteTokens))
	if err == nil && n == 0 {
		err = noManifestFor(u)
	}
	return err
}

func noManifestFor(u *manifest.Usage) error {
	return sqldb.Failf(CodeNotFound, "retention may have removed it", "there is no manifest %s to report for", u.ManifestID)
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
