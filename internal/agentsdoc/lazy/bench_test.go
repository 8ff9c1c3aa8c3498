package lazy

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/internal/agentsdoc/chain"
)

// BenchmarkTouchNothingNew is a tool call on a path 10 directories deep, each with an
// instruction file and one in three with patterns, when all was delivered.
func BenchmarkTouchNothingNew(b *testing.B) {
	tree := files{".git/info/exclude": "*.swp\n", ".gitignore": strings.Repeat("# build\n*.o\n/dist\nout/**/cache\nbin/\n", 8)}
	path := ""
	for i := range 10 {
		path = filepath.Join(path, fmt.Sprintf("directory-%02d", i))
		tree[path+"/AGENTS.md"] = fmt.Sprintf("Rules of directory %d.\n", i) + strings.Repeat("- Use the helpers of this directory.\n", 40)
		if i%3 == 0 {
			tree[path+"/.gitignore"] = "*.log\n/tmp\n"
		}
	}
	base := build(b, tree)
	for name, depth := range map[string]string{"10 deep": path, "root": ""} {
		b.Run(name, func(b *testing.B) {
			s := begin(base, "", chain.Default())
			target := []string{filepath.Join(base, depth, "main.go")}
			for len(s.Touch(chain.OS{}, chain.Default(), target).Files) > 0 {
				continue // until all is delivered
			}
			b.ReportAllocs()
			var took []time.Duration
			for b.Loop() {
				start := time.Now()
				if got := s.Touch(chain.OS{}, chain.Default(), target); len(got.Files) != 0 {
					b.Fatalf("%d files", len(got.Files))
				}
				took = append(took, time.Since(start))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Nanoseconds()), "p50-ns")
		})
	}
}

// BenchmarkEncode is a state of 100 delivered files, and one that is too long.
func BenchmarkEncode(b *testing.B) {
	for _, n := range []int{100, maxDelivered} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			s := State{Schema: Schema, Root: "/repo/of/some/project", Dir: "/repo/of/some/project"}
			for i := range n {
				s.deliver(Version{Path: fmt.Sprintf("/repo/of/some/project/packages/part-%04d/AGENTS.md", i), SHA256: strings.Repeat("0f", 32), MTimeMs: 1738970000000, Size: 4096})
			}
			b.ReportAllocs()
			for b.Loop() {
				if data, err := Encode(s); err != nil || len(data) > MaxBytes {
					b.Fatal(len(data), err)
				}
			}
		})
	}
}
