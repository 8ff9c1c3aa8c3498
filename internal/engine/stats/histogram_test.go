package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// exact is the quantile by nearest rank of sorted durations.
func exact(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	rank := int(math.Ceil(q * float64(len(sorted))))
	return sorted[min(len(sorted), max(1, rank))-1]
}

// recorded is a histogram of the durations, merged from two.
func recorded(ds []time.Duration) *Histogram {
	var h, half Histogram
	for i, d := range ds {
		if i%2 == 0 {
			h.Record(d)
		} else {
			half.Record(d)
		}
	}
	h.merge(&half)
	return &h
}

// bound is the error that quantile promises not to exceed.
func bound(of time.Duration) time.Duration { return max(of/32, time.Microsecond) }

// checkQuantiles compares a snapshot with the durations that are in it.
func checkQuantiles(t *testing.T, s *Histogram, ds []time.Duration) {
	t.Helper()
	sorted := slices.Sorted(slices.Values(ds))
	if got, want := s.total, uint64(len(ds)); got != want {
		t.Fatalf("Count = %d, want %d", got, want)
	}
	if got, want := s.longest, exact(sorted, 1); got != want {
		t.Fatalf("Max = %v, want %v", got, want)
	}
	for _, q := range []float64{0, 0.01, 0.25, 0.5, 0.75, 0.9, 0.99, 0.999, 1} {
		got, want := s.Quantile(q), exact(sorted, q)
		if off := (got - want).Abs(); off > bound(want) {
			t.Fatalf("Quantile(%v) of %d durations = %v, want %v ± %v", q, len(ds), got, want, bound(want))
		}
		if got > s.longest {
			t.Fatalf("Quantile(%v) = %v is more than Max %v", q, got, s.longest)
		}
	}
}

// shapes draw durations as calls take them, and as they do not.
func shapes(r *rand.Rand) map[string]func() time.Duration {
	return map[string]func() time.Duration{
		"a usual call": func() time.Duration { return time.Duration(float64(100*time.Microsecond) * math.Exp(r.NormFloat64())) },
		"a heavy tail": func() time.Duration {
			return min(2*time.Minute, time.Duration(float64(time.Millisecond)/(1-r.Float64())))
		},
		"two kinds":     func() time.Duration { return []time.Duration{80 * time.Microsecond, time.Second}[r.IntN(2)] },
		"every length":  func() time.Duration { return time.Duration(1) << r.IntN(37) },
		"near a border": func() time.Duration { return 16*time.Microsecond<<r.IntN(20) - time.Duration(r.IntN(2)) },
	}
}

func TestQuantileAgainstExact(t *testing.T) {
	t.Parallel()
	for name := range shapes(nil) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(7, uint64(len(name))))
			draw := shapes(r)[name]
			for range 50 {
				ds := make([]time.Duration, 1+r.IntN(1000))
				for i := range ds {
					ds[i] = draw()
				}
				checkQuantiles(t, recorded(ds), ds)
			}
		})
	}
}

// TestWithin counts what is shorter, exactly at every power of two of a
// microsecond, and never too many elsewhere.
func TestWithin(t *testing.T) {
	t.Parallel()
	for name, draw := range shapes(rand.New(rand.NewPCG(3, 4))) {
		ds := make([]time.Duration, 1000)
		var sum time.Duration
		for i := range ds {
			ds[i] = draw()
			sum += ds[i]
		}
		s := recorded(ds)
		if s.sum != sum {
			t.Errorf("%s: Sum = %v, want %v", name, s.sum, sum)
		}
		shorter := func(than time.Duration) (n uint64) {
			for _, d := range ds {
				if d < than {
					n++
				}
			}
			return n
		}
		for bits := range topBits {
			edge := time.Microsecond << bits
			if got, want := s.within(edge), shorter(edge); got != want {
				t.Errorf("%s: Within(%v) = %d, want %d", name, edge, got, want)
			}
			if got, most := s.within(edge+edge/3), shorter(edge+edge/3); got > most {
				t.Errorf("%s: Within(%v) = %d, more than the %d that there are", name, edge+edge/3, got, most)
			}
		}
		if got := s.within(-1); got != 0 {
			t.Errorf("%s: Within(-1) = %d", name, got)
		}
	}
}
