package agentsdoc

import (
	"fmt"
	"path/filepath"
	"testing"
)

// deepTree makes a repository with a file in each of n nested directories, and
// returns the innermost.
func deepTree(tb testing.TB, n int, text func(i int) string) string {
	tb.Helper()
	dir := build(tb, map[string]string{".git/HEAD": ""})
	for i := range n {
		if i > 0 {
			dir = filepath.Join(dir, fmt.Sprintf("d%d", i))
		}
		write(tb, filepath.Join(dir, "AGENTS.md"), text(i))
	}
	return dir
}
