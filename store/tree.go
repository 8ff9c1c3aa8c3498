package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/grapnelhq/grapnel/internal/sqldb"
	"github.com/grapnelhq/grapnel/internal/translog"
)

// blockHashes is how many hashes one row of tree_blocks holds, in the order of [tlog.StoredHashIndex].
const blockHashes = 256

// treeHashes reads the hashes of the tree in a transaction, and holds those that are about to be written.
type treeHashes struct {
	ctx    context.Context //nolint:containedctx // tlog's readers take none
	tx     *sql.Tx
	blocks map[int64][]byte
}

func newTreeHashes(ctx context.Context, tx *sql.Tx) *treeHashes {
	return &treeHashes{ctx, tx, map[int64][]byte{}}
}

func (t *treeHashes) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	out := make([]tlog.Hash, len(indexes))
	for i, index := range indexes {
		block, err := t.block(index / blockHashes)
		if err != nil {
			return nil, err
		}
		at := int(index%blockHashes) * tlog.HashSize
		if at+tlog.HashSize > len(block) {
			return nil, &Error{Code: CodeDamaged, Message: fmt.Sprintf("the tree of hashes lacks hash %d", index), Hint: "verify the log"}
		}
		copy(out[i][:], block[at:])
	}
	return out, nil
}

func (t *treeHashes) block(n int64) ([]byte, error) {
	if block, known := t.blocks[n]; known {
		return block, nil
	}
	var block []byte
	err := t.tx.QueryRowContext(t.ctx, "SELECT hashes FROM tree_blocks WHERE block = $1", n).Scan(&block)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return nil, err
	}
	t.blocks[n] = block
	return block, nil
}

// add adds the next leaf and the hashes that it completes.
func (t *treeHashes) add(leaf int64, recordHash string) error {
	hashes, err := tlog.StoredHashesForRecordHash(leaf, translog.Leaf(recordHash), t)
	if err != nil {
		return err
	}
	first := tlog.StoredHashIndex(0, leaf)
	for i, h := range hashes {
		n, place := (first+int64(i))/blockHashes, (first+int64(i))%blockHashes
		block, err := t.block(n)
		if err != nil {
			return err
		}
		if int64(len(block)) != place*tlog.HashSize {
			return &Error{Code: CodeDamaged, Message: fmt.Sprintf("the tree of hashes does not end with hash %d", first-1), Hint: "verify the log"}
		}
		t.blocks[n] = append(block, h[:]...)
	}
	return nil
}

// sequence gives records the next leaves of the tree of hashes.
func (s *Store) sequence(ctx context.Context, tx *sql.Tx, batch []settling) error {
	if len(batch) == 0 {
		return nil
	}
	first, err := treeLeaves(ctx, tx)
	if err != nil {
		return err
	}
	hashes := newTreeHashes(ctx, tx)
	var rows strings.Builder
	args := make([]any, 0, 4*len(batch))
	for i := range batch {
		if err := hashes.add(first+int64(i), batch[i].Hash); err != nil {
			return err
		}
		n := len(args)
		fmt.Fprintf(&rows, ", ($%d, $%d, $%d, $%d)", n+1, n+2, n+3, n+4)
		args = append(args, first+int64(i), batch[i].ID, batch[i].Chain, batch[i].Seq)
	}
	// The first block may be one that was only read.
	from := tlog.StoredHashIndex(0, first) / blockHashes
	const put = "INSERT INTO tree_blocks (block, hashes) VALUES ($1, $2) ON CONFLICT (block) DO UPDATE SET hashes = excluded.hashes"
	for n, block := range hashes.blocks {
		if n < from || len(block) == 0 {
			continue
		}
		if _, err := tx.ExecContext(ctx, put, n, block); err != nil {
			return err
		}
	}
	if _, err := tx.ExecContext(ctx, "INSERT INTO leaves (leaf, id, chain_id, seq) VALUES "+strings.TrimPrefix(rows.String(), ", "), args...); err != nil { //nolint:gosec // placeholders only
		return err
	}
	_, err = tx.ExecContext(ctx, "UPDATE tree_state SET leaves = $1 WHERE id = 1", first+int64(len(batch)))
	return err
}

func treeLeaves(ctx context.Context, tx *sql.Tx) (n int64, err error) {
	err = tx.QueryRowContext(ctx, "SELECT leaves FROM tree_state WHERE id = 1").Scan(&n)
	if errors.Is(err, sql.ErrNoRows) {
		err = &Error{Code: CodeDamaged, Message: "the tree of hashes does not say how many leaves it has", Hint: "verify the log"}
	}
	return n, err
}

// Checkpoint settles all records, and signs what the log then is: how many records it has, and the hash over them. It
// refuses a log that does not continue the newest checkpoint that it keeps.
func (s *Store) Checkpoint(ctx context.Context, l *translog.Log) (translog.Checkpoint, error) {
	if err := s.Settle(ctx); err != nil {
		return translog.Checkpoint{}, err
	}
	var c translog.Checkpoint
	err := s.db.Change(ctx, "signing a checkpoint", func(ctx context.Context, tx *sql.Tx) error {
		leaves, err := treeLeaves(ctx, tx)
		if err != nil {
			return err
		}
		hashes := newTreeHashes(ctx, tx)
		last, err := lastCheckpoint(ctx, tx, 0)
		if err != nil {
			return err
		}
		if last != "" {
			if err := continues(l, last, leaves, hashes); err != nil {
				return err
			}
		}
		root, err := translog.Root(leaves, hashes)
		if err != nil {
			return err
		}
		if c, err = l.Sign(leaves, root); err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `INSERT INTO checkpoints (leaves, created_at, note) VALUES ($1, $2, $3)
			ON CONFLICT (leaves) DO UPDATE SET created_at = excluded.created_at, note = excluded.note`, leaves, s.opts.Now().UnixNano(), c.Note)
		return err
	})
	return c, err
}

// continues checks that a tree continues a checkpoint. One that another key signed is left alone.
func continues(l *translog.Log, last string, leaves int64, hashes tlog.HashReader) error {
	c, err := l.Open(last)
	if err != nil {
		return nil //nolint:nilerr // the key was changed
	}
	if c.Leaves <= leaves {
		root, err := translog.Root(c.Leaves, hashes)
		if err != nil || root == c.Root {
			return err
		}
	}
	return &Error{Code: CodeDamaged, Message: fmt.Sprintf("the log does not continue its checkpoint of %d records: it was changed since", c.Leaves), Hint: "verify the log; nothing was signed"}
}

// lastCheckpoint returns the newest checkpoint with more leaves than that, empty if there is none.
func lastCheckpoint(ctx context.Context, tx *sql.Tx, above int64) (signed string, err error) {
	err = tx.QueryRowContext(ctx, "SELECT note FROM checkpoints WHERE leaves > $1 ORDER BY leaves DESC LIMIT 1", above-1).Scan(&signed)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	return signed, err
}

// Prove returns a proof that the record with an id was in the log when a checkpoint was made (C2SP tlog-proof): without
// one, the newest that the log keeps. The id is a whole one.
func (s *Store) Prove(ctx context.Context, manifestID, signed string) (file []byte, err error) {
	err = s.db.Snapshot(ctx, "proving a record", func(tx *sql.Tx) error {
		var leaf sql.NullInt64
		const query = "SELECT (SELECT leaf FROM leaves l WHERE l.id = m.id) FROM manifests m WHERE manifest_id = $1"
		if err := tx.QueryRowContext(ctx, query, manifestID).Scan(&leaf); err != nil {
			return err
		}
		if signed == "" {
			if signed, err = lastCheckpoint(ctx, tx, 0); err != nil {
				return err
			}
		}
		if signed == "" {
			return sqldb.Failf(CodeNotFound, "make one: grapnel manifest checkpoint", "the log has no checkpoint")
		}
		c, err := translog.Read(signed)
		if err != nil {
			return &Error{Code: CodeInvalid, Message: "the checkpoint cannot be used", Err: err}
		}
		if !leaf.Valid || leaf.Int64 >= c.Leaves {
			return sqldb.Failf(CodeNotFound, "make a newer one: grapnel manifest checkpoint", "the record is newer than the checkpoint of %d records", c.Leaves)
		}
		hashes := newTreeHashes(ctx, tx)
		root, err := translog.Root(c.Leaves, hashes)
		if err == nil && root != c.Root {
			err = sqldb.Failf(CodeDamaged, "verify the log", "the log is not the one that the checkpoint was made of")
		}
		if err != nil {
			return err
		}
		file, err = translog.Prove(c, leaf.Int64, hashes)
		return err
	})
	return file, err
}

// Grow returns the proof that the log, as its newest checkpoint says it is, continues what it was with so many leaves.
func (s *Store) Grow(ctx context.Context, from int64) (g translog.Growth, err error) {
	err = s.db.Snapshot(ctx, "proving growth", func(tx *sql.Tx) error {
		signed, err := lastCheckpoint(ctx, tx, from)
		if err != nil {
			return err
		}
		if signed == "" {
			return sqldb.Failf(CodeNotFound, "make one: grapnel manifest checkpoint", "the log has no checkpoint of %d records or more", from)
		}
		c, err := translog.Read(signed)
		if err != nil {
			return &Error{Code: CodeInvalid, Message: "the checkpoint cannot be used", Err: err}
		}
		g, err = translog.Grow(from, c, newTreeHashes(ctx, tx))
		return err
	})
	return g, err
}

// leafRow is a leaf and the record that has it now; without id and hash if there is none.
type leafRow struct {
	leaf             int64
	manifestID, hash string
	// The record's chain and place in it, as the leaf has them, and how many records the chain's sign-off says are removed.
	chain, seq, first int64
}

// leavesFrom returns some leaves, from one on, in order.
func leavesFrom(ctx context.Context, tx *sql.Tx, leaf int64) ([]leafRow, error) {
	const query = `SELECT l.leaf, coalesce(m.manifest_id, ''), coalesce(m.hash, ''), l.chain_id, l.seq, coalesce(c.first_seq, 0)
		FROM leaves l LEFT JOIN manifests m ON m.id = l.id LEFT JOIN chains c ON c.id = l.chain_id
		WHERE l.leaf >= $1 ORDER BY l.leaf LIMIT 4096`
	return sqldb.List(ctx, tx, query, []any{leaf}, func(rows *sql.Rows, l *leafRow) error {
		return rows.Scan(&l.leaf, &l.manifestID, &l.hash, &l.chain, &l.seq, &l.first)
	})
}

// treeCheck computes the tree anew from its leaves and compares it with what is stored.
type treeCheck struct {
	stored *treeHashes
	next   int64       // the next stored index
	stack  []tlog.Hash // the hashes of complete subtrees, largest first
}

// add takes the next leaf, and reports whether the tree has it and all that it completes. That of a record which
// retention took is what the tree says.
func (c *treeCheck) add(l leafRow) (good bool, err error) {
	leaf, n := translog.Leaf(l.hash), l.leaf
	good = true
	for level := 0; ; level++ {
		if len(c.stored.blocks) > 2 {
			clear(c.stored.blocks)
		}
		got, err := c.stored.ReadHashes([]int64{c.next})
		if err != nil {
			return false, err
		}
		if l.hash == "" && level == 0 {
			leaf = got[0]
		}
		good = good && got[0] == leaf
		c.next++
		if n>>level&1 == 0 {
			c.stack = append(c.stack, leaf)
			return good, nil
		}
		last := len(c.stack) - 1
		leaf = tlog.NodeHash(c.stack[last], leaf)
		c.stack = slices.Delete(c.stack, last, last+1)
	}
}
