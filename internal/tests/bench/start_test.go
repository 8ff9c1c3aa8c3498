package bench

import (
	goruntime "runtime"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-plugin"
)

// herd is how many plugins are started together.
const herd = 20

// BenchmarkStart starts twenty plugins at once, alternately through the engine
// (launched, described, configured, planned) and as bare go-plugin processes
// started in parallel, and reports the median ratio as x-bare.
func BenchmarkStart(b *testing.B) {
	var ratios []float64
	for range max(b.N, 5) {
		ratios = append(ratios, float64(startOurs(b))/float64(startTheirs(b)))
	}
	b.ReportMetric(median(ratios), "x-bare")
	b.ReportMetric(0, "ns/op") // a start of both: not a time of anything
}

func startOurs(b *testing.B) time.Duration {
	b.Helper()
	begin := time.Now()
	eng := startEngine(b, herd)
	took := time.Since(begin)
	closeEngine(b, eng)
	return took
}

func startTheirs(b *testing.B) time.Duration {
	b.Helper()
	clients := make([]*plugin.Client, herd)
	for i := range clients {
		clients[i] = bareClient(b)
	}
	begin := time.Now()
	var wait sync.WaitGroup
	for _, c := range clients {
		wait.Go(func() {
			if _, err := c.Client(); err != nil {
				b.Error(err)
			}
		})
	}
	wait.Wait()
	took := time.Since(begin)
	for _, c := range clients {
		wait.Go(c.Kill)
	}
	wait.Wait()
	return took
}

// BenchmarkHostMemory reports what one plugin costs the host's heap, after a
// collection and a first dispatch to each.
func BenchmarkHostMemory(b *testing.B) {
	empty := startEngine(b, 0)
	before := heap()
	eng := startEngine(b, herd)
	if err := dispatch(eng, payload(1<<10), min(herd, 11))(); err != nil {
		b.Log(err) // the contexts of a turn are bounded; the calls were made
	}
	b.ReportMetric(float64(heap()-before)/herd/1024, "KiB/plugin")
	b.ReportMetric(0, "ns/op")
	goruntime.KeepAlive(empty)
}

// heap is the live heap in bytes.
func heap() uint64 {
	goruntime.GC()
	goruntime.GC()
	var m goruntime.MemStats
	goruntime.ReadMemStats(&m)
	return m.HeapAlloc
}
