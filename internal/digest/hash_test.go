package digest_test

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/internal/digest"
)

// The vectors are those of the reference implementations: XXH64 with seed 0,
// FIPS 180-4 and RFC 4231.
func TestXXH64Vectors(t *testing.T) {
	t.Parallel()
	for input, want := range map[string]string{
		"":    "xxh64:ef46db3751d8e999",
		"a":   "xxh64:d24ec4f1a98c6e5b",
		"abc": "xxh64:44bc2cf5ad770999",
		"Call me Ishmael. Some years ago--never mind how long precisely-": "xxh64:02a2e85470d6fd96",
	} {
		if diff := cmp.Diff(digest.Fingerprint(nil, input), want); diff != "" {
			t.Errorf("%q got/want:\n%s", input, diff)
		}
	}
}

// Parts must not matter: a Hasher says what Fingerprint and Hash say of the whole.
func TestHasherEqualsTheWhole(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	for _, key := range [][]byte{nil, {}, []byte("operator's key")} {
		h := digest.NewHasher(key)
		for range 200 {
			h.Reset()
			var whole bytes.Buffer
			for range rng.IntN(6) {
				part := strings.Repeat("añ😀", rng.IntN(40)) + strings.Repeat("x", rng.IntN(3000))
				whole.WriteString(part)
				h.WriteString(part)
				h.Sums() // asking in between changes nothing
			}
			fingerprint, sum := h.Sums()
			if fingerprint != digest.Fingerprint(key, whole.String()) || sum != digest.Hash(key, whole.Bytes()) {
				t.Fatalf("key %q, text %q: fingerprint %s, hash %s", key, whole.String(), fingerprint, sum)
			}
		}
	}
}
