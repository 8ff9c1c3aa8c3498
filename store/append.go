package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/grapnelhq/grapnel/internal/digest"
	"github.com/grapnelhq/grapnel/internal/sqldb"
	"github.com/grapnelhq/grapnel/manifest"
)

// The statements of Append. PostgreSQL inserts and locks the chain in one statement; SQLite has
// locked the database already.
const (
	lockChainPostgres = `INSERT INTO chains (workspace_id, thread_id, first_seq, first_prev, next_seq, last_hash, signature)
		VALUES ($1, $2, 0, '', 0, '', '')
		ON CONFLICT (thread_id, workspace_id) DO UPDATE SET signature = chains.signature
		RETURNING ` + chainColumns
	lockChainSQLite = "SELECT " + chainColumns + " FROM chains WHERE workspace_id = $1 AND thread_id = $2"
	putManifest     = `INSERT INTO manifests
		(manifest_id, workspace_id, thread_id, seq, turn_id, created_at, profile, fingerprint_full, hash, record)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, CAST($10 AS TEXT))` // the record comes as bytes, without a copy
	putChain = `INSERT INTO chains (workspace_id, thread_id, first_seq, first_prev, next_seq, last_hash, signature)
		VALUES ($1, $2, $3, $4, $5, $6, $7)
		ON CONFLICT (thread_id, workspace_id) DO UPDATE SET first_seq = excluded.first_seq, first_prev = excluded.first_prev,
			next_seq = excluded.next_seq, last_hash = excluded.last_hash, signature = excluded.signature`
)

// appendStatements are closed with the database.
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

// Append keeps a manifest as the next of its workspace and thread: it sets seq, prev and the
// hashes, and renews the thread's sign-off, in one transaction. After an error those fields
// mean nothing, and the manifest may be appended again.
//
// Texts are the rendered sections of its prompt, if the operator wants them kept; a known text is only marked as
// used. A text with a NUL or invalid UTF-8 is refused, and the manifest with it.
//
// It waits for others until ctx ends, and up to LockTimeout. It is the runtime's sink.
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

func (s *Store) appendIn(ctx context.Context, tx *sql.Tx, m *manifest.Manifest) error {
	chain, err := s.lockChain(ctx, tx, m.WorkspaceID, m.ThreadID)
	if err != nil {
		return err
	}
	buf, _ := s.buffers.Get().(*[]byte)
	if buf == nil {
		buf = new([]byte)
	}
	defer s.buffers.Put(buf)
	record, err := manifest.SealRecord(*buf, m, chain.Link(), s.opts.Key)
	if err != nil {
		return &Error{Code: CodeInvalid, Message: "the manifest cannot be kept", Err: err}
	}
	x := &record.Index
	*buf = record.Data
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

// lockChain locks a thread until the transaction ends and returns its sign-off.
func (s *Store) lockChain(ctx context.Context, tx *sql.Tx, workspace, thread string) (manifest.Chain, error) {
	c, err := scanChain(tx.StmtContext(ctx, s.append.lock).QueryRowContext(ctx, workspace, thread).Scan) //nolint:sqlclosecheck // closed with the transaction
	if errors.Is(err, sql.ErrNoRows) {
		return manifest.Chain{WorkspaceID: workspace, ThreadID: thread}, nil
	}
	return c, err
}

// signOff signs and writes a chain. A chain that was signed with a key is never signed without one.
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

const keyedPrefix = "hmac-"

func signed(n uint64) int64 { return int64(n) } //nolint:gosec // nobody appends 2^63 manifests

// checkKeepable refuses what either database could not store, so that both accept the same.
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

// putTexts for one text (SQLite) and for any number (PostgreSQL, where each statement is a round trip).
const (
	putTextSQLite    = "INSERT INTO texts (fingerprint, hash, last_used, text) SELECT $1, $2, id, $4 FROM manifests WHERE manifest_id = $3" + textIsThere
	putTextsPostgres = `INSERT INTO texts (fingerprint, hash, last_used, text)
		SELECT t.fingerprint, t.hash, (SELECT id FROM manifests WHERE manifest_id = $3), t.text
		FROM unnest($1::text[], $2::text[], $4::text[]) AS t(fingerprint, hash, text)` + textIsThere
	textIsThere = ` ON CONFLICT (fingerprint, hash) DO UPDATE SET last_used = excluded.last_used WHERE texts.last_used < excluded.last_used`
)

type textRow struct{ fingerprint, hash, text string }

// textRows gives texts their addresses, unique and in order: concurrent transactions lock them in the same order.
func textRows(texts []manifest.Text) ([]textRow, error) {
	rows := make([]textRow, 0, len(texts))
	for _, t := range texts {
		if t.Fingerprint == "" || !isText(t.Fingerprint) || !isText(t.Text) {
			return nil, sqldb.Failf(CodeInvalid, "", "the text with the fingerprint %.80q cannot be kept", t.Fingerprint)
		}
		rows = append(rows, textRow{t.Fingerprint, digest.SHA256([]byte(t.Text)), t.Text})
	}
	slices.SortFunc(rows, func(a, b textRow) int {
		return cmp.Or(strings.Compare(a.fingerprint, b.fingerprint), strings.Compare(a.hash, b.hash))
	})
	return slices.CompactFunc(rows, func(a, b textRow) bool { return a.fingerprint == b.fingerprint && a.hash == b.hash }), nil
}

func isText(s string) bool { return strings.IndexByte(s, 0) < 0 && utf8.ValidString(s) }

func (s *Store) putTexts(ctx context.Context, tx *sql.Tx, rows []textRow, manifestID string) error {
	if len(rows) == 0 {
		return nil
	}
	put := tx.StmtContext(ctx, s.append.text) //nolint:sqlclosecheck // closed with the transaction
	if s.phrase.textsAtOnce {
		var fingerprints, hashes, texts []string
		for _, r := range rows {
			fingerprints, hashes, texts = append(fingerprints, r.fingerprint), append(hashes, r.hash), append(texts, r.text)
		}
		_, err := put.ExecContext(ctx, fingerprints, hashes, manifestID, texts)
		return err
	}
	for _, r := range rows {
		if _, err := put.ExecContext(ctx, r.fingerprint, r.hash, manifestID, r.text); err != nil {
			return err
		}
	}
	return nil
}

// Text returns the text with a fingerprint. The error's code is CodeNotFound if none is kept,
// and CodeAmbiguous if several texts share the fingerprint.
func (s *Store) Text(ctx context.Context, fingerprint string) (string, error) {
	const query = "SELECT text FROM texts WHERE fingerprint = $1 LIMIT 2"
	texts, err := sqldb.ReadList(ctx, s.db, "reading a text", query, []any{fingerprint}, func(rows *sql.Rows, text *string) error { return rows.Scan(text) })
	switch {
	case err != nil:
		return "", err
	case len(texts) == 0:
		return "", sqldb.Failf(CodeNotFound, "texts are kept only with manifest: {keep_text: true}", "no text with the fingerprint %.80q is kept", fingerprint)
	case len(texts) > 1:
		return "", sqldb.Failf(CodeAmbiguous, "", "different texts have the fingerprint %.80q", fingerprint)
	}
	return texts[0], nil
}
