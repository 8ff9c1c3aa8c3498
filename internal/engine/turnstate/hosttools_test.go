package turnstate_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/internal/engine/turnstate"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
)

func TestHostTools(t *testing.T) {
	t.Parallel()

	var h turnstate.HostTools
	tool := phases.Tool{Name: "shell", Description: "Runs a command.", InputSchema: json.RawMessage(`{"type": "object"}`)}
	names := h.Names([]string{"write", "read"}, []phases.Tool{tool})
	hash := manifest.HashRaw([]byte(`{"description":"Runs a command.","input_schema":{"type":"object"},"name":"shell"}`), nil)
	want := []manifest.HostTool{{Name: "read"}, {Name: "shell", Hash: hash}, {Name: "write"}}
	for range 2 { // the second time it is remembered
		if diff := cmp.Diff(h.Rows(names, []phases.Tool{tool}, nil), want); diff != "" {
			t.Errorf("rows (-got +want):\n%s", diff)
		}
	}
	tool.InputSchema[2] = 'T' // a host that uses the same bytes again
	if got := h.Rows(names, []phases.Tool{tool}, nil); got[1].Hash == hash {
		t.Error("a changed schema has the old hash")
	}
}
