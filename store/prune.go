package store

import (
	"context"
	"database/sql"
	"time"

	"github.com/grapnelhq/grapnel/internal/sqldb"
	"github.com/grapnelhq/grapnel/manifest"
)

// Retention says what may be removed: what either rule covers. The zero value keeps everything.
type Retention struct {
	// Age removes older manifests; 0 is no limit. Within a thread the order of appending counts, not the clock.
	Age time.Duration
	// Count keeps the newest of each thread; 0 is no limit.
	Count int
}

// Pruned counts what retention removed.
type Pruned struct {
	Manifests int `json:"manifests"`
	Texts     int `json:"texts"`
	States    int `json:"states"`
}

// Bounds of one transaction, so that appending never waits long: rows, and bytes of manifests or texts.
const (
	pruneBatch = 256
	pruneBytes = 8 << 20
)

// Prune removes old manifests with their reports, and texts that no remaining manifest can name.
// Each thread's sign-off then begins with its first remaining manifest, so that the log still
// verifies. Batches are transactions: after an error, earlier ones are kept.
func (s *Store) Prune(ctx context.Context, r Retention, now time.Time) (Pruned, error) {
	var done Pruned
	if r.Age < 0 || r.Count < 0 {
		return done, sqldb.Failf(CodeInvalid, "", "retention with a negative limit")
	}
	if err := s.Settle(ctx); err != nil {
		return done, err
	}
	var threads []thread
	err := s.db.Snapshot(ctx, "retention", func(tx *sql.Tx) (err error) {
		threads, err = threadsOf(ctx, tx, Filter{})
		return err
	})
	if err != nil {
		return done, err
	}
	for _, t := range threads {
		if t.chain == nil {
			continue // verify reports it
		}
		taken := 0
		err := s.db.Pieces(ctx, func() (more bool, err error) {
			n, err := s.pruneThread(ctx, r, now, t)
			taken += n
			return n > 0, err
		})
		done.Manifests += taken
		if err == nil && taken > 0 {
			err = s.pruneUses(ctx, t)
		}
		if err != nil {
			return done, err
		}
	}
	if done.Texts, err = s.pruneTexts(ctx); err != nil {
		return done, err
	}
	if r.Age == 0 {
		return done, nil
	}
	return done, s.pruneStates(ctx, now.Add(-r.Age).UnixNano(), &done.States)
}

// pruneThread removes one batch at the front of a thread.
func (s *Store) pruneThread(ctx context.Context, r Retention, now time.Time, t thread) (taken int, err error) {
	err = s.db.Change(ctx, "retention", func(ctx context.Context, tx *sql.Tx) error {
		chain, err := s.lockChain(ctx, tx, t.workspace, t.id)
		if err != nil {
			return err
		}
		was := chain.First
		ids, err := r.advance(ctx, tx, &chain.Chain, now)
		if err != nil || len(ids) == 0 {
			return err
		}
		const remove = "DELETE FROM manifests WHERE workspace_id = $1 AND thread_id = $2 AND seq >= $3 AND seq < $4"
		if _, err := tx.ExecContext(ctx, remove, t.workspace, t.id, signed(was), signed(chain.First)); err != nil {
			return err
		}
		// After the manifests: later reports wait for them, or see them gone.
		if err := pruneUsages(ctx, tx, ids); err != nil {
			return err
		}
		taken = len(ids)
		return s.signOff(ctx, tx, &chain)
	})
	return taken, err
}

// advance moves the front of a chain over the manifests that may go, up to the first gap: bad
// ones stay for Verify. It returns their ids.
func (r Retention) advance(ctx context.Context, tx *sql.Tx, c *manifest.Chain, now time.Time) ([]any, error) {
	const query = `SELECT manifest_id, seq, created_at, hash, octet_length(record) FROM manifests
		WHERE workspace_id = $1 AND thread_id = $2 AND seq >= $3 ORDER BY seq LIMIT $4`
	open, left := true, pruneBytes
	var ids []any
	err := sqldb.Each(ctx, tx, query, []any{c.WorkspaceID, c.ThreadID, signed(c.First), pruneBatch}, func(rows *sql.Rows) error {
		var seq, created int64
		var id, hash string
		var size int
		if err := rows.Scan(&id, &seq, &created, &hash, &size); err != nil {
			return err
		}
		old := r.Age > 0 && now.Sub(time.Unix(0, created)) > r.Age
		many := r.Count > 0 && c.Next-c.First > uint64(r.Count)
		if open = open && left > 0 && unsigned(seq) == c.First && (old || many); open {
			ids, left = append(ids, id), left-size
			c.First, c.Before = c.First+1, hash
		}
		return nil
	})
	return ids, err
}

func pruneUsages(ctx context.Context, tx *sql.Tx, ids []any) error {
	_, err := tx.ExecContext(ctx, "DELETE FROM usages WHERE manifest_id IN ("+places(len(ids))+")", ids...) //nolint:gosec // placeholders only
	return err
}

// pruneUses forgets which texts a thread used in records that are gone.
func (s *Store) pruneUses(ctx context.Context, t thread) error {
	const query = `DELETE FROM text_uses WHERE chain_id = $1 AND last_id < coalesce(
		(SELECT min(id) FROM manifests WHERE thread_id = $2 AND workspace_id = $3), last_id + 1)`
	return s.db.Change(ctx, "retention of texts", func(ctx context.Context, tx *sql.Tx) error {
		chain, err := s.lockChain(ctx, tx, t.workspace, t.id)
		if err == nil {
			_, err = tx.ExecContext(ctx, query, chain.id, t.id, t.workspace)
		}
		return err
	})
}

// pruneTexts removes the texts that no thread uses, without waiting for appends that use one.
func (s *Store) pruneTexts(ctx context.Context) (n int, err error) {
	const unused = "SELECT id FROM texts t WHERE id > $1 AND NOT EXISTS (SELECT 1 FROM text_uses u WHERE u.text_id = t.id) ORDER BY id LIMIT $2"
	remove := "DELETE FROM texts WHERE id IN (" + unused + s.phrase.unlockedOnly + ") RETURNING id"
	last := int64(0)
	err = s.db.Pieces(ctx, func() (more bool, err error) {
		err = s.db.Change(ctx, "retention of texts", func(ctx context.Context, tx *sql.Tx) error {
			gone, err := sqldb.List(ctx, tx, remove, []any{last, pruneBatch}, func(rows *sql.Rows, id *int64) error { return rows.Scan(id) })
			for _, id := range gone {
				last = max(last, id)
			}
			n, more = n+len(gone), len(gone) > 0
			return err
		})
		return more, err
	})
	return n, err
}
