package store

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/grapnelhq/grapnel/internal/sqldb"
	"github.com/grapnelhq/grapnel/manifest"
)

// settleBatch is how many records are settled in one transaction, at most, and settleEvery how many are appended before
// somebody begins.
const (
	settleBatch = 256
	settleEvery = 64
)

// settling is a record that is being settled.
type settling struct {
	ID   int64
	Hash string
	// Chain and Seq are its place, and Created is when it was made, in nanoseconds since 1970.
	Chain, Seq, Created int64
	// terms are what it is found by.
	terms []string
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
// Other processes may do so at the same time. An index that somebody has damaged is made again.
func (s *Store) Settle(ctx context.Context) error {
	return s.mending(ctx, func() error { return s.settleAll(ctx) })
}

// mending does something, and once more with a new index if the index turns out to be damaged.
func (s *Store) mending(ctx context.Context, do func() error) error {
	err := do()
	if !errors.Is(err, errIndexDamaged) && !sqldb.IndexDamaged(err) {
		return err
	}
	err = s.db.Change(ctx, "making the index again", func(ctx context.Context, tx *sql.Tx) error {
		for _, statement := range []string{
			lockTree, s.phrase.emptyTerms, s.phrase.emptyWords, "DELETE FROM indexed_records", "DELETE FROM indexed_batches", "DELETE FROM day_sums",
			"INSERT INTO pending (id) SELECT id FROM manifests WHERE TRUE ON CONFLICT (id) DO NOTHING",
		} {
			if _, err := tx.ExecContext(ctx, statement); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return do()
}

func (s *Store) settleAll(ctx context.Context) error {
	most := pace(settleBatch / 2)
	var took time.Duration
	for {
		began := time.Now()
		var b batch
		err := s.db.Snapshot(ctx, "settling", func(tx *sql.Tx) (err error) {
			b, err = readBatch(ctx, tx, &s.phrase, int(most))
			return err
		})
		if err != nil {
			return err
		}
		// While a batch is read, others have their turn already.
		if err := s.db.Yield(ctx, took-time.Since(began)/2); err != nil {
			return err
		}
		err = s.db.Change(ctx, "settling", func(ctx context.Context, tx *sql.Tx) error {
			began = time.Now()
			return s.settle(ctx, tx, &b)
		})
		if err != nil && !errors.Is(err, errTaken) || err == nil && len(b.records) < int(most) {
			return err
		}
		took = time.Since(began)
		most.took(took)
		most = min(max(most, settleBatch/4), settleBatch)
	}
}

// batch is some records that are about to be settled, and the texts that are indexed with them.
type batch struct {
	records []settling
	texts   []textWords
	counter *manifest.Counter // of what records say by themselves
}

// readBatch prepares what can be done while nobody waits.
func readBatch(ctx context.Context, tx *sql.Tx, p *phrases, most int) (b batch, err error) {
	b.counter = manifest.NewCounter()
	var hashes []string
	if err := follow(ctx, tx, b.counter, " WHERE id IN (SELECT id FROM pending ORDER BY id LIMIT $1)", []any{most}); err != nil {
		return b, err
	}
	err = unsettled(ctx, tx, most, func(r *settling, record []byte) {
		if m, err := manifest.Parse(record); err == nil { // the verifier reports one that cannot be read
			r.terms, hashes = termsOf(&m), append(hashes, textHashes(&m)...)
			b.counter.AddRecord(&m)
		}
		b.records = append(b.records, *r)
	})
	if err != nil {
		return b, err
	}
	slices.Sort(hashes)
	b.texts, err = unindexedTexts(ctx, tx, p, slices.Compact(hashes))
	return b, err
}

// lockTree makes other callers wait that settle, merge settled records, remove texts, or change kept sums.
const lockTree = "UPDATE tree_state SET leaves = leaves WHERE id = 1"

// errTaken says that somebody else has settled or removed a record of the batch.
var errTaken = errors.New("settled by another")

// settle settles a batch.
func (s *Store) settle(ctx context.Context, tx *sql.Tx, b *batch) error {
	if _, err := tx.ExecContext(ctx, lockTree); err != nil || len(b.records) == 0 {
		return err
	}
	ids := make([]any, len(b.records))
	for i := range b.records {
		ids[i] = b.records[i].ID
	}
	n, err := affected(tx.ExecContext(ctx, "DELETE FROM pending WHERE id IN ("+places(len(ids))+")", ids...))
	if err == nil && n < len(ids) {
		err = errTaken
	}
	if err != nil {
		return err
	}
	fresh, err := withoutLeaf(ctx, tx, b.records, ids)
	if err != nil {
		return err
	}
	if err := s.sequence(ctx, tx, fresh); err != nil {
		return err
	}
	if err := b.keepSums(ctx, tx, ids); err != nil {
		return err
	}
	return b.index(ctx, tx, &s.phrase)
}

// keepSums adds the batch to the sums. Providers may have reported since it was read, and cannot now.
func (b *batch) keepSums(ctx context.Context, tx *sql.Tx, ids []any) error {
	c, where := manifest.NewCounter(), " WHERE id IN ("+places(len(ids))+")"
	if err := follow(ctx, tx, c, where, ids); err != nil {
		return err
	}
	if err := addEntries(ctx, tx, c, where, ids); err != nil {
		return err
	}
	c.Merge(b.counter.Sums, 1)
	return keepSums(ctx, tx, c)
}

// withoutLeaf returns the records that have no place in the tree of hashes: all, unless the index is made again.
func withoutLeaf(ctx context.Context, tx *sql.Tx, records []settling, ids []any) ([]settling, error) {
	placed, err := sqldb.List(ctx, tx, "SELECT id FROM leaves WHERE id IN ("+places(len(ids))+")", ids, func(rows *sql.Rows, id *int64) error { return rows.Scan(id) })
	if err != nil || len(placed) == 0 {
		return records, err
	}
	return slices.DeleteFunc(slices.Clone(records), func(r settling) bool { return slices.Contains(placed, r.ID) }), nil
}

// unsettled calls do for the oldest records that are not settled, at most so many. The record, uncompressed, is valid until
// the next call.
func unsettled(ctx context.Context, tx *sql.Tx, most int, do func(r *settling, record []byte)) error {
	const query = `SELECT m.id, m.hash, c.id, m.seq, m.created_at, m.bytes, m.record FROM pending p JOIN manifests m ON m.id = p.id
		JOIN chains c ON c.thread_id = m.thread_id AND c.workspace_id = m.workspace_id ORDER BY p.id LIMIT $1`
	var u unpacker
	return sqldb.Each(ctx, tx, query, []any{most}, func(rows *sql.Rows) error {
		var r settling
		var size int
		var packed sql.RawBytes
		err := rows.Scan(&r.ID, &r.Hash, &r.Chain, &r.Seq, &r.Created, &size, &packed)
		if err == nil {
			do(&r, u.unpack(packed, size))
		}
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
