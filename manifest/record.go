package manifest

import (
	"errors"
	"slices"
	"time"

	"github.com/grapnelhq/grapnel/internal/digest"
	"github.com/grapnelhq/grapnel/phases"
)

// Index is what a store keeps beside a record to find it by: copies of some of
// its fields. Its JSON is one row of "grapnel manifest list".
type Index struct {
	ManifestID      string         `json:"manifest_id"`
	Seq             uint64         `json:"seq"`
	WorkspaceID     string         `json:"workspace_id"`
	ThreadID        string         `json:"thread_id"`
	TurnID          string         `json:"turn_id"`
	CreatedAt       time.Time      `json:"created_at"`
	Profile         phases.Profile `json:"profile"`
	FingerprintFull string         `json:"fingerprint_full"`
	Hash            string         `json:"hash"`
}

// Index returns the record's index.
func (m *Manifest) Index() Index {
	return Index{
		ManifestID: m.ManifestID, Seq: m.Seq, WorkspaceID: m.WorkspaceID, ThreadID: m.ThreadID, TurnID: m.TurnID,
		CreatedAt: m.CreatedAt, Profile: m.Profile, FingerprintFull: m.FingerprintFull, Hash: m.Hash,
	}
}

// Record is one stored record: its canonical bytes, and the index as the store
// has it.
type Record struct {
	Index Index
	Data  []byte
}

// SealRecord is [Seal], and returns the record as it is stored: with cache.actual
// null, whatever m has there. It encodes the record once less than Seal and
// [Canonical] together.
func SealRecord(m *Manifest, last *Link, key []byte) (Record, error) {
	return SealRecordIn(make([]byte, 0, sizeHint), m, last, key)
}

// SealRecordIn is [SealRecord] with room of the caller's: the record's data stand
// there if there is enough of it, until the caller uses the room again. A store
// that keeps one record after the other allocates nothing for their data.
func SealRecordIn(room []byte, m *Manifest, last *Link, key []byte) (Record, error) {
	m.place(last)
	var err error
	if m.ContentHash, room, err = hashContent(room[:0], m); err != nil {
		return Record{}, err
	}
	stored := m.unsigned()
	data, err := appendCanonical(room, &stored)
	if err != nil {
		return Record{}, err
	}
	m.Hash = sumOf(data, key)
	at := -1
	scanObject(data, func(name, _ []byte, start int) bool {
		if string(name) == "hash" {
			at = start + 1 // behind the quote
		}
		return at < 0
	})
	if at < 0 {
		return Record{}, errors.New("manifest: the canonical form has no hash")
	}
	return Record{Index: m.Index(), Data: slices.Insert(data, at, []byte(m.Hash)...)}, nil
}

// Chain is the sign-off of one thread's records: which of them should be there.
// A store keeps one beside the records of each thread and renews it with each
// record, so that records which are taken away at either end are missed. Those
// that retention takes away at the front are signed off by First and Before.
//
// The zero value but for the ids is the chain of a thread without records.
type Chain struct {
	WorkspaceID string `json:"workspace_id"`
	ThreadID    string `json:"thread_id"`
	// First is the seq of the first record that is still there, and Before the
	// hash of the one in front of it; empty while none was taken away.
	First  uint64 `json:"first"`
	Before string `json:"before"`
	// Next is the seq that the next record will have, and Last the hash of the
	// last one; empty while there was none.
	Next uint64 `json:"next"`
	Last string `json:"last"`
	// Signature covers all of it: see [Chain.Sign].
	Signature string `json:"signature"`
}

// chainEncoder is the plan of the type: immutable and safe for concurrent use.
//
//nolint:gochecknoglobals // an immutable table
var chainEncoder = digest.EncoderOf[Chain]()

// Link returns what [Seal] takes for the thread's next record: nil for the
// first.
func (c *Chain) Link() *Link {
	if c.Next == 0 {
		return nil
	}
	return &Link{Seq: c.Next - 1, Hash: c.Last}
}

// Sign sets the signature: HMAC-SHA-256 with a key. Without one it is a plain
// SHA-256, which shows accidents and no more.
//
// Somebody who kept an older sign-off can put it back and take away the records
// behind it; only a hash that was kept elsewhere shows that.
func (c *Chain) Sign(key []byte) error {
	var err error
	c.Signature, err = c.signature(key)
	return err
}

func (c *Chain) signature(key []byte) (string, error) {
	unsigned := *c
	unsigned.Signature = ""
	b, err := chainEncoder.Append(nil, &unsigned)
	if err != nil {
		return "", err
	}
	return sumOf(b, key), nil
}

// sumOf is HMAC-SHA-256 with a key, else SHA-256.
func sumOf(b, key []byte) string {
	if len(key) == 0 {
		return digest.SHA256(b)
	}
	return digest.HMACSHA256(key, b)
}
