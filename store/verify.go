package store

import (
	"cmp"
	"context"
	"database/sql"
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/store/sqldb"
)

// Verify checks the manifests that the filter takes, whole threads at a time, in
// one state of the database: schema, chain, index, sign-offs, fingerprints, and
// texts that are kept. Keys that the options lack are the store's. The limit does
// not count here.
//
// A log that is bad is no error: the verdict says so. [manifest.ErrKeyNeeded] says
// that it could not be told for want of a key; the verdict is then incomplete.
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

// thread is one workspace and thread, with its sign-off if there is one.
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

// threadsOf lists the threads that have manifests or a sign-off, in order of
// their ids, whatever the collation of the database.
func threadsOf(ctx context.Context, tx *sql.Tx, f Filter) ([]thread, error) {
	var list []thread
	where, args := f.where()
	err := sqldb.Each(ctx, tx, "SELECT "+chainColumns+" FROM chains"+where, args, func(rows *sql.Rows) error {
		c, err := scanChain(rows.Scan)
		list = append(list, thread{c.WorkspaceID, c.ThreadID, &c})
		return err
	})
	if err != nil {
		return nil, err
	}
	// Without a sign-off there is no row to begin with.
	orphans := `SELECT DISTINCT workspace_id, thread_id FROM manifests m WHERE NOT EXISTS
		(SELECT 1 FROM chains c WHERE c.thread_id = m.thread_id AND c.workspace_id = m.workspace_id)`
	if where != "" {
		orphans += " AND" + strings.TrimPrefix(where, " WHERE")
	}
	err = sqldb.Each(ctx, tx, orphans, args, func(rows *sql.Rows) error {
		var t thread
		err := rows.Scan(&t.workspace, &t.id)
		list = append(list, t)
		return err
	})
	slices.SortFunc(list, func(a, b thread) int {
		return cmp.Or(cmp.Compare(a.workspace, b.workspace), cmp.Compare(a.id, b.id))
	})
	return list, err
}

// differingTexts returns the fingerprints under which a text is kept that is not
// the one that was kept. A keyed fingerprint cannot be checked without its key;
// the text's hash still can.
func differingTexts(ctx context.Context, tx *sql.Tx, key []byte) (map[string]bool, error) {
	differing := map[string]bool{}
	err := sqldb.Each(ctx, tx, "SELECT fingerprint, hash, text FROM texts", nil, func(rows *sql.Rows) error {
		var fingerprint, hash, text string
		if err := rows.Scan(&fingerprint, &hash, &text); err != nil {
			return err
		}
		if hash != textHash(text) || !fits(fingerprint, text, key) {
			differing[fingerprint] = true
		}
		return nil
	})
	return differing, err
}

// fits reports whether a text has a fingerprint, or it cannot be told.
func fits(fingerprint, text string, key []byte) bool {
	if !strings.HasPrefix(fingerprint, keyedPrefix) {
		return manifest.Fingerprint(text, nil) == fingerprint
	}
	return len(key) == 0 || manifest.Fingerprint(text, key) == fingerprint
}
