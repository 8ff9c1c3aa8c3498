package manifest

import (
	"fmt"

	"github.com/grapnelhq/grapnel/internal/digest"
)

// encoder is the plan of the type: immutable and safe for concurrent use.
//
//nolint:gochecknoglobals // an immutable table
var encoder = digest.EncoderOf[Manifest]()

// sizeHint is room for the record of an ordinary turn.
const sizeHint = 32 << 10

// Fingerprint returns the fingerprint of a text: "xxh64:" and 16 hex digits, or
// with a key "hmac-sha256:" and 64.
func Fingerprint(text string, key []byte) string {
	if len(key) == 0 {
		return digest.XXH64String(text)
	}
	return digest.HMACSHA256(key, []byte(text))
}

// Canonical returns the record as canonical JSON (RFC 8785): the bytes that are
// stored and hashed. The error names the field that JSON cannot express, such
// as a text that is not UTF-8.
func Canonical(m *Manifest) ([]byte, error) {
	return appendCanonical(make([]byte, 0, sizeHint), m)
}

// appendCanonical is Canonical with room of the caller's.
func appendCanonical(room []byte, m *Manifest) ([]byte, error) {
	b, err := encoder.Append(room, m)
	if err != nil {
		return nil, fmt.Errorf("manifest %s: %w", m.ManifestID, err)
	}
	return b, nil
}

// ContentHash returns the SHA-256 of what the record says about the work, leaving
// out what differs between two runs of the same work. Left out are:
//
//   - of the head all but schema_version, compiler_version and profile;
//   - content_hash, prev, hash and the group cache, which is about other records;
//   - of runs generation, incarnation, attempts, queue_ms, duration_ms,
//     bytes_in, bytes_out and cached_from, and the state cached counts as
//     succeeded; of hook_sources cached_from;
//   - of plugins generation, restarts and detail;
//   - of budgets used_ms and used_chars;
//   - of diagnostics the message, which may tell times; codes stay.
//
// m is not changed. The result does not depend on any key, so that records of
// differently keyed logs can be compared; with keyed fingerprints it does, for
// it covers them.
func ContentHash(m *Manifest) (string, error) {
	sum, _, err := hashContent(make([]byte, 0, sizeHint), m)
	return sum, err
}

// hashContent is ContentHash with room of the caller's, which it returns, grown
// if need be, to be used again.
func hashContent(room []byte, m *Manifest) (string, []byte, error) {
	c := content(m)
	b, err := appendCanonical(room, &c)
	if err != nil {
		return "", nil, err
	}
	return digest.SHA256(b), b[:0], nil
}

// Link is the end of a thread's chain of records.
type Link struct {
	// Seq and Hash are those of the last record.
	Seq  uint64
	Hash string
}

// Link returns what the next record of the thread continues from.
func (m *Manifest) Link() Link { return Link{Seq: m.Seq, Hash: m.Hash} }

// Seal completes a record and closes it: it sets seq and prev behind the
// thread's last record (nil: this is the first), the content hash, and then the
// hash over all of it. With a key the hash is HMAC-SHA-256, else SHA-256.
//
// Everything else must be set before; a record that was changed afterwards can
// be sealed again.
func Seal(m *Manifest, last *Link, key []byte) error {
	m.place(last)
	var err error
	if m.ContentHash, err = ContentHash(m); err != nil {
		return err
	}
	m.Hash, err = RecordHash(m, key)
	return err
}

// place completes the record and sets what follows from the thread's last one.
func (m *Manifest) place(last *Link) {
	m.Complete()
	m.Seq, m.Prev = 0, ""
	if last != nil {
		m.Seq, m.Prev = last.Seq+1, last.Hash
	}
}

// RecordHash returns what the record's hash should be: that of its canonical
// bytes with an empty hash, and with cache.actual null, which is filled in where
// a record is shown. m is not changed.
func RecordHash(m *Manifest, key []byte) (string, error) {
	unsigned := m.unsigned()
	b, err := Canonical(&unsigned)
	if err != nil {
		return "", err
	}
	return sumOf(b, key), nil
}

// unsigned is what the hash covers.
func (m *Manifest) unsigned() Manifest {
	u := *m
	u.Hash, u.Cache.Actual = "", nil
	return u
}
