// Package latency keeps the distribution of many durations in a few kilobytes,
// for the p50 and p99 that an operator looks at.
//
// It is for showing, and for metrics whose bounds are its own ([Snapshot.Within]
// is exact at powers of two of a microsecond). And it knows no time windows: who
// wants the last minutes keeps a [Histogram] for each and merges what they hold.
//
// Start at [Histogram.Record] and [Histogram.Snapshot]; [Snapshot.Quantile] has
// the bound of its error.
//
// # The buckets
//
// They are log-linear, as in HdrHistogram: durations are counted in whole
// microseconds; below 16 µs each has a bucket of its own, and above that each
// doubling is cut into 16 buckets of the same width. A bucket is therefore never
// wider than a sixteenth of the durations in it, and its middle never further
// than a thirty-second from any of them. 384 buckets reach to 134 s, which is
// longer than any call of a plugin may take by default; what is longer counts in
// the last one.
//
// Recording is three atomic operations in the usual case, takes no lock, and does
// not allocate, so that it may stand in the path of every dispatch.
//
// Stability: internal.
package latency

import (
	"math"
	"math/bits"
	"sync/atomic"
	"time"
)

const (
	// subBits is the logarithm of the buckets of one doubling. One more would halve
	// the error and double the memory.
	subBits = 4
	subs    = 1 << subBits
	// topBits is the number of binary digits of the longest duration that has a
	// bucket of its own, in microseconds: 2^27 µs are 134 s.
	topBits = 27
	// buckets are the first, linear ones, and subs for each doubling above them.
	buckets = subs + (topBits-subBits)*subs
)

// Histogram counts durations. The zero value is empty and ready; it is safe for
// concurrent use and must not be copied. It has a fixed size of 3 KiB.
type Histogram struct {
	counts [buckets]atomic.Uint64
	// sum is in nanoseconds; it lasts for 292 years of calls.
	sum atomic.Int64
	// longest is exact, in nanoseconds: the one number that people ask for beside
	// quantiles, and the one that buckets blur most.
	longest atomic.Int64
}

// Record counts one duration. A negative one, which only a clock that was set
// back can give, counts as 0.
func (h *Histogram) Record(d time.Duration) {
	d = max(d, 0)
	h.counts[bucketOf(d)].Add(1)
	h.sum.Add(int64(d))
	for was := h.longest.Load(); int64(d) > was; was = h.longest.Load() {
		if h.longest.CompareAndSwap(was, int64(d)) {
			return
		}
	}
}

// Snapshot returns what has been counted so far. Durations that are recorded
// meanwhile are in it or not, each for itself.
func (h *Histogram) Snapshot() Snapshot {
	var s Snapshot
	for i := range h.counts {
		n := h.counts[i].Load()
		s.counts[i] = n
		s.total += n
	}
	s.sum, s.longest = time.Duration(h.sum.Load()), time.Duration(h.longest.Load())
	return s
}

// Snapshot is a histogram at one moment. The zero value is empty. It is a value
// of 3 KiB: pass pointers where it matters.
type Snapshot struct {
	counts  [buckets]uint64
	total   uint64
	sum     time.Duration
	longest time.Duration
}

// Count is how many durations were recorded.
func (s *Snapshot) Count() uint64 { return s.total }

// Max is the longest of them, exactly; 0 when there are none.
func (s *Snapshot) Max() time.Duration { return s.longest }

// Sum is all of them together, exactly.
func (s *Snapshot) Sum() time.Duration { return s.sum }

// Within is how many were shorter than d. That is exact where d is an edge of the
// buckets: up to 16 µs each whole microsecond, above that each power of two of a
// microsecond and the sixteenths between two of them, up to 134 s. For others it
// is that of the next edge below.
func (s *Snapshot) Within(d time.Duration) uint64 {
	var below uint64
	for _, n := range s.counts[:bucketOf(max(d, 0))] {
		below += n
	}
	return below
}

// Merge adds what o has counted, as if all of it had been recorded in one
// histogram.
func (s *Snapshot) Merge(o *Snapshot) {
	for i, n := range o.counts {
		s.counts[i] += n
	}
	s.total += o.total
	s.sum += o.sum
	s.longest = max(s.longest, o.longest)
}

// Quantile returns the duration that the share q of all does not exceed, by
// nearest rank: for n durations the ⌈q·n⌉th shortest, so that Quantile(0.5) of
// one duration is that one. q is taken as 0 when it is less or no number, and as
// 1 when it is more. An empty snapshot gives 0.
//
// The answer differs from the exact one by no more than a thirty-second of it, or
// 1 µs where that is more, for durations up to 134 s; and it is never more than
// [Snapshot.Max].
func (s *Snapshot) Quantile(q float64) time.Duration {
	if s.total == 0 {
		return 0
	}
	rank := rankOf(q, s.total)
	var below uint64
	for i, n := range s.counts {
		if below += n; below >= rank {
			return min(middleOf(i), s.longest)
		}
	}
	return s.longest // not reached: the total is the sum of the counts
}

// rankOf is the rank from 1 to n that the share q stands for.
func rankOf(q float64, n uint64) uint64 {
	if !(q > 0) { // also what is no number
		return 1
	}
	if q >= 1 {
		return n
	}
	return min(n, max(1, uint64(math.Ceil(q*float64(n)))))
}

// bucketOf is the place of a duration that is not negative.
func bucketOf(d time.Duration) int {
	us := uint64(d / time.Microsecond) //nolint:gosec // not negative
	if us < subs {
		return int(us)
	}
	// doubling counts from the first one that is cut up; the digits behind the
	// leading one say where in it the duration lies.
	doubling := bits.Len64(us) - subBits - 1
	place := subs*(doubling+1) + int(us>>doubling)&(subs-1) //nolint:gosec // five digits
	return min(place, buckets-1)
}

// middleOf is the middle of a bucket.
func middleOf(bucket int) time.Duration {
	if bucket < subs {
		return time.Duration(bucket)*time.Microsecond + time.Microsecond/2
	}
	doubling := bucket/subs - 1
	width := time.Microsecond << doubling
	return time.Duration(subs+bucket%subs)*width + width/2
}
