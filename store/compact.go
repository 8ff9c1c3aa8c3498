package store

import (
	"context"
	"database/sql"
	"errors"
	"math"
	"math/bits"
	"slices"
	"time"

	"github.com/grapnelhq/grapnel/internal/sqldb"
)

// segment is one part of the index: the marks of some records, in 1<<Bits rows of marks. A batch that is settled becomes a
// segment, and eight of about one size are merged into one that is eight times as large, as in a log-structured merge
// tree: a million records are in some 30 segments, and a mark is written once for each of five sizes.
type segment struct {
	ID int64
	// Target is the segment that its marks are moving to; 0 is none.
	Target int64
	Bits   int
	// Records is how many records it was made of, First and Last bound their ids, and Bytes is how long its marks were.
	Records, First, Last, Bytes int64
}

const (
	mergedSegments = 8
	// maxSegment is the last one whose rows of marks have numbers.
	maxSegment = math.MaxInt64>>maxSlotBits - 1
)

// size is the class of size: segments of one class are merged.
func (g *segment) size() int { return bits.Len64(uint64(g.Records)) / 3 } //nolint:gosec // a count

// row is the id in marks of one of its slots.
func (g *segment) row(slot int64) int64 { return g.ID<<maxSlotBits + slot }

// create gives it the next number.
func (g *segment) create(ctx context.Context, tx *sql.Tx) error {
	const put = `INSERT INTO mark_segments (segment, target, bits, records, first_id, last_id, bytes)
		SELECT coalesce(max(segment), 0) + 1, 0, $1, $2, $3, $4, $5 FROM mark_segments HAVING coalesce(max(segment), 0) < $6 RETURNING segment`
	err := tx.QueryRowContext(ctx, put, g.Bits, g.Records, g.First, g.Last, g.Bytes, maxSegment).Scan(&g.ID)
	if errors.Is(err, sql.ErrNoRows) {
		err = errIndexDamaged
	}
	return err
}

// check refuses what was not written by this program.
func (g *segment) check() error {
	if g.ID < 1 || g.ID > maxSegment || g.Bits < 0 || g.Bits > maxSlotBits || g.Records < 0 || g.Bytes < 0 {
		return errIndexDamaged
	}
	return nil
}

func segments(ctx context.Context, tx *sql.Tx) ([]segment, error) {
	const query = "SELECT segment, target, bits, records, first_id, last_id, bytes FROM mark_segments ORDER BY first_id, segment"
	return sqldb.List(ctx, tx, query, nil, func(rows *sql.Rows, g *segment) error {
		err := rows.Scan(&g.ID, &g.Target, &g.Bits, &g.Records, &g.First, &g.Last, &g.Bytes)
		if err == nil {
			err = g.check()
		}
		return err
	})
}

// slotWriter writes marks of a segment, which come in ascending order.
type slotWriter struct {
	segment *segment
	slot    int64
	entries []byte
}

func (w *slotWriter) add(ctx context.Context, tx *sql.Tx, k mark, ids []int64) error {
	if slot := k.slot(w.segment.Bits); slot != w.slot {
		if err := w.flush(ctx, tx); err != nil {
			return err
		}
		w.slot = slot
	}
	w.entries = appendEntry(w.entries, k, ids)
	return nil
}

func (w *slotWriter) flush(ctx context.Context, tx *sql.Tx) error {
	if len(w.entries) == 0 {
		return nil
	}
	const put = "INSERT INTO marks (id, entries) VALUES ($1, $2) ON CONFLICT (id) DO NOTHING"
	n, err := affected(tx.ExecContext(ctx, put, w.segment.row(w.slot), w.entries))
	if err == nil && n == 0 {
		err = errIndexDamaged
	}
	w.entries = w.entries[:0]
	return err
}

// merging moves the marks of sources to a target, a range of marks at a time: at any time each mark is in one of them, so
// that searches need not know, and whoever comes next goes on.
type merging struct {
	target  segment
	sources []segment
	// bits is how many bits of a mark name a range: in no segment does a slot cover more than one.
	bits int
}

// compactTime is how long one transaction moves marks.
const compactTime = 5 * time.Millisecond

// compact merges segments until a time, at least one range of marks, and reports whether there was something to do. Thin is
// whether to write those again of whose records more than half are gone.
func compact(ctx context.Context, tx *sql.Tx, thin bool, until time.Time) (bool, error) {
	all, err := segments(ctx, tx)
	if err != nil {
		return false, err
	}
	m, err := running(all)
	if err != nil {
		return false, err
	}
	if m == nil {
		if m, err = plan(ctx, tx, all, thin); err != nil || m == nil {
			return false, err
		}
		if err := m.begin(ctx, tx); err != nil {
			return false, err
		}
	}
	kept, err := readBlocks(ctx, tx, "block BETWEEN $1 AND $2", m.target.First/blockIDs, m.target.Last/blockIDs)
	if err != nil {
		return false, err
	}
	for {
		more, err := m.step(ctx, tx, kept)
		if err == nil && !more {
			err = m.end(ctx, tx)
		}
		if err != nil || !more || time.Now().After(until) {
			return true, err
		}
	}
}

// running returns the merge that was begun, if any.
func running(all []segment) (*merging, error) {
	at := slices.IndexFunc(all, func(g segment) bool { return g.Target != 0 })
	if at < 0 {
		return nil, nil //nolint:nilnil // no merge is running
	}
	m := &merging{}
	for i := range all {
		switch {
		case all[i].Target != 0:
			m.sources = append(m.sources, all[i])
		case all[i].ID == all[at].Target:
			m.target = all[i]
		}
	}
	if m.target.ID == 0 {
		return nil, errIndexDamaged
	}
	m.measure()
	return m, nil
}

// plan chooses what to merge: segments of one size, the smallest first; or one of which more than half is gone.
func plan(ctx context.Context, tx *sql.Tx, all []segment, thin bool) (*merging, error) {
	sizes := map[int][]segment{}
	for i := range all {
		sizes[all[i].size()] = append(sizes[all[i].size()], all[i])
	}
	for size := range 64/3 + 1 {
		if len(sizes[size]) >= mergedSegments {
			return newMerging(sizes[size][:mergedSegments]), nil
		}
	}
	if !thin {
		return nil, nil //nolint:nilnil // nothing is to be done
	}
	kept, err := readBlocks(ctx, tx, "TRUE")
	if err != nil {
		return nil, err
	}
	for _, g := range all {
		if n := kept.count(g.First, g.Last); 2*n < g.Records {
			g.Records, g.Bytes = n, g.Bytes/g.Records*n
			return newMerging([]segment{g}), nil
		}
	}
	return nil, nil //nolint:nilnil // nothing is to be done
}

func newMerging(sources []segment) *merging {
	m := &merging{sources: sources, target: segment{First: sources[0].First}}
	t := &m.target
	for i := range sources {
		g := &sources[i]
		t.Records, t.Bytes = t.Records+g.Records, t.Bytes+g.Bytes
		t.First, t.Last = min(t.First, g.First), max(t.Last, g.Last)
	}
	t.Bits = slotBits(t.Bytes)
	m.measure()
	return m
}

func (m *merging) measure() {
	m.bits = m.target.Bits
	for i := range m.sources {
		m.bits = min(m.bits, m.sources[i].Bits)
	}
}

func (m *merging) begin(ctx context.Context, tx *sql.Tx) error {
	if err := m.target.create(ctx, tx); err != nil {
		return err
	}
	for i := range m.sources {
		if _, err := tx.ExecContext(ctx, "UPDATE mark_segments SET target = $1 WHERE segment = $2", m.target.ID, m.sources[i].ID); err != nil {
			return err
		}
	}
	return nil
}

// next returns the lowest range of marks that the sources still have; -1 is none.
func (m *merging) next(ctx context.Context, tx *sql.Tx) (int64, error) {
	next := int64(-1)
	for i := range m.sources {
		g := &m.sources[i]
		var row sql.NullInt64
		err := tx.QueryRowContext(ctx, "SELECT min(id) FROM marks WHERE id >= $1 AND id < $2", g.row(0), g.row(1<<maxSlotBits)).Scan(&row)
		if err != nil {
			return 0, err
		}
		if n := (row.Int64 - g.row(0)) >> (g.Bits - m.bits); row.Valid && (next < 0 || n < next) {
			next = n
		}
	}
	return next, nil
}

// step moves one range of marks, and reports whether there was one.
func (m *merging) step(ctx context.Context, tx *sql.Tx, kept blocks) (bool, error) {
	at, err := m.next(ctx, tx)
	if err != nil || at < 0 {
		return false, err
	}
	var slots [][]byte
	for i := range m.sources {
		g := &m.sources[i]
		bounds := []any{g.row(at << (g.Bits - m.bits)), g.row((at + 1) << (g.Bits - m.bits))}
		err := sqldb.Each(ctx, tx, "SELECT entries FROM marks WHERE id >= $1 AND id < $2", bounds, func(rows *sql.Rows) error {
			var slot []byte
			err := rows.Scan(&slot)
			slots = append(slots, slot)
			return err
		})
		if err != nil {
			return false, err
		}
		if _, err := tx.ExecContext(ctx, "DELETE FROM marks WHERE id >= $1 AND id < $2", bounds...); err != nil {
			return false, err
		}
	}
	w := slotWriter{segment: &m.target}
	err = mergeSlots(slots, kept.has, func(k mark, ids []int64) error { return w.add(ctx, tx, k, ids) })
	if err != nil {
		return false, err
	}
	return true, w.flush(ctx, tx)
}

// end removes the sources, and a target without records.
func (m *merging) end(ctx context.Context, tx *sql.Tx) error {
	_, err := tx.ExecContext(ctx, "DELETE FROM mark_segments WHERE target = $1 OR segment = $1 AND records = 0", m.target.ID)
	return err
}

// pruneMarks removes the marks of records that are gone, from each segment that has more of those than others.
func (s *Store) pruneMarks(ctx context.Context) error {
	return s.db.Pieces(ctx, func() (more bool, err error) {
		err = s.db.Change(ctx, "retention of the index", func(ctx context.Context, tx *sql.Tx) error {
			if _, err := tx.ExecContext(ctx, lockTree); err != nil {
				return err
			}
			more, err = compact(ctx, tx, true, time.Now().Add(compactTime))
			return err
		})
		return more, err
	})
}
