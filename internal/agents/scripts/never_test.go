package scripts_test

import (
	"strings"
	"testing"

	"github.com/grapnelhq/grapnel/internal/agents/scripts"
)

// TestNever: a matcher that fits nothing of its agent's says why, and one that may fit says nothing.
func TestNever(t *testing.T) {
	t.Parallel()

	for _, row := range table(t, "never.tsv") {
		if got := strings.Join(scripts.Never(hook(t, row[0], row[1], row[2], row[3])), "; "); !strings.Contains(got, row[4]) || row[4] == "" && got != "" {
			t.Errorf("%q: %q", row, got)
		}
	}
}
