package digest

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"io"

	"github.com/cespare/xxhash/v2"
)

// Prefixes of the textual hashes; the rest is lower-case hex.
const (
	PrefixXXH64      = "xxh64:"       // 16 hex digits follow
	PrefixSHA256     = "sha256:"      // 64 hex digits follow
	PrefixHMACSHA256 = "hmac-sha256:" // 64 hex digits follow
)

// XXH64 returns "xxh64:" and the 16 hex digits of XXH64 (seed 0) over b.
func XXH64(b []byte) string { return formatXXH64(xxhash.Sum64(b)) }

// XXH64String is [XXH64] over the bytes of s, without copying them.
func XXH64String(s string) string { return formatXXH64(xxhash.Sum64String(s)) }

// Sum64 returns XXH64 (seed 0) over the bytes of s as a number.
func Sum64(s string) uint64 { return xxhash.Sum64String(s) }

// SHA256 returns "sha256:" and the 64 hex digits of SHA-256 over b.
func SHA256(b []byte) string {
	sum := sha256.Sum256(b)
	return PrefixSHA256 + hex.EncodeToString(sum[:])
}

// HMACSHA256 returns "hmac-sha256:" and the 64 hex digits of HMAC-SHA-256 over b. The key may have any length.
func HMACSHA256(key, b []byte) string {
	mac := hmac.New(sha256.New, key)
	mac.Write(b) // a hash never returns an error
	return PrefixHMACSHA256 + hex.EncodeToString(mac.Sum(nil))
}

// Fingerprint is [XXH64] without a key and [HMACSHA256] with one: the rule of every
// fingerprint in a manifest. A keyed one does not let others guess a short text.
func Fingerprint(key, b []byte) string {
	if len(key) == 0 {
		return XXH64(b)
	}
	return HMACSHA256(key, b)
}

// Hasher makes the [Fingerprint] of a text that comes in several parts. Write and
// WriteString never fail. Not safe for concurrent use.
type Hasher struct {
	hash   hash.Hash
	prefix string
}

// NewHasher returns a Hasher whose Sum equals [Fingerprint] with that key. The
// key is copied; nil or empty means none.
func NewHasher(key []byte) *Hasher {
	if len(key) == 0 {
		return &Hasher{xxhash.New(), PrefixXXH64}
	}
	return &Hasher{hmac.New(sha256.New, key), PrefixHMACSHA256}
}

// Write implements io.Writer.
func (h *Hasher) Write(b []byte) (int, error) { return h.hash.Write(b) }

// WriteString implements io.StringWriter. It copies s only if there is a key.
func (h *Hasher) WriteString(s string) (int, error) { return io.WriteString(h.hash, s) }

// Sum returns the hash of everything written so far; more may follow.
func (h *Hasher) Sum() string { return h.prefix + hex.EncodeToString(h.hash.Sum(nil)) }

// Reset forgets what was written and keeps the key.
func (h *Hasher) Reset() { h.hash.Reset() }

// formatXXH64 takes one allocation, for the result.
func formatXXH64(sum uint64) string {
	out := append(make([]byte, 0, 32), PrefixXXH64...)
	return string(hex.AppendEncode(out, binary.BigEndian.AppendUint64(nil, sum)))
}
