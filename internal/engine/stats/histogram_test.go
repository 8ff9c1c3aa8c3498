package stats

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// exact is the quantile by nearest rank of sorted durations.
func exact(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	rank := int(math.Ceil(q * float64(len(sorted))))
	return sorted[min(len(sorted), max(1, rank))-1]
}

// bound is the error that Quantile promises not to exceed.
func bound(of time.Duration) time.Duration { return max(of/32, time.Microsecond) }

// recorded is a snapshot of the durations.
func recorded(ds []time.Duration) *Snapshot {
	var h Histogram
	for _, d := range ds {
		h.Record(d)
	}
	s := h.Snapshot()
	return &s
}

// checkQuantiles compares a snapshot with the durations that are in it.
func checkQuantiles(t *testing.T, s *Snapshot, ds []time.Duration) {
	t.Helper()
	sorted := slices.Sorted(slices.Values(ds))
	if got, want := s.total, uint64(len(ds)); got != want {
		t.Fatalf("Count = %d, want %d", got, want)
	}
	if got, want := s.Quantile(1), exact(sorted, 1); got != want {
		t.Fatalf("Max = %v, want %v", got, want)
	}
	for _, q := range []float64{0, 0.01, 0.25, 0.5, 0.75, 0.9, 0.99, 0.999, 1} {
		got, want := s.Quantile(q), exact(sorted, q)
		if off := (got - want).Abs(); off > bound(want) {
			t.Fatalf("Quantile(%v) of %d durations = %v, want %v ± %v", q, len(ds), got, want, bound(want))
		}
		if got > s.Quantile(1) {
			t.Fatalf("Quantile(%v) = %v is more than Max %v", q, got, s.Quantile(1))
		}
	}
}

// shapes draw durations as calls take them, and as they do not.
func shapes(r *rand.Rand) map[string]func() time.Duration {
	return map[string]func() time.Duration{
		"microseconds": func() time.Duration { return time.Duration(r.Int64N(int64(40 * time.Microsecond))) },
		"a usual call": func() time.Duration { return time.Duration(float64(100*time.Microsecond) * math.Exp(r.NormFloat64())) },
		"a heavy tail": func() time.Duration {
			return min(2*time.Minute, time.Duration(float64(time.Millisecond)/(1-r.Float64())))
		},
		"two kinds":     func() time.Duration { return []time.Duration{80 * time.Microsecond, time.Second}[r.IntN(2)] },
		"all the same":  func() time.Duration { return 1234567 },
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
			for range 200 {
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
			if got, want := s.Within(edge), shorter(edge); got != want {
				t.Errorf("%s: Within(%v) = %d, want %d", name, edge, got, want)
			}
			if got, most := s.Within(edge+edge/3), shorter(edge+edge/3); got > most {
				t.Errorf("%s: Within(%v) = %d, more than the %d that there are", name, edge+edge/3, got, most)
			}
		}
		if got := s.Within(-1); got != 0 {
			t.Errorf("%s: Within(-1) = %d", name, got)
		}
	}
}

// TestMerge checks that parts merged in any order are the same as one histogram
// of all.
func TestMerge(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	draw := shapes(r)["a heavy tail"]
	for range 50 {
		var all []time.Duration
		parts := make([]*Snapshot, 1+r.IntN(5))
		for i := range parts {
			ds := make([]time.Duration, r.IntN(50))
			for j := range ds {
				ds[j] = draw()
			}
			parts[i], all = recorded(ds), append(all, ds...)
		}
		r.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
		var merged Snapshot
		for _, p := range parts {
			merged.Merge(p)
		}
		if diff := cmp.Diff(&merged, recorded(all), cmp.AllowUnexported(Snapshot{})); diff != "" {
			t.Fatalf("merged (-got +want):\n%s", diff)
		}
	}
}

// TestConcurrent records and looks from many goroutines: nothing is lost, and a
// look in between is never out of order.
func TestConcurrent(t *testing.T) {
	t.Parallel()
	const writers, each = 8, 5000
	var h Histogram
	var writing, looking sync.WaitGroup
	done := make(chan struct{})
	looking.Go(func() {
		for {
			s := h.Snapshot()
			if s.Quantile(0.5) > s.Quantile(0.99) {
				t.Errorf("p50 %v is more than p99 %v", s.Quantile(0.5), s.Quantile(0.99))
			}
			select {
			case <-done:
				return
			default:
			}
		}
	})
	for w := range writers {
		writing.Go(func() {
			for i := range each {
				h.Record(time.Duration(w*each+i) * time.Microsecond)
			}
		})
	}
	writing.Wait()
	close(done)
	looking.Wait()
	s := h.Snapshot()
	if got, want := s.total, uint64(writers*each); got != want {
		t.Errorf("Count = %d, want %d", got, want)
	}
	if got, want := s.Quantile(1), (writers*each-1)*time.Microsecond; got != want {
		t.Errorf("Max = %v, want %v", got, want)
	}
}

// FuzzQuantile feeds durations of any size: the error stays within its bound up to
// 134 s, merging in halves changes nothing, and beyond that Max is still right.
func FuzzQuantile(f *testing.F) {
	f.Add([]byte{}, 0.5)
	f.Add(binary.LittleEndian.AppendUint64(nil, uint64(time.Millisecond)), 0.99)
	f.Add(slices.Repeat([]byte{0xff, 0xff, 0, 0, 0, 0, 0, 0}, 5), 0.01)
	f.Fuzz(func(t *testing.T, raw []byte, q float64) {
		var ds []time.Duration
		for len(raw) >= 8 {
			ds = append(ds, time.Duration(binary.LittleEndian.Uint64(raw)>>1))
			raw = raw[8:]
		}
		s := recorded(ds)
		halves := recorded(ds[:len(ds)/2])
		halves.Merge(recorded(ds[len(ds)/2:]))
		if diff := cmp.Diff(halves, s, cmp.AllowUnexported(Snapshot{})); diff != "" {
			t.Fatalf("merged halves (-got +want):\n%s", diff)
		}
		sorted := slices.Sorted(slices.Values(ds))
		if s.Quantile(1) != exact(sorted, 1) {
			t.Fatalf("Max = %v, want %v", s.Quantile(1), exact(sorted, 1))
		}
		if math.IsNaN(q) || q < 0 || q > 1 {
			q = 0
		}
		want := exact(sorted, q)
		if want >= (1<<topBits)*time.Microsecond {
			return
		}
		if off := (s.Quantile(q) - want).Abs(); off > bound(want) {
			t.Fatalf("Quantile(%v) = %v, want %v ± %v", q, s.Quantile(q), want, bound(want))
		}
	})
}
