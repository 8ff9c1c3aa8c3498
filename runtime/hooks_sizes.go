package runtime

import (
	"math/bits"
	"sync/atomic"
)

// The bounds of sizes are powers of four, from 64 bytes to 16 MiB, the largest frame.
const (
	smallestBits = 6
	sizeBounds   = 10
)

// SizeBounds are the bounds that [Sizes] counts by, in bytes, ascending.
func SizeBounds() []uint64 {
	all := make([]uint64, sizeBounds)
	for i := range all {
		all[i] = 1 << (smallestBits + 2*i)
	}
	return all
}

// Sizes are how large something was, from the beginning.
type Sizes struct {
	Count uint64 `json:"count"`
	// Bytes is the sum.
	Bytes uint64 `json:"bytes"`
	// Within has a number for each of SizeBounds: how many were not larger.
	Within []uint64 `json:"-"`
}

// sizes counts them. The zero value is ready.
type sizes struct {
	counts [sizeBounds + 1]atomic.Uint64
	bytes  atomic.Uint64
}

// record counts one size, which is positive.
func (s *sizes) record(n int) {
	// The first power of four that is not smaller, counted from the smallest bound.
	place := max(0, bits.Len(uint(n-1))-smallestBits+1) / 2
	s.counts[min(place, sizeBounds)].Add(1)
	s.bytes.Add(uint64(n)) //nolint:gosec // positive
}

// snapshot is what has been counted so far.
func (s *sizes) snapshot() Sizes {
	out := Sizes{Bytes: s.bytes.Load(), Within: make([]uint64, sizeBounds)}
	for i := range s.counts {
		out.Count += s.counts[i].Load()
		if i < sizeBounds {
			out.Within[i] = out.Count
		}
	}
	return out
}
