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

// pruneBatch is how many manifests go in one transaction, so that appending
// never waits long.
const pruneBatch = 256

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
		for n := pruneBatch; n == pruneBatch; {
			var audits int
			if n, audits, err = s.pruneThread(ctx, r, now, t); err != nil {
				return done, err
			}
			done.Manifests += n
			done.Audits += audits
		}
	}
	if done.Texts, err = s.pruneTexts(ctx); err != nil {
		return done, err
	}
	if done.States, err = s.pruneStates(ctx, r.Age, now); err != nil {
		return done, err
	}
	n, err := s.pruneAudits(ctx, r.Age, now)
	done.Audits += n
	return done, err
}

// pruneThread takes one batch away at the front of a thread and returns how many
// manifests that were, and how many audit events from before those that stay.
func (s *Store) pruneThread(ctx context.Context, r Retention, now time.Time, t thread) (taken, audits int, err error) {
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
		if audits, err = auditsBefore(ctx, tx, t); err != nil {
			return err
		}
		taken = len(ids)
		return s.signOff(ctx, tx.StmtContext(ctx, s.append.chain), &chain)
	})
	return taken, audits, err
}

// advance moves the front of a chain over the manifests that may go, as far as
// they follow one another without a gap: what is bad stays for the verifier. It
// returns the ids of those that go.
func (r Retention) advance(ctx context.Context, tx *sql.Tx, c *manifest.Chain, now time.Time) ([]any, error) {
	const query = `SELECT manifest_id, seq, created_at, hash FROM manifests
		WHERE workspace_id = $1 AND thread_id = $2 AND seq >= $3 ORDER BY seq LIMIT $4`
	open := true
	var ids []any
	err := sqldb.Each(ctx, tx, query, []any{c.WorkspaceID, c.ThreadID, signed(c.First), pruneBatch}, func(rows *sql.Rows) error {
		var seq, created int64
		var id, hash string
		if err := rows.Scan(&id, &seq, &created, &hash); err != nil {
			return err
		}
		old := r.Age > 0 && now.Sub(time.Unix(0, created)) > r.Age
		many := r.Count > 0 && c.Next-c.First > uint64(r.Count)
		if open = open && unsigned(seq) == c.First && (old || many); open {
			ids = append(ids, id)
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
func (s *Store) pruneTexts(ctx context.Context) (int, error) {
	//nolint:gosec // constants of the database
	query := `DELETE FROM texts WHERE (fingerprint, hash) IN (SELECT fingerprint, hash FROM texts
		WHERE last_used < coalesce((SELECT min(id) FROM manifests), (SELECT max(last_used) + 1 FROM texts))` + s.phrase.unlockedOnly + ")"
	var n int64
	err := s.db.Change(ctx, "retention of texts", func(ctx context.Context, tx *sql.Tx) error {
		result, err := tx.ExecContext(ctx, query)
		if err != nil {
			return err
		}
		n, err = result.RowsAffected()
		return err
	})
	return int(n), err
}
