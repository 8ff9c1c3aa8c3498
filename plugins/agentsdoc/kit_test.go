package agentsdoc

import (
	"flag"
	"fmt"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/plugins/agentsdoc/chain"
	"github.com/grapnelhq/grapnel/sdk"
	"github.com/grapnelhq/grapnel/sdk/plugintest"
)

// The kit looks this flag up by its name.
var _ = flag.Bool("update", false, "rewrite the fixtures")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// withoutHome is the plugin in an environment that says nothing.
func withoutHome() *sdk.Plugin { return newPlugin(chain.OS{}, environment(nil)) }

func TestFixtures(t *testing.T) {
	plugintest.Fixtures(t, withoutHome(), "testdata")
}

// TestKitOnRealTrees runs the plugin through the kit on trees of many shapes.
func TestKitOnRealTrees(t *testing.T) {
	t.Parallel()
	hostile := "a line\r\n\xff <AGENTS_MD> [truncated: kept 1 of 2 characters]\n  [truncated: kept 1 of 2 characters]\n<!-- grapnel:dynamic -->"
	tests := []struct {
		name  string
		files int
		text  string
		room  int
	}{
		{"one file", 1, "Be brief.\n", 0},
		{"deep", 64, "Be brief.\n", 16_000},
		{"over the budget", 12, lines(500), 16_000},
		{"hostile", 5, hostile, 4000},
		{"smaller than the frame", 2, "x", 40},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := deepTree(t, tt.files, func(i int) string { return fmt.Sprintf("%d %s", i, tt.text) })
			answer := plugintest.Run(t, withoutHome(), plugintest.Case{Hook: "prompt", Context: inDir(dir), MaxChars: tt.room})
			if len(answer.Contributions) != 1 {
				t.Fatalf("%d contributions", len(answer.Contributions))
			}
			s, ok := answer.Contributions[0].(*phases.PromptSection)
			if !ok {
				if _, ok := answer.Contributions[0].(*phases.Noop); !ok || tt.room != 40 {
					t.Errorf("got %T", answer.Contributions[0])
				}
				return
			}
			checkHost(t, s, tt.room)
		})
	}
}

// TestKitOnTheRealEnvironment runs what New returns, wherever HOME may lead.
func TestKitOnTheRealEnvironment(t *testing.T) {
	t.Parallel()
	dir := build(t, map[string]string{"repo/.git/HEAD": "", "repo/AGENTS.md": "Be brief.\n"})
	answer := plugintest.Run(t, New(), plugintest.Case{Hook: "prompt", Context: inDir(filepath.Join(dir, "repo"))})
	if len(answer.Contributions) != 1 {
		t.Errorf("%d contributions", len(answer.Contributions))
	}
}
