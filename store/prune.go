package store

import (
	"context"
	"database/sql"
	"strconv"
	"strings"
	"time"

	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/store/sqldb"
)

// Retention says what may go. A manifest goes when one of the rules says so. The
// zero value keeps everything.
type Retention struct {
	// Age takes manifests away that are older; 0 is no limit. Within a thread
	// nothing goes before what was appended earlier, whatever the clocks said.
	Age time.Duration
	// Count keeps the newest so many of each thread; 0 is no limit.
	Count int
}

// Pruned says what retention took away.
type Pruned struct {
	Manifests int `json:"manifests"`
	Texts     int `json:"texts"`
	States    int `json:"states"`
	Audits    int `json:"audits"`
}

// What one transaction of retention takes at most, so that appending never waits long:
// rows, and bytes of manifests or texts.
const (
	pruneBatch = 256
	pruneBytes = 8 << 20
)

// Prune takes old manifests away with the reports about them, audit events by the
// same rules (those of a thread with its manifests, all others by age), and kept texts that
// none of the others can name. The sign-off of each thread then begins with the first manifest that
// stays, so that the log can be verified as before. Each batch is a transaction:
// when an error stops the work, what was done is done, and whole.
func (s *Store) Prune(ctx context.Context, r Retention, now time.Time) (Pruned, error) {
	var done Pruned
	if r.Age < 0 || r.Count < 0 {
		return done, sqldb.Failf(CodeInvalid, "", "retention with a negative limit")
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
			continue // not ours to touch: verify names it
		}
		taken := 0
		err := s.db.Pieces(ctx, func() (more bool, err error) {
			n, err := s.pruneThread(ctx, r, now, t)
			taken += n
			return n > 0, err
		})
		done.Manifests += taken
		if err == nil && taken > 0 {
			err = s.pruneAuditsBefore(ctx, t, &done.Audits)
		}
		if err != nil {
			return done, err
		}
	}
	if done.Texts, err = s.pruneTexts(ctx); err != nil {
		return done, err
	}
	if err := s.pruneStates(ctx, r.Age, now, &done.States); err != nil {
		return done, err
	}
	return done, s.pruneAudits(ctx, r.Age, now, &done.Audits)
}

// pruneThread takes one batch away at the front of a thread and returns how many
// manifests that were.
func (s *Store) pruneThread(ctx context.Context, r Retention, now time.Time, t thread) (taken int, err error) {
	err = s.db.Change(ctx, "retention", func(ctx context.Context, tx *sql.Tx) error {
		chain, err := s.lockChain(ctx, tx, t.workspace, t.id)
		if err != nil {
			return err
		}
		was := chain.First
		ids, err := r.advance(ctx, tx, &chain, now)
		if err != nil || len(ids) == 0 {
			return err
		}
		const remove = "DELETE FROM manifests WHERE workspace_id = $1 AND thread_id = $2 AND seq >= $3 AND seq < $4"
		if _, err := tx.ExecContext(ctx, remove, t.workspace, t.id, signed(was), signed(chain.First)); err != nil {
			return err
		}
		// After the manifests: what is reported meanwhile waits for them, or is seen.
		if err := pruneUsages(ctx, tx, ids); err != nil {
			return err
		}
		taken = len(ids)
		return s.signOff(ctx, tx.StmtContext(ctx, s.append.chain), &chain)
	})
	return taken, err
}

// advance moves the front of a chain over the manifests that may go, as far as
// they follow one another without a gap: what is bad stays for the verifier. It
// returns the ids of those that go.
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

// pruneUsages takes away what was reported for manifests.
func pruneUsages(ctx context.Context, tx *sql.Tx, ids []any) error {
	places := make([]string, len(ids))
	for i := range places {
		places[i] = "$" + strconv.Itoa(i+1)
	}
	_, err := tx.ExecContext(ctx, "DELETE FROM usages WHERE manifest_id IN ("+strings.Join(places, ", ")+")", ids...) //nolint:gosec // placeholders only
	return err
}

// pruneTexts takes texts away that no manifest has used since the oldest one that
// stays was appended. Without any manifest all texts go that are there now. It
// waits for no append that uses a text at this moment.
func (s *Store) pruneTexts(ctx context.Context) (n int, err error) {
	const find = `SELECT fingerprint, hash, last_used, octet_length(text) FROM texts
		WHERE last_used < coalesce((SELECT min(id) FROM manifests), (SELECT max(last_used) + 1 FROM texts)) LIMIT $1`
	remove := `DELETE FROM texts WHERE (fingerprint, hash) IN (SELECT fingerprint, hash FROM texts
		WHERE fingerprint = $1 AND hash = $2 AND last_used < coalesce((SELECT min(id) FROM manifests), $3 + 1)` + s.phrase.unlockedOnly + ")"
	err = s.db.Pieces(ctx, func() (more bool, err error) {
		var found [][]any
		left, deleted := pruneBytes, 0
		err = s.db.Snapshot(ctx, "retention of texts", func(tx *sql.Tx) error {
			return sqldb.Each(ctx, tx, find, []any{pruneBatch}, func(rows *sql.Rows) error {
				var fingerprint, hash string
				var used int64
				var size int
				err := rows.Scan(&fingerprint, &hash, &used, &size)
				if left > 0 {
					found, left = append(found, []any{fingerprint, hash, used}), left-size
				}
				return err
			})
		})
		if err != nil || len(found) == 0 {
			return false, err
		}
		err = s.db.Change(ctx, "retention of texts", func(ctx context.Context, tx *sql.Tx) error {
			for _, text := range found {
				gone, err := affected(tx.ExecContext(ctx, remove, text...))
				if err != nil {
					return err
				}
				deleted += gone
			}
			return nil
		})
		n += deleted
		return deleted > 0, err
	})
	return n, err
}
