package store

import (
	"context"
	"database/sql"
	"strings"
	"time"
	"unicode/utf8"
)

// Text is a text of a prompt, and what manifests name it by.
type Text struct {
	Fingerprint string
	Text        string
}

// putText keeps a text once, however often it is used.
const putText = `INSERT INTO texts (fingerprint, hash, kept_at, text) VALUES ($1, $2, $3, $4)
	ON CONFLICT (fingerprint, hash) DO UPDATE SET kept_at = excluded.kept_at WHERE texts.kept_at < excluded.kept_at`

// KeepTexts keeps texts beside the manifest that names their fingerprints, which
// was made at that time. A text that is there already is only noted as used.
// Call it where the operator wants texts kept, and only there: manifests do not
// need it. A text with a NUL, or that is not UTF-8, is refused.
func (s *Store) KeepTexts(ctx context.Context, at time.Time, texts []Text) error {
	for _, t := range texts {
		if strings.ContainsRune(t.Text, 0) || !utf8.ValidString(t.Text) || t.Fingerprint == "" {
			return failf(CodeInvalid, "", "the text with the fingerprint %q cannot be kept", t.Fingerprint)
		}
	}
	return s.change(ctx, "keeping texts", func(ctx context.Context, tx *sql.Tx) error {
		for _, t := range texts {
			if _, err := tx.ExecContext(ctx, putText, t.Fingerprint, textHash(t.Text), at.UnixNano(), t.Text); err != nil {
				return err
			}
		}
		return nil
	})
}

// Text returns the text with a fingerprint. The code of the error is CodeNotFound
// where none is kept, and CodeAmbiguous where two different texts have it, which
// fingerprints without a key cannot rule out.
func (s *Store) Text(ctx context.Context, fingerprint string) (string, error) {
	var texts []string
	err := s.snapshot(ctx, "reading a text", func(tx *sql.Tx) error {
		return each(ctx, tx, "SELECT text FROM texts WHERE fingerprint = $1 LIMIT 2", []any{fingerprint}, func(rows *sql.Rows) error {
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
		return "", failf(CodeNotFound, "texts are kept only with manifest: {keep_text: true}", "no text with the fingerprint %.80q is kept", fingerprint)
	case len(texts) > 1:
		return "", failf(CodeAmbiguous, "", "different texts have the fingerprint %.80q", fingerprint)
	}
	return texts[0], nil
}
