package manifest

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/grapnelhq/grapnel/internal/digest"
	"github.com/grapnelhq/grapnel/phases"
)

//nolint:gochecknoglobals // immutable tables
var (
	encoder      = sync.OnceValue(digest.EncoderOf[Manifest])
	chainEncoder = sync.OnceValue(digest.EncoderOf[Chain])
)

// sizeHint is enough for the record of an ordinary turn, and for the rows of a long one.
func (m *Manifest) sizeHint() int {
	return 32<<10 + len(m.Runs)<<9 + len(m.HookSources)<<9 + len(m.Budgets.Phases)<<7
}

// Fingerprint returns the fingerprint of a text: "xxh64:" and 16 hex digits, or with a key "hmac-sha256:" and 64. It is
// for people and caches. Without a key another text with the same one is made in seconds: compare [Hash] instead.
func Fingerprint(text string, key []byte) string { return digest.Fingerprint(key, text) }

// Hash returns the hash of a text: "sha256:" and 64 hex digits, or with a key "hmac-sha256:" and 64. Equal hashes under
// one key mean equal texts.
func Hash(text string, key []byte) string { return digest.Hash(key, []byte(text)) }

// Canonical returns the record as canonical JSON (RFC 8785): the bytes that are
// stored and hashed. A text that is not UTF-8 is an error that names the field.
func Canonical(m *Manifest) ([]byte, error) {
	return appendCanonical(make([]byte, 0, m.sizeHint()), m)
}

func appendCanonical(buf []byte, m *Manifest) ([]byte, error) {
	b, err := encoder().Append(buf, m)
	if err != nil {
		return nil, fmt.Errorf("manifest %s: %w", m.ManifestID, err)
	}
	return b, nil
}

// ContentHash returns the SHA-256 of what the record says about the work. It omits
// what differs between two runs of the same work:
//
//   - of the head all but schema_version, compiler_version and profile;
//   - content_hash, prev, hash, and the groups cache and requests, which are about other records;
//   - of runs generation, incarnation, attempts, queue_ms, duration_ms,
//     bytes_in, bytes_out and cached_from, and the state cached counts as
//     succeeded; of hook_sources cached_from;
//   - of plugins generation, restarts and detail; of calls call_id and input;
//   - of budgets used_ms and used_chars;
//   - of diagnostics the message, which may hold times.
//
// m is not changed. The hash is not keyed, but covers hashes and fingerprints, which may be.
func ContentHash(m *Manifest) (string, error) {
	sum, _, err := hashContent(make([]byte, 0, m.sizeHint()), m)
	return sum, err
}

// hashContent is ContentHash with a buffer, which it returns emptied.
func hashContent(buf []byte, m *Manifest) (string, []byte, error) {
	c := content(m)
	b, err := appendCanonical(buf[:0], &c)
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

// Seal completes a record and closes it: it sets seq and prev behind the thread's last record (nil: this is the
// first), the content hash, and then the hash over all of it. With a key the hash is HMAC-SHA-256, else SHA-256.
//
// Everything else must be set before; a record that was changed afterwards can be sealed again.
func Seal(m *Manifest, last *Link, key []byte) error {
	_, err := m.seal(make([]byte, 0, m.sizeHint()), last, key)
	return err
}

// seal returns the canonical bytes that the hash covers.
func (m *Manifest) seal(buf []byte, last *Link, key []byte) ([]byte, error) {
	m.Complete()
	m.Seq, m.Prev = 0, ""
	if last != nil {
		m.Seq, m.Prev = last.Seq+1, last.Hash
	}
	var err error
	if m.ContentHash, buf, err = hashContent(buf, m); err != nil {
		return nil, err
	}
	stored := m.unsigned()
	data, err := appendCanonical(buf, &stored)
	if err != nil {
		return nil, err
	}
	m.Hash = digest.Hash(key, data)
	return data, nil
}

// SealRecord is [Seal], and returns the record as it is stored: with cache.actual null. The record's data is written
// to buf if it is large enough, and valid until the caller uses buf again.
func SealRecord(buf []byte, m *Manifest, last *Link, key []byte) (Record, error) {
	data, err := m.seal(buf, last, key)
	if err != nil {
		return Record{}, err
	}
	at := -1
	scanObject(data, func(name, _ []byte, start int) bool {
		if string(name) == "hash" {
			at = start + 1 // behind the quote
		}
		return at < 0
	})
	return Record{Index: m.Index(), Data: slices.Insert(data, at, []byte(m.Hash)...)}, nil
}

// RecordHash returns what the record's hash should be. It covers the canonical
// bytes with an empty hash and with cache.actual null. m is not changed.
func RecordHash(m *Manifest, key []byte) (string, error) {
	unsigned := m.unsigned()
	b, err := Canonical(&unsigned)
	if err != nil {
		return "", err
	}
	return digest.Hash(key, b), nil
}

func (m *Manifest) unsigned() Manifest {
	u := *m
	u.Hash, u.Cache.Actual = "", nil
	return u
}

// Index has copies of a record's fields that a store keeps beside it to find it.
// Its JSON is one row of "grapnel manifest list".
type Index struct {
	ManifestID      string         `json:"manifest_id"`
	Kind            RecordKind     `json:"kind"`
	Seq             uint64         `json:"seq"`
	WorkspaceID     string         `json:"workspace_id"`
	ThreadID        string         `json:"thread_id"`
	TurnID          string         `json:"turn_id"`
	CreatedAt       time.Time      `json:"created_at"`
	Actor           string         `json:"actor,omitempty"`
	Profile         phases.Profile `json:"profile"`
	FingerprintFull string         `json:"fingerprint_full"`
	Hash            string         `json:"hash"`
}

// Index returns the record's index. In lists FingerprintFull is empty where there is no prompt.
func (m *Manifest) Index() Index {
	return Index{
		ManifestID: m.ManifestID, Kind: m.Kind, Seq: m.Seq, WorkspaceID: m.WorkspaceID, ThreadID: m.ThreadID, TurnID: m.TurnID,
		CreatedAt: m.CreatedAt, Actor: m.Actor, Profile: m.Profile, FingerprintFull: m.FingerprintFull, Hash: m.Hash,
	}
}

// Record is one stored record: its canonical bytes, and the index and the encoded outline as the store has them; without
// an outline it is nil.
type Record struct {
	Index   Index
	Data    []byte
	Outline []byte
}

// Chain is the sign-off of one thread's records. A store keeps one beside the records of each thread and renews it
// with each record, so that records removed at either end are noticed. First and Before account for those that
// retention removes at the front. Without records, all but the ids is zero.
type Chain struct {
	WorkspaceID string `json:"workspace_id"`
	ThreadID    string `json:"thread_id"`
	// First is the seq of the first record that is still kept, and Before the hash
	// of the one in front of it; empty while none was removed.
	First  uint64 `json:"first"`
	Before string `json:"before"`
	// Next is the seq of the next record, and Last the hash of the last one; empty while there is none.
	Next uint64 `json:"next"`
	Last string `json:"last"`
	// LastAt is when the last record was made: no later one is from before that.
	LastAt time.Time `json:"last_at,omitzero"`
	// Signature covers all of it: see [Chain.Sign].
	Signature string `json:"signature"`
}

// Link returns what [Seal] takes for the thread's next record: nil for the first.
func (c *Chain) Link() *Link {
	if c.Next == 0 {
		return nil
	}
	return &Link{Seq: c.Next - 1, Hash: c.Last}
}

// Sign sets the signature: HMAC-SHA-256 with a key. Without one it is a plain SHA-256, which shows accidents only. An
// attacker can restore an older sign-off and remove the records behind it; only a hash kept elsewhere shows that.
func (c *Chain) Sign(key []byte) error {
	var err error
	c.Signature, err = c.signature(key)
	return err
}

func (c *Chain) signature(key []byte) (string, error) {
	unsigned := *c
	unsigned.Signature = ""
	b, err := chainEncoder().Append(nil, &unsigned)
	if err != nil {
		return "", err
	}
	return digest.Hash(key, b), nil
}
