package bench

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// BenchmarkProcess runs whole processes, a command of each program in turn, and reports the median of each in ms. The
// programs are a Go program that does nothing ("hello"), this tree's ("grapnel"), and those that GRAPNEL_BENCH_OLD
// lists for comparison, by their file names.
func BenchmarkProcess(b *testing.B) {
	dir := b.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			b.Fatal(err)
		}
		return path
	}
	build := func(name, from string) string {
		path := filepath.Join(dir, name)
		if out, err := exec.CommandContext(b.Context(), "go", "build", "-o", path, from).CombinedOutput(); err != nil {
			b.Fatalf("%v: %s", err, out)
		}
		return path
	}
	hello := build("hello", write("hello.go", "package main\n\nfunc main() {}\n"))
	programs := append([]string{build("grapnel", "../../../cmd/grapnel")}, filepath.SplitList(os.Getenv("GRAPNEL_BENCH_OLD"))...)
	write("AGENTS.md", "# Instructions\n\nBe brief.\n")
	none := write("none.yaml", "version: 1\n")
	two := write("two.yaml", "version: 1\nplugins:\n  - {name: agentsdoc, builtin: agentsdoc}\n  - {name: skills, builtin: skills}\n")
	for name, args := range map[string][]string{
		"version":         {"version"},
		"compile/none":    {"--config", none, "compile", "--dir", dir},
		"compile/plugins": {"--config", two, "compile", "--dir", dir},
	} {
		b.Run(name, func(b *testing.B) {
			took := map[string][]time.Duration{}
			for range max(b.N, 21) {
				for _, program := range slices.Concat([]string{hello}, programs) {
					begin := time.Now()
					if out, err := exec.CommandContext(b.Context(), program, args...).CombinedOutput(); err != nil {
						b.Fatalf("%s: %v: %s", program, err, out)
					}
					took[program] = append(took[program], time.Since(begin))
				}
			}
			for program, all := range took {
				slices.Sort(all)
				unit := strings.TrimSuffix(filepath.Base(program), ".exe") + "-ms"
				b.ReportMetric(float64(all[len(all)/2].Microseconds())/1000, unit)
			}
			b.ReportMetric(0, "ns/op") // a run of all: not a time of anything
		})
	}
}
