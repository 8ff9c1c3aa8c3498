package store

import (
	"context"
	"database/sql"
	"errors"
	"strings"

	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/store/sqldb"
)

// The statements of Append. PostgreSQL makes the thread's sign-off if need be and
// locks it with one statement; SQLite has locked the database by then.
const (
	lockChainPostgres = `INSERT INTO chains (workspace_id, thread_id, first_seq, first_prev, next_seq, last_hash, signature)
		VALUES ($1, $2, 0, '', 0, '', '')
		ON CONFLICT (thread_id, workspace_id) DO UPDATE SET signature = chains.signature
		RETURNING ` + chainColumns
	lockChainSQLite = "SELECT " + chainColumns + " FROM chains WHERE workspace_id = $1 AND thread_id = $2"
	putManifest     = `INSERT INTO manifests
		(manifest_id, workspace_id, thread_id, seq, turn_id, created_at, profile, fingerprint_full, hash, record)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, CAST($10 AS TEXT))` // the record comes as bytes, which need no copy
	putChain = `INSERT INTO chains (workspace_id, thread_id, first_seq, first_prev, next_seq, last_hash, signature)
		VALUES ($1, $2, $3, $4, $5, $6, $7)
		ON CONFLICT (thread_id, workspace_id) DO UPDATE SET first_seq = excluded.first_seq, first_prev = excluded.first_prev,
			next_seq = excluded.next_seq, last_hash = excluded.last_hash, signature = excluded.signature`
)

// appendStatements are prepared once: appending is on the way of every turn.
type appendStatements struct {
	lock, manifest, chain, text *sql.Stmt
}

func (a *appendStatements) prepare(ctx context.Context, db *sql.DB, p *phrases) error {
	var errs [4]error
	a.lock, errs[0] = db.PrepareContext(ctx, p.lockChain)
	a.manifest, errs[1] = db.PrepareContext(ctx, putManifest)
	a.chain, errs[2] = db.PrepareContext(ctx, putChain)
	a.text, errs[3] = db.PrepareContext(ctx, p.putTexts)
	return errors.Join(errs[:]...)
}

func (a *appendStatements) close() error {
	var errs []error
	for _, stmt := range []*sql.Stmt{a.lock, a.manifest, a.chain, a.text} {
		if stmt != nil {
			errs = append(errs, stmt.Close())
		}
	}
	return errors.Join(errs...)
}

// Append keeps a manifest behind the last one of its workspace and thread: it
// fills seq, prev and the hashes, and renews the thread's sign-off, in one
// transaction. When it returns nil the manifest is kept, as safely as
// [Options.Synchronous] says. After an error m's seq, prev and hashes mean
// nothing, and it may be appended again.
//
// Texts are the rendered sections of its prompt, where the operator wants them
// kept; the same transaction keeps them. A text that is there already is only
// noted as used. One with a NUL, or that is not UTF-8, is refused, and the
// manifest with it.
//
// It waits for others until ctx ends, and no longer than LockTimeout. It is the
// runtime's sink.
func (s *Store) Append(ctx context.Context, m *manifest.Manifest, texts []manifest.Text) error {
	if err := checkKeepable(m); err != nil {
		return err
	}
	rows, err := textRows(texts)
	if err != nil {
		return err
	}
	return s.db.Change(ctx, "keeping a manifest", func(ctx context.Context, tx *sql.Tx) error {
		if err := s.appendIn(ctx, tx, m); err != nil {
			return err
		}
		return s.putTexts(ctx, tx, rows, m.ManifestID)
	})
}

// appendIn is Append inside a transaction.
func (s *Store) appendIn(ctx context.Context, tx *sql.Tx, m *manifest.Manifest) error {
	chain, err := s.lockChain(ctx, tx, m.WorkspaceID, m.ThreadID)
	if err != nil {
		return err
	}
	room, _ := s.rooms.Get().(*[]byte)
	if room == nil {
		room = new([]byte)
	}
	defer s.rooms.Put(room) // the driver has copied the record by then
	record, err := manifest.SealRecordIn(*room, m, chain.Link(), s.opts.Key)
	if err != nil {
		return &Error{Code: CodeInvalid, Message: "the manifest cannot be kept", Err: err}
	}
	x := &record.Index
	*room = record.Data
	_, err = tx.StmtContext(ctx, s.append.manifest).ExecContext( //nolint:sqlclosecheck // closed with the transaction
		ctx, x.ManifestID, x.WorkspaceID, x.ThreadID, signed(x.Seq), x.TurnID,
		x.CreatedAt.UnixNano(), string(x.Profile), x.FingerprintFull, x.Hash, record.Data,
	)
	if err != nil {
		return err
	}
	chain.Next, chain.Last = x.Seq+1, x.Hash
	return s.signOff(ctx, tx.StmtContext(ctx, s.append.chain), &chain)
}

// lockChain returns a thread's sign-off, which nobody else changes until the
// transaction ends.
func (s *Store) lockChain(ctx context.Context, tx *sql.Tx, workspace, thread string) (manifest.Chain, error) {
	c, err := scanChain(tx.StmtContext(ctx, s.append.lock).QueryRowContext(ctx, workspace, thread).Scan) //nolint:sqlclosecheck // closed with the transaction
	if errors.Is(err, sql.ErrNoRows) {
		return manifest.Chain{WorkspaceID: workspace, ThreadID: thread}, nil
	}
	return c, err
}

// signOff signs a chain and writes it. One that was signed with a key is never
// signed without: neither appending nor retention may take its proof away.
func (s *Store) signOff(ctx context.Context, stmt *sql.Stmt, c *manifest.Chain) error {
	if len(s.opts.Key) == 0 && strings.HasPrefix(c.Signature, keyedPrefix) {
		return sqldb.Failf(CodeKey, "open the store with the key", "the manifests of thread %q are keyed", c.ThreadID)
	}
	if err := c.Sign(s.opts.Key); err != nil {
		return err
	}
	_, err := stmt.ExecContext(ctx, c.WorkspaceID, c.ThreadID, signed(c.First), c.Before, signed(c.Next), c.Last, c.Signature)
	return err
}

// keyedPrefix is what keyed hashes begin with.
const keyedPrefix = "hmac-"

// signed turns a seq, which counts from 0, into what databases take.
func signed(n uint64) int64 { return int64(n) } //nolint:gosec // nobody appends 2^63 manifests

// checkKeepable refuses what one of the databases could not take, so that both
// take the same.
func checkKeepable(m *manifest.Manifest) error {
	for _, f := range []struct{ name, value string }{
		{"manifest_id", m.ManifestID},
		{"workspace_id", m.WorkspaceID},
		{"thread_id", m.ThreadID},
		{"turn_id", m.TurnID},
		{"profile", string(m.Profile)},
		{"fingerprint_full", m.FingerprintFull},
	} {
		if !isText(f.value) {
			return sqldb.Failf(CodeInvalid, "", "the manifest's %s is not text: %.80q", f.name, f.value)
		}
	}
	if m.ManifestID == "" {
		return sqldb.Failf(CodeInvalid, "", "the manifest has no id")
	}
	if !inRange(m.CreatedAt) {
		return sqldb.Failf(CodeInvalid, "", "the manifest's created_at %s is out of range", m.CreatedAt)
	}
	return nil
}
