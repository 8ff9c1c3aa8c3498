package lazy

import (
	"fmt"
	"path/filepath"
	"slices"
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
