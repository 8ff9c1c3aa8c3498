package itemstore

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"strconv"

	"github.com/grapnelhq/grapnel/plugins/memory/recall"
)

// Names in memory_meta.
const (
	metaSecret  = "secret"
	metaVersion = "recall_version"
	// metaUntidy says that bytes of what was forgotten may still be in the database: by
	// a name of the last forgetting, which nobody else's tidying up is about.
	metaUntidy = "untidy"
	// metaUncounted says that the statistics are still to be made, from the index.
	metaUncounted = "uncounted"
)

// meta returns a value of memory_meta; empty is none.
func (tx txn) meta(ctx context.Context, name string) (string, error) {
	var value string
	err := tx.one(ctx, readMeta, []any{name}, []any{&value})
	return value, err
}

const readMeta = "SELECT value FROM memory_meta WHERE name = $1"

// setMeta sets a value of memory_meta.
func (tx txn) setMeta(ctx context.Context, name, value string) error {
	_, err := tx.exec(ctx, "INSERT INTO memory_meta (name, value) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = excluded.value", name, value)
	return err
}

// found fills memory_meta of a new database.
func (tx txn) found(ctx context.Context, entropy io.Reader) error {
	secret := make([]byte, sha256.Size)
	if _, err := io.ReadFull(entropy, secret); err != nil {
		return err
	}
	_, err := tx.exec(ctx, "INSERT INTO memory_meta (name, value) VALUES ($1, $2), ($3, $4) ON CONFLICT (name) DO NOTHING",
		metaSecret, hex.EncodeToString(secret), metaVersion, strconv.Itoa(recall.Version))
	return err
}

// hashOf is the hash of a text, by which two that say the same are one.
func hashOf(text string) string {
	sum := sha256.Sum256([]byte(recall.Key(text)))
	return hex.EncodeToString(sum[:])
}

// mark is the tombstone of a text in a scope. Short texts are guessed from their
// hashes, so it is keyed; and those of two stores cannot be compared.
func (s *Store) mark(p place, hash string) string {
	mac := hmac.New(sha256.New, s.secret)
	for _, part := range []string{p.workspace, string(p.scope), p.id, hash} {
		mac.Write([]byte(part)) // never fails; names have no NUL
		mac.Write([]byte{0})
	}
	return hex.EncodeToString(mac.Sum(nil))
}
