package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"time"

	"github.com/grapnelhq/grapnel/internal/sqldb"
	"github.com/grapnelhq/grapnel/manifest"
)

const entryColumns = "manifest_id, seq, outline, " + usageOf

// usageOf is the newest report of usage for a row of manifests, for parseUsage.
const usageOf = `(SELECT rounds || ' ' || reported_at || ' ' || input_tokens || ' ' || output_tokens || ' ' || cache_read_tokens || ' ' || cache_write_tokens
		FROM usages u WHERE u.manifest_id = manifests.manifest_id ORDER BY reported_at DESC LIMIT 1)`

// Entries returns what [manifest.Blame] needs of a thread, oldest first; records of several workspaces one workspace
// after another. With a limit these are the newest so many prompts that were sent, and the one before them.
func (s *Store) Entries(ctx context.Context, f Filter) iter.Seq2[manifest.Entry, error] {
	return func(yield func(manifest.Entry, error) bool) {
		err := s.db.Scan(ctx, "reading outlines", func(tx *sql.Tx) error {
			each := func(e *manifest.Entry) error {
				if !yield(*e, nil) {
					return errStopped
				}
				return nil
			}
			if f.Limit == 0 {
				tail, args := f.oldest()
				return eachEntry(ctx, tx, tail, args, each)
			}
			workspaces := []string{f.Workspace}
			if f.Workspace == "" {
				var err error
				if workspaces, err = workspacesOf(ctx, tx, f.Thread); err != nil {
					return err
				}
			}
			for _, w := range workspaces {
				list, err := sent(ctx, tx, w, f.Thread, math.MaxInt64, f.Limit, false)
				if err == nil && len(list) == f.Limit {
					var before []manifest.Entry
					before, err = sent(ctx, tx, w, f.Thread, signed(list[len(list)-1].Outline.Seq), 1, true)
					list = append(list, before...)
				}
				if err != nil {
					return err
				}
				for i := range slices.Backward(list) {
					if err := each(&list[i]); err != nil {
						return err
					}
				}
			}
			return nil
		})
		if err != nil && !errors.Is(err, errStopped) {
			yield(manifest.Entry{}, err)
		}
	}
}

func workspacesOf(ctx context.Context, tx *sql.Tx, thread string) ([]string, error) {
	const query = "SELECT workspace_id FROM chains WHERE thread_id = $1 ORDER BY workspace_id"
	return sqldb.List(ctx, tx, query, []any{thread}, func(rows *sql.Rows, w *string) error { return rows.Scan(w) })
}

// sent returns the newest prompts of a thread that were sent before a record, newest first; with whole those of which the
// record has all ([manifest.Outline.Whole]).
func sent(ctx context.Context, tx *sql.Tx, workspace, thread string, before int64, most int, whole bool) ([]manifest.Entry, error) {
	const tail = " WHERE workspace_id = $1 AND thread_id = $2 AND seq < $3 ORDER BY seq DESC LIMIT $4"
	var list []manifest.Entry
	atOnce := min(2*most+2, 256) // a turn has a record of its prompt and one of what came after it
	for {
		seen := 0
		err := eachEntry(ctx, tx, tail, []any{workspace, thread, before, atOnce}, func(e *manifest.Entry) error {
			seen, before = seen+1, int64(e.Outline.Seq) //nolint:gosec // it is a column
			if e.Outline.Sent && (!whole || e.Outline.Whole()) && len(list) < most {
				list = append(list, *e)
			}
			return nil
		})
		if err != nil || seen < atOnce || len(list) == most {
			return list, err
		}
	}
}

func eachEntry(ctx context.Context, tx *sql.Tx, tail string, args []any, do func(e *manifest.Entry) error) error {
	return sqldb.Each(ctx, tx, "SELECT "+entryColumns+" FROM manifests"+tail, args, func(rows *sql.Rows) error {
		var e manifest.Entry
		var id string
		var seq int64
		var outline sql.RawBytes
		var usage sql.NullString
		err := rows.Scan(&id, &seq, &outline, &usage)
		if err != nil {
			return err
		}
		if e.Outline, err = manifest.ParseOutline(outline); err != nil {
			return fmt.Errorf("the outline of the manifest %s: %w", id, err)
		}
		e.Outline.Seq = unsigned(seq)
		if e.Usage, err = parseUsage(id, usage); err != nil {
			return err
		}
		return do(&e)
	})
}

// parseUsage reads usageOf; nil is no report.
func parseUsage(id string, usage sql.NullString) (*manifest.Usage, error) {
	if !usage.Valid {
		return nil, nil //nolint:nilnil // see above
	}
	n := manifest.Usage{ManifestID: id}
	var at int64
	if _, err := fmt.Sscan(usage.String, &n.Rounds, &at, &n.InputTokens, &n.OutputTokens, &n.CacheReadTokens, &n.CacheWriteTokens); err != nil {
		return nil, fmt.Errorf("the usage of the manifest %s: %w", id, err)
	}
	n.ReportedAt = time.Unix(0, at).UTC()
	return &n, nil
}

// Judge sets what came from the provider's cache for a manifest's prompt and what broke it, as is known by now from what
// the provider reported for it and the previous prompt of its thread. Without that one the break stays as it was
// recorded. It returns the report for the manifest, nil if there is none.
func (s *Store) Judge(ctx context.Context, m *manifest.Manifest) (usage *manifest.Usage, err error) {
	err = s.db.Snapshot(ctx, "reading the previous prompt", func(tx *sql.Tx) error {
		list, err := sent(ctx, tx, m.WorkspaceID, m.ThreadID, signed(m.Seq)+1, 1, false)
		if err != nil || len(list) == 0 || list[0].Outline.ManifestID != m.ManifestID {
			return err
		}
		if usage = list[0].Usage; usage != nil {
			m.Cache.Actual = &usage.CacheReadTokens
		}
		if !list[0].Outline.Whole() {
			return nil
		}
		before, err := sent(ctx, tx, m.WorkspaceID, m.ThreadID, signed(m.Seq), 1, true)
		if len(before) > 0 {
			m.Cache.Break = manifest.Compare(&before[0].Outline, &list[0].Outline, before[0].Usage, usage)
		}
		return err
	})
	return usage, err
}

// Last returns the newest manifest of a thread whose prompt was sent, nil if there is none. Unlike in a [Filter], an
// empty id is the id "".
func (s *Store) Last(ctx context.Context, workspace, thread string) (*manifest.Manifest, error) {
	const query = "SELECT " + manifestColumns + " FROM manifests WHERE manifest_id = $1"
	var last *manifest.Manifest
	err := s.db.Snapshot(ctx, "reading the last manifest", func(tx *sql.Tx) error {
		list, err := sent(ctx, tx, workspace, thread, math.MaxInt64, 1, false)
		if err != nil || len(list) == 0 {
			return err
		}
		return sqldb.Each(ctx, tx, query, []any{list[0].Outline.ManifestID}, func(rows *sql.Rows) error { return scanManifest()(rows, &last) })
	})
	return last, err
}

// Shared reports whether other processes may append to the same threads: those of a server.
func (s *Store) Shared() bool { return s.db.Kind() == sqldb.Postgres }
