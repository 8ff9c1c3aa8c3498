// Package digesttest makes texts that XXH64 cannot tell apart, for tests of what must not trust it.
//
// Start at [Collide].
//
// Stability: internal.
package digesttest

import (
	"encoding/binary"
	"fmt"
	"math/bits"

	"github.com/grapnelhq/grapnel/internal/digest"
)

const (
	prime1 uint64 = 0x9E3779B185EBCA87
	prime2 uint64 = 0xC2B2AE3D27D4EB4F
)

// Collide returns another text of the same length and XXH64 (seed 0). The 8 bytes from at on and the 8 bytes from at+32
// on are replaced by letters and digits; at is a multiple of 8. XXH64 reads the text in stripes of 32 bytes into four
// lanes: whatever the first word does to its lane, the second one undoes. It panics for a text that is too short.
func Collide(text string, at int) string {
	if at%8 != 0 || at+40 > len(text)/32*32 {
		panic(fmt.Sprintf("digesttest: no two words of one lane from byte %d on in a text of %d bytes", at, len(text)))
	}
	out := []byte(text)
	word := func(i int) uint64 { return binary.LittleEndian.Uint64([]byte(text[i:])) }
	p1 := prime1
	lane := [4]uint64{p1 + prime2, prime2, 0, -p1}[at/8%4]
	for i := at % 32; i < at; i += 32 {
		lane = round(lane, word(i))
	}
	for n := uint64(0); ; n++ {
		copy(out[at:], fmt.Appendf(nil, "%08d", n))
		lead := round(lane, word(at)) - round(lane, binary.LittleEndian.Uint64(out[at:]))
		binary.LittleEndian.PutUint64(out[at+32:], word(at+32)+lead*inverse(prime2))
		if isPlain(out[at+32:at+40]) && string(out) != text && digest.Fingerprint(nil, string(out)) == digest.Fingerprint(nil, text) {
			return string(out)
		}
	}
}

func round(lane, word uint64) uint64 { return bits.RotateLeft64(lane+word*prime2, 31) * prime1 }

// inverse returns the number whose product with the odd n is 1 modulo 2^64, by Newton's method.
func inverse(n uint64) uint64 {
	x := n
	for range 5 {
		x *= 2 - n*x
	}
	return x
}

func isPlain(b []byte) bool {
	for _, c := range b {
		if (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'z') {
			return false
		}
	}
	return true
}
