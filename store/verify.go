package store

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/grapnelhq/grapnel/internal/digest"
	"github.com/grapnelhq/grapnel/internal/sqldb"
	"github.com/grapnelhq/grapnel/internal/translog"
	"github.com/grapnelhq/grapnel/manifest"
)

// Verify checks the selected manifests, whole threads at a time, in one state of the database: schema, chain, index,
// sign-offs, hashes and kept texts; without a filter, also the tree of hashes over all of them. Missing keys are
// the store's. It ignores the limit.
//
// A bad log is a verdict, not an error. [manifest.ErrKeyNeeded] means that the verdict is
// incomplete for want of a key.
func (s *Store) Verify(ctx context.Context, f Filter, o manifest.VerifyOptions) (manifest.Verdict, error) {
	return s.VerifySince(ctx, f, o, Since{})
}

// Since is what a log was at some time. The zero value is nothing.
type Since struct {
	// Checkpoint is what the log must continue; nil if nothing is known.
	Checkpoint *translog.Checkpoint
	// OnlyNewer reads only the records behind the checkpoint. Of those in front of it, whose content was verified before,
	// only the hashes are compared with the tree.
	OnlyNewer bool
}

// VerifySince is [Store.Verify] of a log that must continue a checkpoint.
func (s *Store) VerifySince(ctx context.Context, f Filter, o manifest.VerifyOptions, since Since) (manifest.Verdict, error) {
	if len(o.Key) == 0 {
		o.Key = s.opts.Key
	}
	if len(o.FingerprintKey) == 0 {
		o.FingerprintKey = s.opts.FingerprintKey
	}
	f.Limit = 0
	var verdict manifest.Verdict
	err := s.db.Scan(ctx, "verifying", func(tx *sql.Tx) error {
		r := verification{ctx: ctx, store: s, tx: tx, opts: &o, since: since, verifier: manifest.NewVerifier(o)}
		proven, err := r.run(f)
		if err != nil {
			return err
		}
		verdict, err = r.verifier.Verdict()
		verdict.Anchored = verdict.Anchored || proven && verdict.OK && verdict.Checked > 0
		return err
	})
	return verdict, err
}

// verification is one run of Verify.
type verification struct {
	ctx      context.Context //nolint:containedctx // of one call
	store    *Store
	tx       *sql.Tx
	opts     *manifest.VerifyOptions
	since    Since
	verifier *manifest.Verifier
	// skipped is the id of the last record that is not read.
	skipped int64
}

// run reports whether the checkpoint proves all records that there are. Of a database that lacks something it reads nothing.
func (r *verification) run(f Filter) (proven bool, err error) {
	complete, err := r.schema()
	if err != nil || !complete {
		return false, err
	}
	if err := r.skipTo(); err != nil {
		return false, err
	}
	if err := r.threads(f); err != nil || f != (Filter{}) {
		return false, err
	}
	if proven, err = r.tree(); err != nil {
		return false, err
	}
	return proven, r.aside()
}

func (r *verification) skipTo() error {
	if r.since.Checkpoint == nil || !r.since.OnlyNewer {
		return nil
	}
	// Leaves need not be in the order of the ids, and whoever forges them can give an old one any id: what counts is where
	// the first newer record is.
	const query = `SELECT coalesce(min(id) - 1, 9223372036854775807)
		FROM (SELECT id FROM leaves WHERE leaf >= $1 UNION ALL SELECT id FROM pending) newer`
	return r.tx.QueryRowContext(r.ctx, query, r.since.Checkpoint.Leaves).Scan(&r.skipped)
}

type thread struct {
	workspace, id string
	chainID       int64
	chain         *manifest.Chain
}

func (r *verification) threads(f Filter) error {
	threads, err := threadsOf(r.ctx, r.tx, f)
	if err != nil {
		return err
	}
	in := inspect(r.verifier)
	defer in.stop()
	for i := range threads {
		if err := r.thread(in, &threads[i]); err != nil {
			return err
		}
	}
	in.finishAll()
	return nil
}

func (r *verification) thread(in *inspection, t *thread) error {
	var kept map[string]bool
	if !r.opts.ChainOnly {
		var err error
		if kept, err = keptTexts(r.ctx, r.tx, t.chainID, r.opts.FingerprintKey); err != nil {
			return err
		}
	}
	in.then(func() { r.verifier.Begin(t.workspace, t.id, t.chain, kept) })
	if r.skipped > 0 {
		if err := r.skip(in, t); err != nil {
			return err
		}
	}
	const tail = " WHERE workspace_id = $1 AND thread_id = $2 AND +id > $3 ORDER BY seq, id"
	return eachPacked(r.ctx, r.tx, tail, []any{t.workspace, t.id, r.skipped}, func(rec *packedRecord) error {
		in.add(rec)
		return nil
	})
}

func (r *verification) skip(in *inspection, t *thread) error {
	const query = `SELECT seq, hash FROM manifests WHERE workspace_id = $1 AND thread_id = $2 AND +id <= $3 ORDER BY seq DESC LIMIT 1`
	return sqldb.Each(r.ctx, r.tx, query, []any{t.workspace, t.id, r.skipped}, func(rows *sql.Rows) error {
		var seq int64
		var hash string
		if err := rows.Scan(&seq, &hash); err != nil {
			return err
		}
		in.then(func() { r.verifier.Skip(unsigned(seq), hash) })
		return nil
	})
}

// threadsOf lists the threads with manifests or a sign-off, in byte order of their ids.
func threadsOf(ctx context.Context, tx *sql.Tx, f Filter) ([]thread, error) {
	where, args := f.where()
	list, err := sqldb.List(ctx, tx, "SELECT id, "+chainColumns+" FROM chains"+where, args, func(rows *sql.Rows, t *thread) error {
		c, err := scanChain(func(to ...any) error { return rows.Scan(append([]any{&t.chainID}, to...)...) })
		t.workspace, t.id, t.chain = c.WorkspaceID, c.ThreadID, &c
		return err
	})
	if err != nil {
		return nil, err
	}
	// Manifests without a sign-off.
	orphans := `SELECT DISTINCT workspace_id, thread_id FROM manifests m WHERE NOT EXISTS
		(SELECT 1 FROM chains c WHERE c.thread_id = m.thread_id AND c.workspace_id = m.workspace_id)`
	if where != "" {
		orphans += " AND" + strings.TrimPrefix(where, " WHERE")
	}
	unsigned, err := sqldb.List(ctx, tx, orphans, args, func(rows *sql.Rows, t *thread) error { return rows.Scan(&t.workspace, &t.id) })
	list = append(list, unsigned...)
	slices.SortFunc(list, func(a, b thread) int {
		return cmp.Or(cmp.Compare(a.workspace, b.workspace), cmp.Compare(a.id, b.id))
	})
	return list, err
}

// keptTexts returns the hashes of a thread's texts, and whether each text is as it was. Without its key a keyed
// hash cannot be checked; the text's SHA-256 still can.
func keptTexts(ctx context.Context, tx *sql.Tx, chain int64, key []byte) (map[string]bool, error) {
	const query = "SELECT hash, sha256, text FROM texts WHERE id IN (SELECT text_id FROM text_uses WHERE chain_id = $1)"
	whole := map[string]bool{}
	err := sqldb.Each(ctx, tx, query, []any{chain}, func(rows *sql.Rows) error {
		var hash, sum string
		var text sql.RawBytes
		if err := rows.Scan(&hash, &sum, &text); err != nil {
			return err
		}
		before, known := whole[hash] // two texts may be kept under one
		whole[hash] = (before || !known) && sum == digest.SHA256(text) && fits(hash, string(text), key)
		return nil
	})
	return whole, err
}

// fits reports whether a text has a hash, or that cannot be checked.
func fits(hash, text string, key []byte) bool {
	if !strings.HasPrefix(hash, keyedPrefix) {
		key = nil
	} else if len(key) == 0 {
		return true
	}
	return manifest.Hash(text, key) == hash
}

// tree compares the tree of hashes with the records, and with the checkpoint. It reports whether the checkpoint proves
// all records that there are.
func (r *verification) tree() (proven bool, err error) {
	var next int64
	leaves, err := treeLeaves(r.ctx, r.tx)
	if err == nil {
		next, err = r.leaves()
	}
	switch {
	case HasCode(err, CodeDamaged):
		r.reportf(manifest.BadTree, "", "%v", err)
		return false, nil
	case err != nil:
		return false, err
	case next != leaves:
		r.reportf(manifest.BadTree, "", "it has %d leaves, and should have %d", next, leaves)
	}
	var blocks, bytes int64
	err = r.tx.QueryRowContext(r.ctx, "SELECT count(*), coalesce(sum(octet_length(hashes)), 0) FROM tree_blocks").Scan(&blocks, &bytes)
	if n := tlog.StoredHashCount(leaves); err == nil && (bytes != n*tlog.HashSize || blocks != (n+blockHashes-1)/blockHashes) {
		r.reportf(manifest.BadTree, "", "it has %d bytes of hashes in %d rows, and should have those of %d hashes", bytes, blocks, n)
	}
	if err == nil {
		err = r.strangers()
	}
	if err != nil {
		return false, err
	}
	return r.checkpoints(leaves)
}

// leaves compares the leaves with the records, and all hashes with those of the leaves, up to the first gap. It returns
// how many there are.
func (r *verification) leaves() (next int64, err error) {
	check := treeCheck{stored: newTreeHashes(r.ctx, r.tx)}
	removed := map[int64]int64{} // by chain
	for {
		rows, err := leavesFrom(r.ctx, r.tx, next)
		if err != nil || len(rows) == 0 {
			return next, err
		}
		for _, l := range rows {
			if l.leaf != next {
				return next, nil
			}
			next++
			good, err := check.add(l)
			if err != nil {
				return next, err
			}
			if l.hash == "" {
				removed[l.chain]++
			}
			switch {
			case l.hash == "" && (l.seq >= l.first || removed[l.chain] > l.first):
				r.reportf(manifest.BadTree, "", "the record of leaf %d is gone, and its thread's sign-off does not account for that", l.leaf)
			case !good:
				r.reportf(manifest.BadTree, l.manifestID, "leaf %d of the tree is another record: records were put into another order, or one was replaced", l.leaf)
			}
		}
	}
}

func (r *verification) reportf(reason manifest.BadReason, manifestID, format string, args ...any) {
	r.verifier.Report(manifest.Problem{Bad: manifest.Bad{ManifestID: manifestID, Reason: reason}, Detail: fmt.Sprintf(format, args...)})
}

// strangers reports records that are not in the tree, and do not wait for a place in it, and places that wait for no record.
func (r *verification) strangers() error {
	const query = `SELECT manifest_id FROM (SELECT id, manifest_id FROM manifests m WHERE NOT EXISTS (SELECT 1 FROM leaves l WHERE l.id = m.id)
		AND NOT EXISTS (SELECT 1 FROM pending p WHERE p.id = m.id)
		UNION ALL SELECT id, '' FROM pending p WHERE NOT EXISTS (SELECT 1 FROM manifests m WHERE m.id = p.id)) strangers ORDER BY id LIMIT 100`
	return sqldb.Each(r.ctx, r.tx, query, nil, func(rows *sql.Rows) error {
		var id string
		err := rows.Scan(&id)
		r.reportf(manifest.BadTree, id, "it is not in the tree of hashes, or what waits for a place in it is not a record")
		return err
	})
}

// checkpoints compares the tree with the checkpoints that are kept, and with the one that is given, which is one of them.
func (r *verification) checkpoints(leaves int64) (proven bool, err error) {
	kept, err := sqldb.List(r.ctx, r.tx, "SELECT leaves, note FROM checkpoints ORDER BY leaves", nil, func(rows *sql.Rows, c *translog.Checkpoint) error {
		return rows.Scan(&c.Leaves, &c.Note)
	})
	if err != nil {
		return false, err
	}
	given, known := r.since.Checkpoint, false
	for i := range kept {
		c, err := translog.Read(kept[i].Note)
		if err != nil || c.Leaves != kept[i].Leaves {
			r.reportf(manifest.BadTree, "", "the checkpoint of %d records that the log keeps was changed", kept[i].Leaves)
		} else if _, err := r.signed(&c, leaves); err != nil {
			return false, err
		}
		known = known || given != nil && kept[i].Leaves == given.Leaves
	}
	if given == nil {
		return false, nil
	}
	if !known {
		r.reportf(manifest.BadTree, "", "the log does not keep the checkpoint of %d records any more", given.Leaves)
	}
	if proven, err = r.signed(given, leaves); err != nil || !proven {
		return false, err
	}
	var pending int
	err = r.tx.QueryRowContext(r.ctx, "SELECT count(*) FROM pending").Scan(&pending)
	return given.Leaves == leaves && pending == 0, err
}

// signed reports whether the tree continues a checkpoint.
func (r *verification) signed(c *translog.Checkpoint, leaves int64) (bool, error) {
	if c.Leaves > leaves {
		r.reportf(manifest.BadTree, "", "the checkpoint is of %d records, and the tree has %d", c.Leaves, leaves)
		return false, nil
	}
	root, err := translog.Root(c.Leaves, newTreeHashes(r.ctx, r.tx))
	if err == nil && root != c.Root {
		r.reportf(manifest.BadTree, "", "the first %d records are not those that the checkpoint was made of", c.Leaves)
	}
	return root == c.Root, err
}
