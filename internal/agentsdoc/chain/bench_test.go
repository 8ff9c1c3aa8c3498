package chain

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// deepTree makes a chain of directories with a file each, and returns the deepest.
func deepTree(tb testing.TB, n int) string {
	tb.Helper()
	dir := build(tb, files{".git/": ""})
	for i := range n {
		dir = filepath.Join(dir, fmt.Sprintf("directory-%02d", i))
		if err := os.Mkdir(dir, 0o755); err != nil {
			tb.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "AGENTS.md"), []byte(fmt.Sprintf("file %d\n", i)+numbered(500)), 0o644); err != nil {
			tb.Fatal(err)
		}
	}
	return dir
}

// BenchmarkResolve64 is a chain of 64 directories from nothing, by each view. Beside
// it stands, on Linux, what the same system calls cost by themselves.
func BenchmarkResolve64(b *testing.B) {
	dir := deepTree(b, 64)
	for name, view := range views() {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if c := Resolve(view, dir, Options{}); len(c.Sources) != 64 {
					b.Fatalf("%d sources", len(c.Sources))
				}
			}
		})
	}
}
