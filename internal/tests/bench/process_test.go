package bench

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// BenchmarkProcess runs whole processes, a command of each program in turn, and reports the median of each in ms. The
// programs are a Go program that does nothing ("hello"), this tree's ("grapnel"), and those that GRAPNEL_BENCH_OLD
// lists for comparison, by their file names.
func BenchmarkProcess(b *testing.B) {
	dir := b.TempDir()
	programs := append([]string{hello(b, dir), build(b, dir, "grapnel", "../../../cmd/grapnel")}, filepath.SplitList(os.Getenv("GRAPNEL_BENCH_OLD"))...)
	write(b, dir, "AGENTS.md", "# Instructions\n\nBe brief.\n")
	none := write(b, dir, "none.yaml", "version: 1\n")
	two := write(b, dir, "two.yaml", "version: 1\nplugins:\n  - {name: agentsdoc, builtin: agentsdoc}\n  - {name: skills, builtin: skills}\n")
	for name, args := range map[string][]string{
		"version":         {"version"},
		"compile/none":    {"--config", none, "compile", "--dir", dir},
		"compile/plugins": {"--config", two, "compile", "--dir", dir},
	} {
		b.Run(name, func(b *testing.B) {
			took := map[string][]time.Duration{}
			for range max(b.N, 21) {
				for _, program := range programs {
					begin := time.Now()
					if out, err := exec.CommandContext(b.Context(), program, args...).CombinedOutput(); err != nil {
						b.Fatalf("%s: %v: %s", program, err, out)
					}
					took[program] = append(took[program], time.Since(begin))
				}
			}
			for program, all := range took {
				unit := strings.TrimSuffix(filepath.Base(program), ".exe") + "-ms"
				b.ReportMetric(float64(median(all).Microseconds())/1000, unit)
			}
			b.ReportMetric(0, "ns/op") // a run of all: not a time of anything
		})
	}
}
