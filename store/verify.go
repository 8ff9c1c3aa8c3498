package store

import (
	"cmp"
	"context"
	"database/sql"
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/internal/digest"
	"github.com/grapnelhq/grapnel/internal/sqldb"
	"github.com/grapnelhq/grapnel/manifest"
)

// Verify checks the selected manifests, whole threads at a time, in one state of the database: schema, chain, index,
// sign-offs, fingerprints and kept texts. Missing keys are the store's. It ignores the limit.
//
// A bad log is a verdict, not an error. [manifest.ErrKeyNeeded] means that the verdict is
// incomplete for want of a key.
func (s *Store) Verify(ctx context.Context, f Filter, o manifest.VerifyOptions) (manifest.Verdict, error) {
	if len(o.Key) == 0 {
		o.Key = s.opts.Key
	}
	if len(o.FingerprintKey) == 0 {
		o.FingerprintKey = s.opts.FingerprintKey
	}
	var verdict manifest.Verdict
	err := s.db.Scan(ctx, "verifying", func(tx *sql.Tx) error {
		if !o.ChainOnly && o.Differs == nil {
			differing, err := differingTexts(ctx, tx, o.FingerprintKey)
			if err != nil {
				return err
			}
			if len(differing) > 0 {
				o.Differs = func(fingerprint string) bool { return differing[fingerprint] }
			}
		}
		v := manifest.NewVerifier(o)
		if err := verifyThreads(ctx, tx, f, v); err != nil {
			return err
		}
		var err error
		verdict, err = v.Verdict()
		return err
	})
	return verdict, err
}

type thread struct {
	workspace, id string
	chain         *manifest.Chain
}

func verifyThreads(ctx context.Context, tx *sql.Tx, f Filter, v *manifest.Verifier) error {
	threads, err := threadsOf(ctx, tx, f)
	if err != nil {
		return err
	}
	for _, t := range threads {
		v.Begin(t.workspace, t.id, t.chain)
		const tail = " WHERE workspace_id = $1 AND thread_id = $2 ORDER BY seq, id"
		err := eachRecord(ctx, tx, tail, []any{t.workspace, t.id}, func(r manifest.Record) error {
			v.Add(r)
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// threadsOf lists the threads with manifests or a sign-off, in byte order of their ids.
func threadsOf(ctx context.Context, tx *sql.Tx, f Filter) ([]thread, error) {
	where, args := f.where()
	list, err := sqldb.List(ctx, tx, "SELECT "+chainColumns+" FROM chains"+where, args, func(rows *sql.Rows, t *thread) error {
		c, err := scanChain(rows.Scan)
		*t = thread{c.WorkspaceID, c.ThreadID, &c}
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

// differingTexts returns the fingerprints whose kept text was changed. Without its key a keyed
// fingerprint cannot be checked; the text's hash still can.
func differingTexts(ctx context.Context, tx *sql.Tx, key []byte) (map[string]bool, error) {
	differing := map[string]bool{}
	err := sqldb.Each(ctx, tx, "SELECT fingerprint, hash, text FROM texts", nil, func(rows *sql.Rows) error {
		var fingerprint, hash, text string
		if err := rows.Scan(&fingerprint, &hash, &text); err != nil {
			return err
		}
		if hash != digest.SHA256([]byte(text)) || !fits(fingerprint, text, key) {
			differing[fingerprint] = true
		}
		return nil
	})
	return differing, err
}

// fits reports whether a text has a fingerprint, or that cannot be checked.
func fits(fingerprint, text string, key []byte) bool {
	if !strings.HasPrefix(fingerprint, keyedPrefix) {
		key = nil
	} else if len(key) == 0 {
		return true
	}
	return manifest.Fingerprint(text, key) == fingerprint
}
