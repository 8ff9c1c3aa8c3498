package contracts

import (
	"path/filepath"
	"testing"

	"github.com/grapnelhq/grapnel/internal/agents"
)

// TestContracts: each event of the list is mapped or omitted with a reason, and no other is known.
func TestContracts(t *testing.T) {
	t.Parallel()

	kept, err := Read(filepath.Base(List))
	if err != nil {
		t.Fatal(err)
	}
	if err := Compare(kept); err != nil {
		t.Error(err)
	}
	for _, a := range agents.All() {
		for event, m := range a.Events {
			if (m.Step == "") != (m.Why != "") {
				t.Errorf("%s, %s: %+v", a.Name, event, m)
			}
		}
	}
}
