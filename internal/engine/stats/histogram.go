package stats

import (
	"math"
	"math/bits"
	"sync/atomic"
	"time"
)

// The buckets of a Histogram are log-linear, as in HdrHistogram, in whole microseconds: below 16 µs each has its own
// bucket, above that each doubling has 16. A bucket is never wider than a sixteenth of its durations. 384 buckets
// reach to 134 s; the last one also counts what is longer.
const (
	subBits = 4 // the logarithm of the buckets per doubling
	subs    = 1 << subBits
	topBits = 27 // the length in bits of the longest duration with its own bucket: 2^27 µs
	buckets = subs + (topBits-subBits)*subs
)

// Histogram counts durations in 3 KiB. The zero value is ready to use; it is safe for
// concurrent use and must not be copied. Recording takes no lock and does not allocate.
type Histogram struct {
	counts  [buckets]atomic.Uint64
	sum     atomic.Int64 // nanoseconds
	longest atomic.Int64 // nanoseconds
}

// Record counts one duration; negative ones, after a clock was set back, count as 0.
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

// Snapshot returns what has been counted so far.
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

func (h *Histogram) latency() Latency {
	s := h.Snapshot()
	return s.latency()
}

// Snapshot is a histogram at one moment. The zero value is empty.
type Snapshot struct {
	counts  [buckets]uint64
	total   uint64
	sum     time.Duration
	longest time.Duration
}

// Within is how many durations were shorter than d, rounded down to an edge of a bucket: a
// whole microsecond up to 16 µs, then a sixteenth between two powers of two, up to 134 s.
func (s *Snapshot) Within(d time.Duration) uint64 {
	var below uint64
	for _, n := range s.counts[:bucketOf(max(d, 0))] {
		below += n
	}
	return below
}

// Merge adds the durations of o.
func (s *Snapshot) Merge(o *Snapshot) {
	for i, n := range o.counts {
		s.counts[i] += n
	}
	s.total += o.total
	s.sum += o.sum
	s.longest = max(s.longest, o.longest)
}

// Quantile returns the duration that the share q of all durations does not exceed, by nearest rank; 0 for an empty
// snapshot. Values of q outside 0 to 1 count as the nearest bound, NaN as 0. It is within a thirty-second of the exact
// value, or 1 µs, up to 134 s; the longest duration, which 1 gives, is exact.
func (s *Snapshot) Quantile(q float64) time.Duration {
	if s.total == 0 || q >= 1 {
		return s.longest
	}
	rank := rankOf(q, s.total)
	var below uint64
	for i, n := range s.counts {
		if below += n; below >= rank {
			return min(middleOf(i), s.longest)
		}
	}
	return s.longest // unreachable: the total is the sum of the counts
}

func rankOf(q float64, n uint64) uint64 {
	if !(q > 0) { // NaN too
		return 1
	}
	return min(n, max(1, uint64(math.Ceil(q*float64(n)))))
}

func bucketOf(d time.Duration) int {
	us := uint64(d / time.Microsecond) //nolint:gosec // not negative
	if us < subs {
		return int(us)
	}
	// The bits after the leading one say where in its doubling the duration lies.
	doubling := bits.Len64(us) - subBits - 1
	place := subs*(doubling+1) + int(us>>doubling)&(subs-1) //nolint:gosec // five digits
	return min(place, buckets-1)
}

func middleOf(bucket int) time.Duration {
	if bucket < subs {
		return time.Duration(bucket)*time.Microsecond + time.Microsecond/2
	}
	doubling := bucket/subs - 1
	width := time.Microsecond << doubling
	return time.Duration(subs+bucket%subs)*width + width/2
}

// Latency is a distribution of durations. Quantiles are within 3 % of the exact ones; all
// fields are 0 if nothing was counted.
type Latency struct {
	Count    uint64    `json:"count"`
	P50MS    float64   `json:"p50_ms"`
	P99MS    float64   `json:"p99_ms"`
	MaxMS    float64   `json:"max_ms"`
	snapshot *Snapshot // nil in a value that was decoded from JSON
}

func (s *Snapshot) latency() Latency {
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	return Latency{Count: s.total, P50MS: ms(s.Quantile(0.5)), P99MS: ms(s.Quantile(0.99)), MaxMS: ms(s.longest), snapshot: s}
}

// Sum is the sum of all durations; 0 for a value that was decoded from JSON.
func (l *Latency) Sum() time.Duration {
	if l.snapshot == nil {
		return 0
	}
	return l.snapshot.sum
}

// Within is how many durations were shorter than d: exact for powers of two of a microsecond up to 2²⁷, else rounded
// down to a bound that is at most a sixteenth less. It is 0 for a value that was decoded from JSON.
func (l *Latency) Within(d time.Duration) uint64 {
	if l.snapshot == nil {
		return 0
	}
	return l.snapshot.Within(d)
}

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

// Sizes is the distribution of sizes since the start.
type Sizes struct {
	Count  uint64   `json:"count"`
	Bytes  uint64   `json:"bytes"` // the sum
	Within []uint64 `json:"-"`     // Within counts the sizes up to each of SizeBounds
}

type sizes struct {
	counts [sizeBounds + 1]atomic.Uint64
	bytes  atomic.Uint64
}

func (s *sizes) record(n int) {
	// The first power of four that is not smaller, counted from the smallest bound.
	place := max(0, bits.Len(uint(n-1))-smallestBits+1) / 2
	s.counts[min(place, sizeBounds)].Add(1)
	s.bytes.Add(uint64(n)) //nolint:gosec // positive
}

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
