package bench

import (
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// batch is how many calls of one kind stand together in BenchmarkPaired.
const batch = 200

// payload is a text of so many bytes.
func payload(n int) string { return strings.Repeat("0123456789abcdef", n/16+1)[:n] }

// BenchmarkPaired alternates batches of both and reports the median ratio of
// their times as x-unary: 0.7 means that a dispatch takes 0.7 of the time of a
// bare unary call.
func BenchmarkPaired(b *testing.B) {
	text := payload(1 << 10)
	b.Run("1KiB/callers=1", func(b *testing.B) {
		paired(b, 1, dispatch(startEngine(b, 1), text, 1), unary(startBare(b, 1)[0], text))
	})
	b.Run("1KiB/callers=64", func(b *testing.B) {
		paired(b, 64, dispatch(startEngine(b, 1), text, 1), unary(startBare(b, 1)[0], text))
	})
	b.Run("16KiB/callers=1", func(b *testing.B) {
		long := payload(16 << 10)
		paired(b, 1, dispatchSection(startEngine(b, 1), long), unary(startBare(b, 1)[0], long))
	})
	b.Run("eight", func(b *testing.B) {
		paired(b, 1, dispatch(startEngine(b, 8), text, 8), unaryAll(startBare(b, 8), text))
	})
}

// spread makes n calls from so many goroutines and waits for them.
func spread(b *testing.B, callers, n int, c call) {
	b.Helper()
	if callers == 1 {
		for range n {
			if err := c(); err != nil {
				b.Fatal(err)
			}
		}
		return
	}
	var left atomic.Int64
	left.Store(int64(n))
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for left.Add(-1) >= 0 {
				if err := c(); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// paired alternates batches of ours and theirs.
func paired(b *testing.B, callers int, ours, theirs call) {
	b.Helper()
	spread(b, callers, batch, ours)
	spread(b, callers, batch, theirs)
	var ratios []float64
	b.ResetTimer()
	for range max(b.N, 5) {
		ratios = append(ratios, float64(timed(b, callers, ours))/float64(timed(b, callers, theirs)))
	}
	b.ReportMetric(median(ratios), "x-unary")
	b.ReportMetric(0, "ns/op") // a batch of both: not a time of anything
}

func timed(b *testing.B, callers int, c call) time.Duration {
	b.Helper()
	begin := time.Now()
	spread(b, callers, batch, c)
	return time.Since(begin)
}
