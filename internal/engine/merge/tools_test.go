package merge_test

import (
	"strings"
	"testing"

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
