package lint

import (
	"context"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"
)

// The tree of the benchmarks. That of the requirement has 100,000 directories and
// 2,000 instruction files; it takes a while to make.
var (
	benchDirectories = flag.Int("lint.directories", 5000, "directories of the benchmarks' tree")
	benchFiles       = flag.Int("lint.files", 100, "instruction files of the benchmarks' tree")
)

// bigTree makes a tree like a monorepo's: ten directories in each, some files beside
// them, and instruction files spread evenly.
func bigTree(tb testing.TB, directories, files int) string {
	tb.Helper()
	root := tb.TempDir()
	made := []string{root}
	for i := 1; i < directories; i++ {
		dir := filepath.Join(made[(i-1)/10], fmt.Sprintf("module-%d", i))
		if err := os.Mkdir(dir, 0o700); err != nil {
			tb.Fatal(err)
		}
		made = append(made, dir)
	}
	if err := os.Mkdir(filepath.Join(root, ".git"), 0o700); err != nil {
		tb.Fatal(err)
	}
	for i, dir := range made {
		if i%10 == 0 {
			write(tb, filepath.Join(dir, "main.go"), "package main\n")
		}
		if i%(directories/files) == 0 {
			write(tb, filepath.Join(dir, "AGENTS.md"), fmt.Sprintf("# Module %d\n\nBuild it with make, test it with make check.\nKeep functions short.\n", i))
		}
	}
	write(tb, filepath.Join(root, ".gitignore"), "*.o\n/build/\ndist\n**/cache/\n")
	return root
}

// bareWalk is what lint is measured against.
func bareWalk(tb testing.TB, root string) int {
	tb.Helper()
	n := 0
	err := filepath.WalkDir(root, func(_ string, e fs.DirEntry, err error) error {
		if e.IsDir() {
			n++
		}
		return err
	})
	if err != nil {
		tb.Fatal(err)
	}
	return n
}

// BenchmarkRun measures a run against a bare walk of the same tree, both warm, in
// turns: what else the machine does then counts for both.
func BenchmarkRun(b *testing.B) {
	root := bigTree(b, *benchDirectories, *benchFiles)
	var bare, lint time.Duration
	for b.Loop() {
		at := time.Now()
		bareWalk(b, root)
		bare += time.Since(at)
		at = time.Now()
		r, err := Run(context.Background(), root, Options{Chars: 15_000})
		lint += time.Since(at)
		if err != nil || r.Files != *benchFiles || r.Directories != *benchDirectories || len(r.Problems) != 0 {
			b.Fatalf("%d files in %d directories, %d problems, error %v", r.Files, r.Directories, len(r.Problems), err)
		}
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	b.ReportMetric(float64(lint)/float64(bare), "of-a-walk")
	b.ReportMetric(float64(m.Sys)/(1<<20), "MiB-in-all")
	b.ReportMetric(float64(bare.Milliseconds())/float64(b.N), "ms-walk/op")
}
