package store

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/store/sqldb"
)

// The statements that keep a text once, however often it is used: one text for
// SQLite, and any number for PostgreSQL, where each statement is a journey.
const (
	putTextSQLite    = "INSERT INTO texts (fingerprint, hash, last_used, text) SELECT $1, $2, id, $4 FROM manifests WHERE manifest_id = $3" + textIsThere
	putTextsPostgres = `INSERT INTO texts (fingerprint, hash, last_used, text)
		SELECT t.fingerprint, t.hash, (SELECT id FROM manifests WHERE manifest_id = $3), t.text
		FROM unnest($1::text[], $2::text[], $4::text[]) AS t(fingerprint, hash, text)` + textIsThere
	textIsThere = ` ON CONFLICT (fingerprint, hash) DO UPDATE SET last_used = excluded.last_used WHERE texts.last_used < excluded.last_used`
)

// textRow is a text with its address.
type textRow struct{ fingerprint, hash, text string }

// textRows gives texts their addresses. Each is there once, and they are in
// order: transactions that use the same texts lock them in the same order.
func textRows(texts []manifest.Text) ([]textRow, error) {
	rows := make([]textRow, 0, len(texts))
	for _, t := range texts {
		if t.Fingerprint == "" || !isText(t.Fingerprint) || !isText(t.Text) {
			return nil, sqldb.Failf(CodeInvalid, "", "the text with the fingerprint %.80q cannot be kept", t.Fingerprint)
		}
		rows = append(rows, textRow{t.Fingerprint, textHash(t.Text), t.Text})
	}
	slices.SortFunc(rows, func(a, b textRow) int {
		if c := strings.Compare(a.fingerprint, b.fingerprint); c != 0 {
			return c
		}
		return strings.Compare(a.hash, b.hash)
	})
	return slices.CompactFunc(rows, func(a, b textRow) bool { return a.fingerprint == b.fingerprint && a.hash == b.hash }), nil
}

// isText reports whether both databases take a text.
func isText(s string) bool { return strings.IndexByte(s, 0) < 0 && utf8.ValidString(s) }

// textHash is the address of a text.
func textHash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// putTexts keeps texts, or notes that a manifest, which is kept by now, uses them.
func (s *Store) putTexts(ctx context.Context, tx *sql.Tx, rows []textRow, manifestID string) error {
	if len(rows) == 0 {
		return nil
	}
	put := tx.StmtContext(ctx, s.append.text) //nolint:sqlclosecheck // closed with the transaction
	if s.phrase.textsAtOnce {
		fingerprints, hashes, texts := make([]string, len(rows)), make([]string, len(rows)), make([]string, len(rows))
		for i, r := range rows {
			fingerprints[i], hashes[i], texts[i] = r.fingerprint, r.hash, r.text
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

// Text returns the text with a fingerprint. The code of the error is CodeNotFound
// where none is kept, and CodeAmbiguous where two different texts have it, which
// fingerprints without a key cannot rule out.
func (s *Store) Text(ctx context.Context, fingerprint string) (string, error) {
	var texts []string
	err := s.db.Snapshot(ctx, "reading a text", func(tx *sql.Tx) error {
		return sqldb.Each(ctx, tx, "SELECT text FROM texts WHERE fingerprint = $1 LIMIT 2", []any{fingerprint}, func(rows *sql.Rows) error {
			var text string
			err := rows.Scan(&text)
			texts = append(texts, text)
			return err
		})
	})
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
