package stats

import (
	"math"
	"math/bits"
	"time"
)

// The buckets of a histogram are log-linear, as in HdrHistogram, in whole microseconds: below 16 µs each has its own
// bucket, above that each doubling has 16. A bucket is never wider than a sixteenth of its durations. 384 buckets
// reach to 134 s; the last one also counts what is longer.
const (
	subBits = 4 // the logarithm of the buckets per doubling
	subs    = 1 << subBits
	topBits = 27 // the length in bits of the longest duration with its own bucket: 2^27 µs
	buckets = subs + (topBits-subBits)*subs
)

// Histogram counts durations in 3 KiB; the zero value is empty. Its user locks it.
type Histogram struct {
	counts  [buckets]uint64
	total   uint64
	sum     time.Duration
	longest time.Duration
}

// Record counts one duration; negative ones, after a clock was set back, count as 0.
func (h *Histogram) Record(d time.Duration) {
	d = max(d, 0)
	h.counts[bucketOf(d)]++
	h.total++
	h.sum += d
	h.longest = max(h.longest, d)
}

// within is how many durations were shorter than d, rounded down to an edge of a bucket: a
// whole microsecond up to 16 µs, then a sixteenth between two powers of two, up to 134 s.
func (h *Histogram) within(d time.Duration) uint64 {
	var below uint64
	for _, n := range h.counts[:bucketOf(max(d, 0))] {
		below += n
	}
	return below
}

// merge adds the durations of o.
func (h *Histogram) merge(o *Histogram) {
	for i, n := range o.counts {
		h.counts[i] += n
	}
	h.total += o.total
	h.sum += o.sum
	h.longest = max(h.longest, o.longest)
}

// Quantile returns the duration that the share q of all durations does not exceed, by nearest rank; 0 for none. It is
// within a thirty-second of the exact value, or 1 µs, up to 134 s.
func (h *Histogram) Quantile(q float64) time.Duration {
	rank := max(1, uint64(math.Ceil(q*float64(h.total))))
	var below uint64
	for i, n := range h.counts {
		if below += n; below >= rank {
			return min(middleOf(i), h.longest)
		}
	}
	return 0
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
	Count     uint64     `json:"count"`
	P50MS     float64    `json:"p50_ms"`
	P99MS     float64    `json:"p99_ms"`
	MaxMS     float64    `json:"max_ms"`
	histogram *Histogram // nil in a value that was decoded from JSON
}

// latency is the distribution so far, in a copy.
func (h *Histogram) latency() Latency {
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	own := *h
	return Latency{Count: h.total, P50MS: ms(h.Quantile(0.5)), P99MS: ms(h.Quantile(0.99)), MaxMS: ms(h.longest), histogram: &own}
}

// Sum is the sum of all durations; 0 for a value that was decoded from JSON.
func (l *Latency) Sum() time.Duration {
	if l.histogram == nil {
		return 0
	}
	return l.histogram.sum
}

// Within is how many durations were shorter than d: exact for powers of two of a microsecond up to 2²⁷, else rounded
// down to a bound that is at most a sixteenth less. It is 0 for a value that was decoded from JSON.
func (l *Latency) Within(d time.Duration) uint64 {
	if l.histogram == nil {
		return 0
	}
	return l.histogram.within(d)
}

// SizeBounds are the bounds that [Sizes] counts by, in bytes, ascending: powers of four up to 16 MiB, the largest frame.
func SizeBounds() []uint64 {
	return []uint64{64, 256, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20}
}

// Sizes is the distribution of sizes since the start.
type Sizes struct {
	Count  uint64   `json:"count"`
	Bytes  uint64   `json:"bytes"` // the sum
	Within []uint64 `json:"-"`     // Within counts the sizes up to each of SizeBounds
}

func (s *Sizes) record(n int) {
	s.Count++
	s.Bytes += uint64(n) //nolint:gosec // positive
	for i, bound := range SizeBounds() {
		if uint64(n) <= bound { //nolint:gosec // positive
			s.Within[i]++
		}
	}
}
