package digest

import (
	"crypto/hmac"
	"crypto/sha256"
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

// SHA256 returns "sha256:" and the 64 hex digits of SHA-256 over b.
func SHA256(b []byte) string {
	sum := sha256.Sum256(b)
	return formatHex(PrefixSHA256, sum[:])
}

// HMACSHA256 returns "hmac-sha256:" and the 64 hex digits of HMAC-SHA-256
// over b. The key may have any length; what a key is worth is its owner's
// business, so an empty one is not refused here.
func HMACSHA256(key, b []byte) string {
	mac := hmac.New(sha256.New, key)
	mac.Write(b) // a hash never returns an error
	return formatHex(PrefixHMACSHA256, mac.Sum(nil))
}

// Fingerprint is [XXH64] without a key and [HMACSHA256] with one: the rule of
// every fingerprint in a manifest. A fingerprint made with a key cannot be
// used to guess a short secret text.
func Fingerprint(key, b []byte) string {
	if len(key) == 0 {
		return XXH64(b)
	}
	return HMACSHA256(key, b)
}

var (
	_ io.Writer       = (*Hasher)(nil)
	_ io.StringWriter = (*Hasher)(nil)
)

// Hasher makes the [Fingerprint] of a text that comes in several parts,
// without joining them. The zero value is ready and has no key; [NewHasher]
// makes one with a key. Not safe for concurrent use.
type Hasher struct {
	plain   xxhash.Digest
	started bool      // plain has been reset to its seed
	keyed   hash.Hash // nil without a key
}

// NewHasher returns a Hasher whose Sum equals [Fingerprint] with that key. The
// key is copied; nil or empty means none.
func NewHasher(key []byte) *Hasher {
	if len(key) == 0 {
		return &Hasher{}
	}
	return &Hasher{keyed: hmac.New(sha256.New, key)}
}

// Write adds b to what is hashed. It never fails.
func (h *Hasher) Write(b []byte) (int, error) {
	if h.keyed != nil {
		return h.keyed.Write(b)
	}
	h.start()
	return h.plain.Write(b)
}

// WriteString adds the bytes of s to what is hashed. It never fails, and
// copies nothing unless there is a key.
func (h *Hasher) WriteString(s string) (int, error) {
	if h.keyed != nil {
		return io.WriteString(h.keyed, s)
	}
	h.start()
	return h.plain.WriteString(s)
}

// Sum returns the hash of everything written so far; more may follow.
func (h *Hasher) Sum() string {
	if h.keyed != nil {
		return formatHex(PrefixHMACSHA256, h.keyed.Sum(nil))
	}
	h.start()
	return formatXXH64(h.plain.Sum64())
}

// Reset forgets what was written and keeps the key.
func (h *Hasher) Reset() {
	h.started = false
	if h.keyed != nil {
		h.keyed.Reset()
	}
}

// start gives the zero digest its seed; xxhash's own zero value has none.
func (h *Hasher) start() {
	if !h.started {
		h.plain.Reset()
		h.started = true
	}
}

// formatXXH64 costs one allocation, the result; strconv and fmt cost more.
func formatXXH64(sum uint64) string {
	const digits = "0123456789abcdef"
	var out [len(PrefixXXH64) + 16]byte
	copy(out[:], PrefixXXH64)
	for i := len(out) - 1; i >= len(PrefixXXH64); i-- {
		out[i] = digits[sum&0xf]
		sum >>= 4
	}
	return string(out[:])
}

// formatHex serves the SHA-256 family: 32 bytes of sum.
func formatHex(prefix string, sum []byte) string {
	out := make([]byte, 0, len(PrefixHMACSHA256)+2*sha256.Size)
	return string(hex.AppendEncode(append(out, prefix...), sum))
}
