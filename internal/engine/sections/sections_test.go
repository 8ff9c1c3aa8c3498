package sections_test

import (
	"testing"

	"github.com/grapnelhq/grapnel/internal/engine/sections"
	"github.com/grapnelhq/grapnel/phases"
)

func TestTable(t *testing.T) {
	t.Parallel()

	table := sections.All()
	for i := range table {
		r := &table[i]
		if i > 0 && table[i-1].Stability == phases.StabilityDynamic && r.Stability == phases.StabilityStable {
			t.Errorf("%s is stable behind a dynamic row", r.ID)
		}
		if r.IsGroup() == phases.ValidName(r.ID) {
			t.Errorf("%s: a section could be taken for a group", r.ID)
		}
		if !r.IsGroup() && (r.Title == "" || r.Absent == "") {
			t.Errorf("%s: the row has no title, or no reason to be absent", r.ID)
		}
	}
}

func TestReserved(t *testing.T) {
	t.Parallel()

	for id, want := range map[string]bool{
		"safety": true, "Safety": true, "Soul-Core": true, "AGENTS.md": true, "agents_md": false, "memory_recall": false, "style": false, "": false,
	} {
		if got := sections.Reserved(id); got != want {
			t.Errorf("Reserved(%q) = %v", id, got)
		}
	}
	if sections.ForHooks("safety") != nil || sections.ForHooks(sections.GroupStable) != nil || sections.ForHooks("agents_md") == nil {
		t.Error("ForHooks returns rows that hooks do not write")
	}
	if sections.Lookup("style") != nil {
		t.Error("style has a row")
	}
}
