package store

import (
	"context"
	"database/sql"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/grapnelhq/grapnel/internal/sqldb"
)

// settleBatch is how many records are settled in one transaction.
const settleBatch = 128

// settling is a record that is being settled.
type settling struct {
	ID   int64
	Hash string
	// Chain and Seq are its place.
	Chain, Seq int64
	// Record is the record, uncompressed.
	Record []byte
}

// settler settles beside the appends, one run at a time, until the store is closed.
type settler struct {
	mu              sync.Mutex
	running, closed bool
	work            sync.WaitGroup
}

// start settles in the background, unless somebody does already. What is left by an error is settled by the next run.
func (r *settler) start(ctx context.Context, s *Store) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.running || r.closed {
		return
	}
	r.running = true
	r.work.Go(func() {
		_ = s.Settle(ctx)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.running = false
	})
}

// stop waits for a run to end, and allows no more.
func (r *settler) stop() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.work.Wait()
}

// Settle gives the records that were appended since the last time their places in the tree of hashes, in the order in
// which they were appended, and indexes them. Append does so from time to time; a checkpoint and retention begin with it.
// Other processes may do so at the same time.
func (s *Store) Settle(ctx context.Context) error {
	return s.db.Pieces(ctx, func() (more bool, err error) {
		err = s.db.Change(ctx, "settling", func(ctx context.Context, tx *sql.Tx) error {
			n, err := s.settle(ctx, tx)
			more = n == settleBatch
			return err
		})
		return more, err
	})
}

// settle settles one batch and returns its length.
func (s *Store) settle(ctx context.Context, tx *sql.Tx) (int, error) {
	const lock = "UPDATE tree_state SET leaves = leaves WHERE id = 1"
	if _, err := tx.ExecContext(ctx, lock); err != nil {
		return 0, err
	}
	batch, err := s.unsettled(ctx, tx, settleBatch)
	if err != nil || len(batch) == 0 {
		return 0, err
	}
	if err := s.sequence(ctx, tx, batch); err != nil {
		return 0, err
	}
	if err := s.index(ctx, tx, batch); err != nil {
		return 0, err
	}
	ids := make([]any, len(batch))
	for i := range batch {
		ids[i] = batch[i].ID
	}
	_, err = tx.ExecContext(ctx, "DELETE FROM pending WHERE id IN ("+places(len(ids))+")", ids...) //nolint:gosec // placeholders only
	return len(batch), err
}

// unsettled returns the oldest records that are not settled, at most limit.
func (s *Store) unsettled(ctx context.Context, tx *sql.Tx, limit int) ([]settling, error) {
	const query = `SELECT m.id, m.hash, c.id, m.seq, m.bytes, m.record FROM pending p JOIN manifests m ON m.id = p.id
		JOIN chains c ON c.thread_id = m.thread_id AND c.workspace_id = m.workspace_id ORDER BY p.id LIMIT $1`
	var u unpacker
	return sqldb.List(ctx, tx, query, []any{limit}, func(rows *sql.Rows, r *settling) error {
		var size int
		var packed sql.RawBytes
		err := rows.Scan(&r.ID, &r.Hash, &r.Chain, &r.Seq, &size, &packed)
		r.Record = slices.Clone(u.unpack(packed, size))
		return err
	})
}

// places are n placeholders.
func places(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(", $" + strconv.Itoa(i+1))
	}
	return strings.TrimPrefix(b.String(), ", ")
}
