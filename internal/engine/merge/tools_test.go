package merge_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/internal/engine/merge"
	"github.com/grapnelhq/grapnel/phases"
)

// TestRequestTools: the engine's tool is nobody else's, neither a plugin's nor the
// host's.
func TestRequestTools(t *testing.T) {
	t.Parallel()

	got := merge.Merge(anyRow(), []merge.Reply{from(t, ranked("a.h", 1), bundle("one", phases.RequestTools, "read"))},
		merge.State{}, merge.Limits{})
	if len(got.Merged.Tools) != 1 || got.Merged.Tools[0].Name != "read" {
		t.Errorf("tools = %+v, want only read", got.Merged.Tools)
	}
	checkSame(t, "conflicts", lost(got), []string{"a.h -> builtin: request_tools"})
	checkSame(t, "omitted", got.Omitted, []phases.Omitted{{ID: phases.RequestTools, Owner: "a", Reason: "conflict"}})
	alone := merge.Merge(anyRow(), nil, merge.State{HostTools: []string{"read", phases.RequestTools}}, merge.Limits{})
	if len(alone.Diagnostics) != 1 || alone.Diagnostics[0].Code != "conflict" || alone.Diagnostics[0].Slot != phases.RequestTools ||
		!strings.Contains(alone.Diagnostics[0].Message, `tool "request_tools" belongs to builtin: the host has one`) {
		t.Errorf("a host's tool of that name: %+v", alone.Diagnostics)
	}
}

// TestToolsAreCanonical: the same tools are the same bytes, however a plugin spells
// their schemas and in whatever order it sends them.
func TestToolsAreCanonical(t *testing.T) {
	t.Parallel()

	rng := rand.New(rand.NewPCG(7, 7))
	tools := make([]phases.Tool, 6)
	for i := range tools {
		tools[i] = phases.Tool{Name: fmt.Sprintf("t%d", i), Description: "d", HiddenDomain: []string{"", "mail"}[i%2]}
	}
	spell := func() *phases.ToolBundle {
		b := &phases.ToolBundle{BundleID: "b", Tools: slices.Clone(tools)}
		for i := range b.Tools {
			members := []string{`"type":"object"`, `"properties": {"a": {"type":"string"}, "b":{"maximum":1.0}}`, `"required" : ["a"]`, fmt.Sprintf(`"title":"%d"`, i)}
			rng.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
			b.Tools[i].InputSchema = json.RawMessage("{ " + strings.Join(members, "\n,") + "}")
		}
		rng.Shuffle(len(b.Tools), func(i, j int) { b.Tools[i], b.Tools[j] = b.Tools[j], b.Tools[i] })
		return b
	}
	merged := func() []phases.MergedTool {
		return merge.Merge(anyRow(), []merge.Reply{from(t, ranked("a.h", 1), spell())}, merge.State{}, merge.Limits{}).Merged.Tools
	}
	want := merged()
	for i := 1; i < len(want); i++ {
		if want[i-1].Name >= want[i].Name || want[i-1].Hash == want[i].Hash {
			t.Fatalf("tools = %+v: want them by name, each with a hash of its own", want)
		}
	}
	for range 50 {
		if diff := cmp.Diff(merged(), want); diff != "" {
			t.Fatalf("tools (-got +want):\n%s", diff)
		}
	}
}
