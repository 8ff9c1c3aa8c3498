package store

import (
	"cmp"
	"context"
	"database/sql"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/grapnelhq/grapnel/internal/digest"
	"github.com/grapnelhq/grapnel/internal/sqldb"
	"github.com/grapnelhq/grapnel/manifest"
)

// The statements of Append. The first locks the thread until the transaction ends.
const (
	lockChain = `INSERT INTO chains (workspace_id, thread_id, first_seq, first_prev, next_seq, last_hash, last_at, signature)
		VALUES ($1, $2, 0, '', 0, '', 0, '')
		ON CONFLICT (thread_id, workspace_id) DO UPDATE SET signature = chains.signature
		RETURNING id, ` + chainColumns
	putManifest = `INSERT INTO manifests
		(manifest_id, workspace_id, thread_id, seq, turn_id, created_at, actor, profile, fingerprint_full, hash, bytes, outline, record)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13) RETURNING id`
	putPending = "INSERT INTO pending (id) VALUES ($1)"
	putChain   = `UPDATE chains SET first_seq = $2, first_prev = $3, next_seq = $4, last_hash = $5, last_at = $6, signature = $7 WHERE id = $1`
)

// prepare prepares the statements of Append, which are closed with the database.
func (s *Store) prepare(ctx context.Context) (err error) {
	texts := []string{lockChain, putManifest, putPending, putChain, s.phrase.putText}
	if s.phrase.putUse != "" {
		texts = append(texts, s.phrase.putUse)
	}
	s.prepared, err = sqldb.Prepare(ctx, s.db.Writer(), texts...)
	return err
}

// in is a prepared statement in a transaction, with which it is closed.
func (s *Store) in(ctx context.Context, tx *sql.Tx, text string) *sql.Stmt {
	return tx.StmtContext(ctx, s.prepared[text])
}

// Append keeps a manifest as the next of its workspace and thread: it sets seq, prev, texts_kept and the
// hashes, raises created_at to that of the record before if it is earlier, and renews the thread's sign-off, in one transaction. After an error those fields
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
	m.TextsKept = hasAll(rows, m.Sections)
	var id int64
	err = s.db.Change(ctx, "keeping a manifest", func(ctx context.Context, tx *sql.Tx) error {
		var chain int64
		if id, chain, err = s.appendIn(ctx, tx, m); err != nil {
			return err
		}
		return s.putTexts(ctx, tx, rows, chain, m.Actor, id)
	})
	if err == nil && id%settleEvery == 0 {
		s.settler.start(context.WithoutCancel(ctx), s)
	}
	return err
}

// appendIn returns the numbers of the record and its chain.
func (s *Store) appendIn(ctx context.Context, tx *sql.Tx, m *manifest.Manifest) (id, chainID int64, err error) {
	chain, err := s.lockChain(ctx, tx, m.WorkspaceID, m.ThreadID)
	if err != nil {
		return 0, 0, err
	}
	if m.CreatedAt.Before(chain.LastAt) {
		m.CreatedAt = chain.LastAt
	}
	p := s.packers.Get()
	defer s.packers.Put(p)
	record, err := manifest.SealRecord(p.plain, m, chain.Link(), s.opts.Key)
	if err != nil {
		return 0, 0, &Error{Code: CodeInvalid, Message: "the manifest cannot be kept", Err: err}
	}
	x := &record.Index
	p.plain = record.Data
	outline := m.Outline()
	p.outline = outline.Append(p.outline[:0])
	err = s.in(ctx, tx, putManifest).QueryRowContext( //nolint:sqlclosecheck // closed with the transaction
		ctx, x.ManifestID, x.WorkspaceID, x.ThreadID, signed(x.Seq), x.TurnID,
		x.CreatedAt.UnixNano(), x.Actor, string(x.Profile), x.FingerprintFull, x.Hash, len(record.Data), p.outline, p.pack(),
	).Scan(&id)
	if err != nil {
		return 0, 0, err
	}
	if _, err := s.in(ctx, tx, putPending).ExecContext(ctx, id); err != nil { //nolint:sqlclosecheck // closed with the transaction
		return 0, 0, err
	}
	chain.Next, chain.Last, chain.LastAt = x.Seq+1, x.Hash, x.CreatedAt
	return id, chain.id, s.signOff(ctx, tx, &chain)
}

// lockedChain is a thread's sign-off and its number.
type lockedChain struct {
	manifest.Chain

	id int64
}

// lockChain locks a thread until the transaction ends and returns its sign-off.
func (s *Store) lockChain(ctx context.Context, tx *sql.Tx, workspace, thread string) (lockedChain, error) {
	var c lockedChain
	row := s.in(ctx, tx, lockChain).QueryRowContext(ctx, workspace, thread) //nolint:sqlclosecheck // closed with the transaction
	var err error
	c.Chain, err = scanChain(func(to ...any) error { return row.Scan(append([]any{&c.id}, to...)...) })
	return c, err
}

// signOff signs and writes a chain. A chain that was signed with a key is never signed without one.
func (s *Store) signOff(ctx context.Context, tx *sql.Tx, c *lockedChain) error {
	if len(s.opts.Key) == 0 && strings.HasPrefix(c.Signature, keyedPrefix) {
		return sqldb.Failf(CodeKey, "open the store with the key", "the manifests of thread %q are keyed", c.ThreadID)
	}
	if err := c.Sign(s.opts.Key); err != nil {
		return err
	}
	_, err := s.in(ctx, tx, putChain).ExecContext( //nolint:sqlclosecheck // closed with the transaction
		ctx, c.id, signed(c.First), c.Before, signed(c.Next), c.Last, nanos(c.LastAt), c.Signature)
	return err
}

const keyedPrefix = "hmac-"

// nanos is a time as it is kept: the zero time is 0.
func nanos(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

func signed(n uint64) int64 { return int64(n) } //nolint:gosec // nobody appends 2^63 manifests

// checkKeepable refuses what either database could not store, so that both accept the same.
func checkKeepable(m *manifest.Manifest) error {
	for _, f := range []struct{ name, value string }{
		{"manifest_id", m.ManifestID},
		{"workspace_id", m.WorkspaceID},
		{"thread_id", m.ThreadID},
		{"turn_id", m.TurnID},
		{"actor", m.Actor},
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

// The statements for texts: SQLite has one for a text and one for its use, PostgreSQL, where each statement is a round
// trip, one for all. It locks the rows of known texts too, so that nobody removes one before its use is there.
const (
	putTextSQLite = "INSERT INTO texts (hash, sha256, text) VALUES ($1, $2, $3) ON CONFLICT (hash, sha256) DO NOTHING"
	putUseSQLite  = `INSERT INTO text_uses (text_id, chain_id, actor, first_id, last_id)
		SELECT id, $3, $4, $5, $5 FROM texts WHERE hash = $1 AND sha256 = $2` + useIsThere
	putTextsPostgres = `WITH t AS (
			INSERT INTO texts (hash, sha256, text) SELECT h, s, t FROM unnest($1::text[], $2::text[], $3::text[]) AS u(h, s, t)
			ON CONFLICT (hash, sha256) DO UPDATE SET hash = excluded.hash RETURNING id)
		INSERT INTO text_uses (text_id, chain_id, actor, first_id, last_id) SELECT id, $4, $5, $6, $6 FROM t` + useIsThere
	useIsThere = " ON CONFLICT (text_id, chain_id, actor) DO UPDATE SET last_id = excluded.last_id"
)

type textRow struct{ hash, sha256, text string }

// textRows gives texts their addresses, unique and in order: concurrent transactions lock them in the same order.
func textRows(texts []manifest.Text) ([]textRow, error) {
	rows := make([]textRow, 0, len(texts))
	for _, t := range texts {
		sum := digest.SHA256([]byte(t.Text))
		if !isText(t.Hash) || !isText(t.Text) || t.Hash != sum && !strings.HasPrefix(t.Hash, keyedPrefix) {
			return nil, sqldb.Failf(CodeInvalid, "", "the text with the hash %.80q cannot be kept", t.Hash)
		}
		rows = append(rows, textRow{t.Hash, sum, t.Text})
	}
	slices.SortFunc(rows, func(a, b textRow) int {
		return cmp.Or(strings.Compare(a.hash, b.hash), strings.Compare(a.sha256, b.sha256))
	})
	return slices.CompactFunc(rows, func(a, b textRow) bool { return a.hash == b.hash && a.sha256 == b.sha256 }), nil
}

// hasAll reports whether the texts are those of all sections, and there are some.
func hasAll(rows []textRow, sections []manifest.Section) bool {
	hashes := make(map[string]bool, len(rows))
	for _, r := range rows {
		hashes[r.hash] = true
	}
	return len(sections) > 0 && !slices.ContainsFunc(sections, func(s manifest.Section) bool { return !hashes[s.Hash] })
}

func isText(s string) bool { return strings.IndexByte(s, 0) < 0 && utf8.ValidString(s) }

func (s *Store) putTexts(ctx context.Context, tx *sql.Tx, rows []textRow, chain int64, actor string, id int64) error {
	if len(rows) == 0 {
		return nil
	}
	put := s.in(ctx, tx, s.phrase.putText) //nolint:sqlclosecheck // closed with the transaction
	if s.phrase.putUse == "" {
		var hashes, sums, texts []string
		for _, r := range rows {
			hashes, sums, texts = append(hashes, r.hash), append(sums, r.sha256), append(texts, r.text)
		}
		_, err := put.ExecContext(ctx, hashes, sums, texts, chain, actor, id)
		return err
	}
	use := s.in(ctx, tx, s.phrase.putUse) //nolint:sqlclosecheck // closed with the transaction
	for _, r := range rows {
		if _, err := put.ExecContext(ctx, r.hash, r.sha256, r.text); err != nil {
			return err
		}
		if _, err := use.ExecContext(ctx, r.hash, r.sha256, chain, actor, id); err != nil {
			return err
		}
	}
	return nil
}

// Text returns the text that records name by a hash. The error's code is CodeNotFound if none is kept, and
// CodeAmbiguous if different texts were kept under one keyed hash, which then belongs to one of them at most.
func (s *Store) Text(ctx context.Context, hash string) (string, error) {
	const query = "SELECT text FROM texts WHERE hash = $1 LIMIT 2"
	texts, err := sqldb.ReadList(ctx, s.db, "reading a text", query, []any{hash}, func(rows *sql.Rows, text *string) error { return rows.Scan(text) })
	switch {
	case err != nil:
		return "", err
	case len(texts) == 0:
		return "", sqldb.Failf(CodeNotFound, "texts are kept only with manifest: {keep_text: true}", "no text with the hash %.80q is kept", hash)
	case len(texts) > 1:
		return "", sqldb.Failf(CodeAmbiguous, "", "different texts are kept under the hash %.80q", hash)
	}
	return texts[0], nil
}
