package digest_test

import (
	"bytes"
	"fmt"
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
		"":     "xxh64:ef46db3751d8e999",
		"a":    "xxh64:d24ec4f1a98c6e5b",
		"as":   "xxh64:1c330fb2d66be179",
		"asd":  "xxh64:631c37ce72a97393",
		"asdf": "xxh64:415872f599cea71e",
		"abc":  "xxh64:44bc2cf5ad770999",
		"Nobody inspects the spammish repetition":                         "xxh64:fbcea83c8a378bf1",
		"Call me Ishmael. Some years ago--never mind how long precisely-": "xxh64:02a2e85470d6fd96",
	} {
		if diff := cmp.Diff(digest.XXH64([]byte(input)), want); diff != "" {
			t.Errorf("XXH64(%q) got/want:\n%s", input, diff)
		}
		if diff := cmp.Diff(digest.XXH64String(input), want); diff != "" {
			t.Errorf("XXH64String(%q) got/want:\n%s", input, diff)
		}
	}
}

func TestSHA256Vectors(t *testing.T) {
	t.Parallel()
	for input, want := range map[string]string{
		"":    "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
		"abc": "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
	} {
		if diff := cmp.Diff(digest.SHA256([]byte(input)), want); diff != "" {
			t.Errorf("SHA256(%q) got/want:\n%s", input, diff)
		}
	}
}

func TestHMACSHA256Vectors(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, key, data, want string
	}{
		{
			"RFC 4231 case 1", strings.Repeat("\x0b", 20), "Hi There",
			"hmac-sha256:b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7",
		},
		{
			"RFC 4231 case 2", "Jefe", "what do ya want for nothing?",
			"hmac-sha256:5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := digest.HMACSHA256([]byte(tt.key), []byte(tt.data))
			if diff := cmp.Diff(got, tt.want); diff != "" {
				t.Errorf("got/want:\n%s", diff)
			}
			if got := digest.Fingerprint([]byte(tt.key), []byte(tt.data)); got != tt.want {
				t.Errorf("Fingerprint with a key = %s, want %s", got, tt.want)
			}
		})
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
			if fingerprint != digest.Fingerprint(key, whole.Bytes()) || sum != digest.Hash(key, whole.Bytes()) {
				t.Fatalf("key %q, text %q: fingerprint %s, hash %s", key, whole.String(), fingerprint, sum)
			}
		}
	}
}

func ExampleHasher() {
	h := digest.NewHasher(nil)
	for _, part := range []string{"## Identity", "\n\n", "You are Grapnel."} {
		h.WriteString(part)
	}
	fmt.Println(h.Sums())
	// Output:
	// xxh64:eb76e2437ab1b463 sha256:9511917d77a1a9884f8650b7ee49db4f0e120cbd85db6e07e48ffd70b779da97
}

func BenchmarkHasher(b *testing.B) {
	text := strings.Repeat("stable section text ", 50)
	b.SetBytes(int64(4 * len(text)))
	b.ReportAllocs()
	h := digest.NewHasher(nil)
	for b.Loop() {
		h.Reset()
		for range 4 {
			h.WriteString(text)
		}
		_, _ = h.Sums()
	}
}
