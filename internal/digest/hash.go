package digest

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"

	"github.com/cespare/xxhash/v2"
)

// Prefixes of the textual hashes; the rest is lower-case hex.
const (
	PrefixXXH64      = "xxh64:"       // 16 hex digits follow
	PrefixSHA256     = "sha256:"      // 64 hex digits follow
	PrefixHMACSHA256 = "hmac-sha256:" // 64 hex digits follow
)

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

// Fingerprint is "xxh64:" and the 16 hex digits of XXH64 (seed 0) without a key, and [HMACSHA256] with one: a short name
// of a text for people and caches. Without a key anybody can make another text with the same fingerprint in seconds:
// compare [Hash] instead.
func Fingerprint(key []byte, text string) string {
	if len(key) == 0 {
		return formatXXH64(xxhash.Sum64String(text))
	}
	return HMACSHA256(key, []byte(text))
}

// Hash is [SHA256] without a key and [HMACSHA256] with one: equal hashes mean equal texts. A keyed one does not let
// others guess a short text.
func Hash(key, b []byte) string {
	if len(key) == 0 {
		return SHA256(b)
	}
	return HMACSHA256(key, b)
}

// Hasher makes the [Fingerprint] and the [Hash] of a text that comes in several parts. Not safe for concurrent use.
type Hasher struct {
	fast   *xxhash.Digest // nil with a key
	strong hash.Hash
	buf    [1 << 10]byte // a part on its way, so that no string is copied to the heap
}

// NewHasher returns a Hasher with that key. The key is copied; nil or empty means none.
func NewHasher(key []byte) *Hasher {
	if len(key) == 0 {
		return &Hasher{fast: xxhash.New(), strong: sha256.New()}
	}
	return &Hasher{strong: hmac.New(sha256.New, key)}
}

// WriteString adds a part.
func (h *Hasher) WriteString(s string) { // no hash returns an error
	if h.fast != nil {
		_, _ = h.fast.WriteString(s)
	}
	for len(s) > 0 {
		n := copy(h.buf[:], s)
		_, _ = h.strong.Write(h.buf[:n])
		s = s[n:]
	}
}

// Sums returns the fingerprint and the hash of everything written so far; more may follow.
func (h *Hasher) Sums() (fingerprint, sum string) {
	sum = hex.EncodeToString(h.strong.Sum(nil))
	if h.fast == nil {
		sum = PrefixHMACSHA256 + sum
		return sum, sum
	}
	return formatXXH64(h.fast.Sum64()), PrefixSHA256 + sum
}

// Reset forgets what was written and keeps the key.
func (h *Hasher) Reset() {
	if h.strong.Reset(); h.fast != nil {
		h.fast.Reset()
	}
}

// formatXXH64 takes one allocation, for the result.
func formatXXH64(sum uint64) string {
	out := append(make([]byte, 0, 32), PrefixXXH64...)
	return string(hex.AppendEncode(out, binary.BigEndian.AppendUint64(nil, sum)))
}
