package bench

import (
	goruntime "runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-plugin"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
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
	slices.Sort(ratios)
	b.ReportMetric(ratios[len(ratios)/2], "x-bare")
	b.ReportMetric(0, "ns/op") // a start of both: not a time of anything
}

func startOurs(b *testing.B) time.Duration {
	b.Helper()
	begin := time.Now()
	eng, err := runtime.New(b.Context(), engineConfig(b, herd), runtime.Options{})
	if err != nil {
		b.Fatal(err)
	}
	took := time.Since(begin)
	ready(b, eng)
	closeEngine(b, eng)
	return took
}

func ready(b *testing.B, eng *runtime.Engine) {
	b.Helper()
	for _, row := range eng.Plugins() {
		if row.State != phases.PluginReady {
			b.Fatalf("plugin %s is %s: %s", row.Plugin, row.State, row.Message+" "+row.Detail)
		}
	}
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
