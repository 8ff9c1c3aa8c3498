//go:build unix

package bench

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/runtime"
)

// kit is a plugin of one language over one transport.
type kit struct {
	name      string
	transport string
	command   string // the test binary itself if empty
	args      []string
	bare      []string // the interpreter that does nothing
}

// kits are those that this machine has.
func kits(b *testing.B) []kit {
	b.Helper()
	root, err := filepath.Abs("../../..")
	if err != nil {
		b.Fatal(err)
	}
	list := []kit{{name: "go/lane"}, {name: "go/stdio", transport: config.TransportStdio}}
	if python, err := exec.LookPath("/usr/bin/python3"); err == nil {
		list = append(list, kit{
			name: "python/stdio", transport: config.TransportStdio, command: python, bare: []string{"-c", "pass"},
			args: []string{filepath.Join(root, "internal/tests/bench/testdata/echo.py"), filepath.Join(root, "sdks/python/src")},
		})
	}
	built := filepath.Join(root, "sdks/typescript")
	node, err := exec.LookPath("node")
	if _, missing := os.Stat(filepath.Join(built, "dist/index.js")); err != nil || missing != nil {
		b.Log("Node is not measured: it is not there, or make kit-ts has not built the kit")
		return list
	}
	return append(list, kit{
		name: "node/stdio", transport: config.TransportStdio, command: node, bare: []string{"-e", "0"},
		args: []string{filepath.Join(root, "internal/tests/bench/testdata/echo.mjs"), built},
	})
}

// start starts an engine with the kit's plugin alone.
func (k *kit) start(b *testing.B) *runtime.Engine {
	b.Helper()
	cfg := engineConfig(b, 1)
	p := &cfg.Plugins[0]
	if p.Transport = k.transport; k.command != "" {
		p.Command, p.Path, p.Args = k.command, k.command, k.args
	}
	return start(b, cfg, runtime.Options{})
}

// BenchmarkBindings alternates batches of dispatches of 1 KiB to plugins of all languages, and reports the median of
// each and its ratio to the first, a Go plugin on the lane.
func BenchmarkBindings(b *testing.B) {
	for _, callers := range []int{1, 16} {
		b.Run(map[int]string{1: "callers=1", 16: "callers=16"}[callers], func(b *testing.B) {
			list := kits(b)
			times := make([][]float64, len(list))
			calls := make([]call, len(list))
			for i := range list {
				calls[i] = dispatch(list[i].start(b), payload(1<<10), 1)
				spread(b, callers, 5*batch, calls[i])
			}
			b.ResetTimer()
			for range max(b.N, 5) {
				for i, c := range calls {
					times[i] = append(times[i], float64(timed(b, callers, c))/batch)
				}
			}
			for i := range list {
				ns := median(times[i])
				b.ReportMetric(ns/1000, list[i].name+"-µs")
				b.ReportMetric(ns/median(times[0]), list[i].name+"-x")
				b.ReportMetric(1e9/ns, list[i].name+"/s")
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

// BenchmarkBindingsStart measures the time until a plugin is ready, beside that of its bare interpreter, by turns.
func BenchmarkBindingsStart(b *testing.B) {
	list := kits(b)
	ready, bare := make([][]float64, len(list)), make([][]float64, len(list))
	for range max(b.N, 5) {
		for i := range list {
			k := &list[i]
			begin := time.Now()
			eng := k.start(b)
			ready[i] = append(ready[i], time.Since(begin).Seconds()*1000)
			closeEngine(b, eng)
			if k.command == "" {
				continue
			}
			begin = time.Now()
			if err := exec.CommandContext(b.Context(), k.command, k.bare...).Run(); err != nil {
				b.Fatal(err)
			}
			bare[i] = append(bare[i], time.Since(begin).Seconds()*1000)
		}
	}
	for i := range list {
		b.ReportMetric(median(ready[i]), list[i].name+"-ready-ms")
		if len(bare[i]) > 0 {
			b.ReportMetric(median(ready[i])/median(bare[i]), list[i].name+"-x-interpreter")
		}
	}
	b.ReportMetric(0, "ns/op")
}
