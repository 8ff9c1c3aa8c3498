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
	// Workspaces have rules of their own instead.
	Workspaces map[string]Retention
}

// of returns the rules for a workspace.
func (r *Retention) of(workspace string) Retention {
	if own, there := r.Workspaces[workspace]; there {
		return own
	}
	return Retention{Age: r.Age, Count: r.Count}
}

func (r *Retention) check() error {
	for _, own := range r.Workspaces {
		if err := own.check(); err != nil {
			return err
		}
	}
	if r.Age < 0 || r.Count < 0 {
		return sqldb.Failf(CodeInvalid, "", "retention with a negative limit")
	}
	return nil
}

// Pruned counts what retention removed.
type Pruned struct {
	Manifests int `json:"manifests"`
	Texts     int `json:"texts"`
	States    int `json:"states"`
	// Entries are those of kept conversations.
	Entries int `json:"entries"`
	// Held is how many threads keep what could go, because it is held.
	Held int `json:"held"`
}

// Bounds of one transaction, which should take 10 ms: rows, more or less of them as it takes less or more, and bytes of
// manifests or texts. A range is how many texts are looked at between two, while nobody waits.
const (
	pruneBatch = 256
	pruneBytes = 2 << 20
	pruneTime  = 10 * time.Millisecond
	textRange  = 4096
)

// pace is how many rows a transaction takes.
type pace int

// took adapts the pace to how long a transaction has taken.
func (p *pace) took(d time.Duration) {
	switch {
	case d > pruneTime:
		*p = max(*p/2, 8)
	case d < pruneTime/2:
		*p = min(*p*2, pruneBatch)
	}
}

// steps runs transactions that each change a few rows, at most as many as they are told, until one changes none.
func (s *Store) steps(ctx context.Context, doing string, p *pace, do func(ctx context.Context, tx *sql.Tx, most int) (int, error)) (total int, err error) {
	*p = max(*p, 32)
	err = s.db.Pieces(ctx, func() (more bool, err error) {
		n := 0
		began := time.Now()
		err = s.db.Change(ctx, doing, func(ctx context.Context, tx *sql.Tx) (err error) {
			n, err = do(ctx, tx, int(*p))
			return err
		})
		p.took(time.Since(began))
		if err == nil {
			total += n
		}
		return n > 0, err
	})
	return total, err
}

// Prune removes old manifests with their reports, texts that no remaining manifest can name, and old entries of
// conversations; what is held stays.
// Each thread's sign-off then begins with its first remaining manifest, so that the log still verifies. It works in short
// transactions, and other changes get their turn between them: after an error, earlier ones are kept, and the next Prune
// continues.
func (s *Store) Prune(ctx context.Context, r Retention, now time.Time) (done Pruned, err error) {
	if err := r.check(); err != nil {
		return done, err
	}
	err = s.mending(ctx, func() error { return s.prune(ctx, r, now, &done) })
	return done, err
}

func (s *Store) prune(ctx context.Context, r Retention, now time.Time, done *Pruned) error {
	done.Held = 0
	if err := s.Settle(ctx); err != nil {
		return err
	}
	var threads []thread
	err := s.db.Snapshot(ctx, "retention", func(tx *sql.Tx) (err error) {
		if err := mergeKept(ctx, tx, manifest.NewCounter(), "TRUE"); err != nil { // damaged
			return err
		}
		threads, err = threadsOf(ctx, tx, Filter{})
		return err
	})
	if err != nil {
		return err
	}
	var p pace
	for _, t := range threads {
		if t.chain == nil {
			continue // verify reports it
		}
		if err := s.pruneThread(ctx, r.of(t.workspace), now, t, &p, done); err != nil {
			return err
		}
	}
	texts, err := s.pruneTexts(ctx, &p)
	if done.Texts += texts; err != nil {
		return err
	}
	if err := s.pruneIndex(ctx); err != nil {
		return err
	}
	if err := s.pruneConversations(ctx, &r, now, &p, done); err != nil {
		return err
	}
	if r.Age > 0 {
		if err := s.pruneStates(ctx, now.Add(-r.Age).UnixNano(), &done.States); err != nil {
			return err
		}
	}
	left, err := s.wordsLeft(ctx) // by a run that was interrupted
	if err != nil || !left && *done == (Pruned{Held: done.Held}) {
		return err
	}
	return s.wipe(ctx)
}

// pruneThread removes manifests at the front of a thread, and then the uses of texts that were theirs.
func (s *Store) pruneThread(ctx context.Context, r Retention, now time.Time, t thread, p *pace, done *Pruned) error {
	held, due := false, 0
	defer func() {
		if held {
			done.Held++
		}
	}()
	err := s.db.Snapshot(ctx, "retention", func(tx *sql.Tx) error {
		c := *t.chain
		ids, err := r.advance(ctx, tx, &c, now, 1, &held)
		due = len(ids)
		return err
	})
	if err != nil || due == 0 {
		return err
	}
	n, err := s.steps(ctx, "retention", p, func(ctx context.Context, tx *sql.Tx, most int) (int, error) {
		return s.pruneFront(ctx, tx, r, now, t, most, &held)
	})
	done.Manifests += n
	if err != nil {
		return err
	}
	_, err = s.steps(ctx, "retention of texts", p, func(ctx context.Context, tx *sql.Tx, most int) (int, error) { return s.pruneUses(ctx, tx, t, most) })
	return err
}

// pruneFront removes some manifests at the front of a thread.
func (s *Store) pruneFront(ctx context.Context, tx *sql.Tx, r Retention, now time.Time, t thread, most int, held *bool) (int, error) {
	chain, err := s.lockChain(ctx, tx, t.workspace, t.id)
	if err != nil {
		return 0, err
	}
	was := chain.First
	ids, err := r.advance(ctx, tx, &chain.Chain, now, most, held)
	if err != nil || len(ids) == 0 {
		return 0, err
	}
	if _, err := tx.ExecContext(ctx, lockTree); err != nil {
		return 0, err
	}
	st, err := stretchOf(ctx, tx, t.workspace, t.id, signed(was), signed(chain.First))
	if err != nil {
		return 0, err
	}
	add := func(c *manifest.Counter) error {
		where, args := st.where()
		return addUp(ctx, tx, c, where, args, func() {})
	}
	err = st.correct(ctx, tx, add, func() error { return s.removeFront(ctx, tx, t, was, &chain.Chain, ids) })
	if err != nil {
		return 0, err
	}
	return len(ids), s.signOff(ctx, tx, &chain)
}

// removeFront removes the manifests in front of the first of a chain, and what belongs to them.
func (s *Store) removeFront(ctx context.Context, tx *sql.Tx, t thread, was uint64, chain *manifest.Chain, ids []any) error {
	const remove = "DELETE FROM manifests WHERE workspace_id = $1 AND thread_id = $2 AND seq >= $3 AND seq < $4 RETURNING id"
	gone, err := sqldb.List(ctx, tx, remove, []any{t.workspace, t.id, signed(was), signed(chain.First)}, func(rows *sql.Rows, id *any) error { return rows.Scan(id) })
	if err != nil {
		return err
	}
	if err := s.forgetRecords(ctx, tx, gone); err != nil {
		return err
	}
	// After the manifests: later reports wait for them, or see them gone.
	return pruneUsages(ctx, tx, ids)
}

// advance moves the front of a chain over the manifests that may go, up to the first one that is held, and up to the
// first gap: bad ones stay for Verify. It returns their ids.
func (r *Retention) advance(ctx context.Context, tx *sql.Tx, c *manifest.Chain, now time.Time, most int, held *bool) ([]any, error) {
	query := `SELECT manifest_id, seq, created_at, hash, octet_length(record), EXISTS (SELECT 1 FROM holds h WHERE ` + heldRecord + `) FROM manifests m
		WHERE workspace_id = $1 AND thread_id = $2 AND seq >= $3 ORDER BY seq LIMIT $4`
	open, left := true, pruneBytes
	var ids []any
	err := sqldb.Each(ctx, tx, query, []any{c.WorkspaceID, c.ThreadID, signed(c.First), most}, func(rows *sql.Rows) error {
		var seq, created int64
		var id, hash string
		var size int
		var isHeld bool
		if err := rows.Scan(&id, &seq, &created, &hash, &size, &isHeld); err != nil {
			return err
		}
		old := r.Age > 0 && now.Sub(time.Unix(0, created)) > r.Age
		many := r.Count > 0 && c.Next-c.First > uint64(r.Count)
		open = open && left > 0 && unsigned(seq) == c.First && (old || many)
		*held = *held || open && isHeld
		if open = open && !isHeld; open {
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
func (s *Store) pruneUses(ctx context.Context, tx *sql.Tx, t thread, most int) (int, error) {
	const query = `DELETE FROM text_uses WHERE (text_id, chain_id, actor) IN (SELECT text_id, chain_id, actor FROM text_uses
		WHERE chain_id = $1 AND last_id < coalesce((SELECT id FROM manifests WHERE thread_id = $2 AND workspace_id = $3 ORDER BY seq LIMIT 1), last_id + 1) LIMIT $4)`
	chain, err := s.lockChain(ctx, tx, t.workspace, t.id)
	if err != nil {
		return 0, err
	}
	return affected(tx.ExecContext(ctx, query, chain.id, t.id, t.workspace, most))
}

func affected(r sql.Result, err error) (int, error) {
	if err != nil {
		return 0, err
	}
	n, err := r.RowsAffected()
	return int(n), err
}

// pruneTexts removes the texts that no thread uses, without waiting for appends that use one.
func (s *Store) pruneTexts(ctx context.Context, p *pace) (n int, err error) {
	for from := int64(0); ; from += textRange {
		unused, last, err := s.unusedTexts(ctx, from)
		if err != nil {
			return n, err
		}
		_, err = s.steps(ctx, "retention of texts", p, func(ctx context.Context, tx *sql.Tx, most int) (int, error) {
			some := unused[:min(most, len(unused))]
			unused = unused[len(some):]
			return len(some), s.removeTexts(ctx, tx, some, &n)
		})
		if err != nil || from+textRange > last {
			return n, err
		}
	}
}

// unusedTexts returns the texts of one range that no thread uses, and the last id of all.
func (s *Store) unusedTexts(ctx context.Context, from int64) (ids []any, last int64, err error) {
	const query = "SELECT id FROM texts t WHERE id > $1 AND id <= $2 AND NOT EXISTS (SELECT 1 FROM text_uses u WHERE u.text_id = t.id) ORDER BY id"
	err = s.db.Snapshot(ctx, "retention of texts", func(tx *sql.Tx) error {
		if err := tx.QueryRowContext(ctx, "SELECT coalesce(max(id), 0) FROM texts").Scan(&last); err != nil {
			return err
		}
		return sqldb.Each(ctx, tx, query, []any{from, from + textRange}, func(rows *sql.Rows) error {
			var id int64
			err := rows.Scan(&id)
			ids = append(ids, id)
			return err
		})
	})
	return ids, last, err
}

// removeTexts removes those of the texts that are still without a use. On PostgreSQL it skips those that an append uses
// just now, and locks the others before it looks again.
func (s *Store) removeTexts(ctx context.Context, tx *sql.Tx, ids []any, removed *int) (err error) {
	// Who settles indexes texts: no words of one that is gone may be left.
	if _, err := tx.ExecContext(ctx, lockTree); err != nil {
		return err
	}
	if s.phrase.unlockedOnly != "" && len(ids) > 0 {
		ids, err = textIDs(ctx, tx, "", ids, s.phrase.unlockedOnly)
	}
	if err == nil && len(ids) > 0 {
		ids, err = textIDs(ctx, tx, " AND NOT EXISTS (SELECT 1 FROM text_uses u WHERE u.text_id = t.id)", ids, "")
	}
	if err != nil || len(ids) == 0 {
		return err
	}
	if err := s.forgetTexts(ctx, tx, ids); err != nil {
		return err
	}
	n, err := affected(tx.ExecContext(ctx, "DELETE FROM texts WHERE id IN ("+places(len(ids))+")", ids...))
	*removed += n
	return err
}

// textIDs returns those of the texts that a condition is true of.
func textIDs(ctx context.Context, tx *sql.Tx, condition string, ids []any, locking string) ([]any, error) {
	query := "SELECT id FROM texts t WHERE id IN (" + places(len(ids)) + ")" + condition + " ORDER BY id" + locking
	return sqldb.List(ctx, tx, query, ids, func(rows *sql.Rows, id *any) error { return rows.Scan(id) })
}
