package storetest

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"testing"

	"github.com/grapnelhq/grapnel/manifest"
)

// fillRows is how many manifests one statement of Fill writes.
const fillRows = 250

// Fill writes a whole log of n manifests of one thread past the store, which
// must have made the tables, in a fraction of the time that appending takes. A
// thread is filled once, and samples from first on are used.
func Fill(tb testing.TB, dsn, workspace, thread string, first, n int) {
	tb.Helper()
	db := Raw(tb, dsn)
	tx, err := db.BeginTx(tb.Context(), nil)
	if err != nil {
		tb.Fatal(err)
	}
	c := manifest.Chain{WorkspaceID: workspace, ThreadID: thread}
	for done := 0; done < n; {
		rows := min(fillRows, n-done)
		if err := fillBatch(tb.Context(), tx, &c, first+done, rows); err != nil {
			tb.Fatal(err)
		}
		done += rows
	}
	if err := c.Sign(nil); err != nil {
		tb.Fatal(err)
	}
	const sign = "INSERT INTO chains (workspace_id, thread_id, first_seq, first_prev, next_seq, last_hash, signature) VALUES ($1, $2, 0, '', $3, $4, $5)"
	if _, err := tx.ExecContext(tb.Context(), sign, workspace, thread, n, c.Last, c.Signature); err != nil {
		tb.Fatal(err)
	}
	if err := tx.Commit(); err != nil {
		tb.Fatal(err)
	}
}

// fillBatch seals and writes manifests behind the chain's last one.
func fillBatch(ctx context.Context, tx *sql.Tx, c *manifest.Chain, first, n int) error {
	var query strings.Builder
	query.WriteString("INSERT INTO manifests (manifest_id, workspace_id, thread_id, seq, turn_id, created_at, profile, fingerprint_full, hash, record) VALUES ")
	var args []any
	for i := range n {
		r, err := manifest.SealRecordIn(nil, Sample(c.WorkspaceID, c.ThreadID, first+i), c.Link(), nil)
		if err != nil {
			return err
		}
		x := &r.Index
		if i > 0 {
			query.WriteByte(',')
		}
		query.WriteByte('(')
		for column := range 10 {
			if column > 0 {
				query.WriteByte(',')
			}
			fmt.Fprintf(&query, "$%d", len(args)+column+1)
		}
		query.WriteByte(')')
		args = append(args, x.ManifestID, x.WorkspaceID, x.ThreadID, int64(x.Seq), x.TurnID, //nolint:gosec // small
			x.CreatedAt.UnixNano(), string(x.Profile), x.FingerprintFull, x.Hash, string(r.Data))
		c.Next, c.Last = x.Seq+1, x.Hash
	}
	_, err := tx.ExecContext(ctx, query.String(), args...)
	return err
}
