package merge_test

import (
	"strings"
	"testing"

	"github.com/grapnelhq/grapnel/internal/engine/merge"
	"github.com/grapnelhq/grapnel/phases"
)

// TestKeyedHashes: with a key nothing that is recorded of a contribution or tool
// can be guessed from its hash.
func TestKeyedHashes(t *testing.T) {
	t.Parallel()

	hashes := func(key string) (contribution, tool string) {
		h := hook("p.h")
		h.Key = []byte(key)
		r := merge.Merge(anyRow(), []merge.Reply{from(t, h, &phases.ToolBundle{BundleID: "b", Tools: []phases.Tool{{Name: "weather"}}})},
			merge.State{}, merge.Limits{})
		return r.Sources[0].ContributionHash, r.Merged.Tools[0].Hash
	}
	plainContribution, plainTool := hashes("")
	oneContribution, oneTool := hashes("one")
	twoContribution, twoTool := hashes("two")
	for name, h := range map[string][3]string{
		"contribution": {plainContribution, oneContribution, twoContribution}, "tool": {plainTool, oneTool, twoTool},
	} {
		if !strings.HasPrefix(h[0], "sha256:") || !strings.HasPrefix(h[1], "hmac-sha256:") || !strings.HasPrefix(h[2], "hmac-sha256:") || h[1] == h[2] {
			t.Errorf("hashes of the %s without a key, with one and with another: %v", name, h)
		}
	}
}
