package hostservice

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/grapnelhq/grapnel/phases"
)

// TestMemoryState: the oldest values of a plugin go when it has too many bytes; workspaces and plugins are apart.
func TestMemoryState(t *testing.T) {
	t.Parallel()

	m, value, evicted := NewMemoryState(), json.RawMessage(strings.Repeat("1", MaxState)), 0
	for i := range maxMemoryState/MaxState + 5 {
		n, err := m.PutState(t.Context(), phases.StateKey{WorkspaceID: "w", SessionID: strconv.Itoa(i), Plugin: "p"}, value)
		if err != nil {
			t.Fatal(err)
		}
		evicted += n
	}
	if evicted != 5 {
		t.Errorf("%d values were evicted, want 5", evicted)
	}
	for key, kept := range map[phases.StateKey]bool{
		{WorkspaceID: "w", SessionID: "4", Plugin: "p"}: false,
		{WorkspaceID: "w", SessionID: "5", Plugin: "p"}: true,
		{WorkspaceID: "v", SessionID: "5", Plugin: "p"}: false,
		{WorkspaceID: "w", SessionID: "5", Plugin: "q"}: false,
	} {
		if got, err := m.GetState(t.Context(), key); err != nil || (got != nil) != kept {
			t.Errorf("%+v: %d bytes, %v", key, len(got), err)
		}
	}
}
