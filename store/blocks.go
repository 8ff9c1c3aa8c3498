package store

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"math"
	"math/bits"
	"slices"

	"github.com/grapnelhq/grapnel/internal/sqldb"
)

// blockIDs is how many ids one row of mark_blocks is about: those from its number times blockIDs on.
const blockIDs = 1024

// block says of some ids which are of indexed records that are still there, and from when those are.
type block struct {
	// first and last bound created_at, in nanoseconds since 1970.
	first, last int64
	// kept has a bit for each id, and chains the id of its chain, 8 bytes each.
	kept, chains []byte
}

func newBlock() *block {
	return &block{kept: make([]byte, blockIDs/8), chains: make([]byte, 8*blockIDs)}
}

func (b *block) has(id int64) bool {
	at := id % blockIDs
	return b != nil && b.kept[at/8]&(1<<(at%8)) != 0
}

func (b *block) drop(id int64) {
	at := id % blockIDs
	b.kept[at/8] &^= 1 << (at % 8)
}

func (b *block) add(r *settling) {
	if b.empty() {
		b.first, b.last = r.Created, r.Created
	}
	b.first, b.last = min(b.first, r.Created), max(b.last, r.Created)
	at := r.ID % blockIDs
	b.kept[at/8] |= 1 << (at % 8)
	binary.BigEndian.PutUint64(b.chains[8*at:], uint64(r.Chain)) //nolint:gosec // ids are positive
}

func (b *block) empty() bool {
	return !slices.ContainsFunc(b.kept, func(c byte) bool { return c != 0 })
}

// check refuses what was not written by this program.
func (b *block) check(n int64) error {
	if n < 0 || n > math.MaxInt64/blockIDs || len(b.kept) != blockIDs/8 {
		return errIndexDamaged
	}
	return nil
}

var errIndexDamaged = sqldb.Failf(CodeDamaged, "grapnel manifest prune makes it again", "the index of the log is damaged")

// byBlock calls do for the ids of each block; they ascend.
func byBlock(ids []int64, do func(n int64, ids []int64) error) error {
	for len(ids) > 0 {
		n, end := ids[0]/blockIDs, 1
		for end < len(ids) && ids[end]/blockIDs == n {
			end++
		}
		if err := do(n, ids[:end]); err != nil {
			return err
		}
		ids = ids[end:]
	}
	return nil
}

// idSet is a set of ids that lie close together: a bit each.
type idSet map[uint64]uint64

func (s idSet) add(id uint64) { s[id/64] |= 1 << (id % 64) }

func (s idSet) len() (n int) {
	for _, set := range s {
		n += bits.OnesCount64(set)
	}
	return n
}

// blocks are those that were read, by their numbers.
type blocks map[int64]*block

func (b blocks) has(id int64) bool { return b[id/blockIDs].has(id) }

// count returns how many ids are kept of those from first to last.
func (b blocks) count(first, last int64) (n int64) {
	for number, block := range b {
		for i, c := range block.kept {
			from := number*blockIDs + 8*int64(i)
			for c := uint(c); c != 0; c &= c - 1 {
				if id := from + int64(bits.TrailingZeros(c)); id >= first && id <= last {
					n++
				}
			}
		}
	}
	return n
}

// ids returns all ids that are kept, ascending.
func (b blocks) ids() []int64 {
	numbers := make([]int64, 0, len(b))
	for n := range b {
		numbers = append(numbers, n)
	}
	slices.Sort(numbers)
	var ids []int64
	for _, n := range numbers {
		for i, c := range b[n].kept {
			for c := uint(c); c != 0; c &= c - 1 {
				ids = append(ids, n*blockIDs+8*int64(i)+int64(bits.TrailingZeros(c)))
			}
		}
	}
	return ids
}

// readBlocks reads the blocks that a condition is true of, without their chains.
func readBlocks(ctx context.Context, tx *sql.Tx, condition string, args ...any) (blocks, error) {
	list := blocks{}
	err := sqldb.Each(ctx, tx, "SELECT block, first_at, last_at, kept FROM mark_blocks WHERE "+condition, args, func(rows *sql.Rows) error {
		var n int64
		var b block
		if err := rows.Scan(&n, &b.first, &b.last, &b.kept); err != nil {
			return err
		}
		list[n] = &b
		return b.check(n)
	})
	return list, err
}

// addToBlocks notes records that are being indexed. Only one transaction does so at a time.
func addToBlocks(ctx context.Context, tx *sql.Tx, batch []settling) error {
	at := 0
	ids := make([]int64, len(batch))
	for i := range batch {
		ids[i] = batch[i].ID
	}
	return byBlock(ids, func(n int64, ids []int64) error {
		b, err := lockBlock(ctx, tx, n)
		if errors.Is(err, sql.ErrNoRows) {
			b, err = newBlock(), nil
		}
		if err != nil {
			return err
		}
		for range ids {
			b.add(&batch[at])
			at++
		}
		const put = `INSERT INTO mark_blocks (block, first_at, last_at, kept) VALUES ($1, $2, $3, $4)
			ON CONFLICT (block) DO UPDATE SET first_at = excluded.first_at, last_at = excluded.last_at, kept = excluded.kept`
		if _, err = tx.ExecContext(ctx, put, n, b.first, b.last, b.kept); err != nil {
			return err
		}
		const putChains = "INSERT INTO mark_chains (block, chains) VALUES ($1, $2) ON CONFLICT (block) DO UPDATE SET chains = excluded.chains"
		_, err = tx.ExecContext(ctx, putChains, n, b.chains)
		return err
	})
}

// lockBlock reads a block, and keeps it from others until the transaction ends.
func lockBlock(ctx context.Context, tx *sql.Tx, n int64) (*block, error) {
	if _, err := tx.ExecContext(ctx, "UPDATE mark_blocks SET last_at = last_at WHERE block = $1", n); err != nil {
		return nil, err
	}
	const query = "SELECT first_at, last_at, kept, coalesce(chains, '') FROM mark_blocks b LEFT JOIN mark_chains c ON c.block = b.block WHERE b.block = $1"
	var b block
	if err := tx.QueryRowContext(ctx, query, n).Scan(&b.first, &b.last, &b.kept, &b.chains); err != nil {
		return nil, err
	}
	if len(b.chains) != 8*blockIDs {
		return nil, errIndexDamaged
	}
	return &b, b.check(n)
}

// dropFromBlocks notes that records are gone, which need not be indexed yet. The ids ascend.
func dropFromBlocks(ctx context.Context, tx *sql.Tx, ids []int64) error {
	// Who indexes them does this first, too, and so has finished or finds nothing.
	if _, err := tx.ExecContext(ctx, "DELETE FROM pending WHERE id IN ("+places(len(ids))+")", anys(ids)...); err != nil { //nolint:gosec // placeholders only
		return err
	}
	return byBlock(ids, func(n int64, ids []int64) error {
		b, err := lockBlock(ctx, tx, n)
		if err != nil {
			if errors.Is(err, sql.ErrNoRows) {
				err = nil
			}
			return err
		}
		for _, id := range ids {
			b.drop(id)
		}
		if b.empty() {
			_, err = tx.ExecContext(ctx, "DELETE FROM mark_blocks WHERE block = $1", n)
			if err == nil {
				_, err = tx.ExecContext(ctx, "DELETE FROM mark_chains WHERE block = $1", n)
			}
			return err
		}
		_, err = tx.ExecContext(ctx, "UPDATE mark_blocks SET kept = $1 WHERE block = $2", b.kept, n)
		return err
	})
}
