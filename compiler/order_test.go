package compiler

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/phases"
)

// TestOrder: custom sections stand beside their anchors, whatever the order in which they are listed; those that follow
// one place stand together, and what stands before one of them parts them.
func TestOrder(t *testing.T) {
	t.Parallel()

	beside := func(id, before, after string) CustomSection {
		return CustomSection{SectionID: id, Text: id, Stability: phases.StabilityStable, Before: before, After: after}
	}
	tests := []struct {
		name   string
		custom []CustomSection
		want   string
		lost   int
	}{
		{"without an anchor", []CustomSection{{SectionID: "b", Text: "b"}, beside("a", "", "")}, "identity safety a b", 0},
		{"before and after a row", []CustomSection{beside("b", "safety", ""), beside("a", "", "identity")}, "identity a b safety", 0},
		{"a row without text", []CustomSection{beside("a", "soul_core", ""), beside("b", "", "tool_recovery_policy")}, "identity safety a b", 0},
		{"one behind the other", []CustomSection{beside("c", "", "b"), beside("b", "", "a"), beside("a", "", "identity")}, "identity a b c safety", 0},
		{"followers stay together", []CustomSection{beside("a", "", "identity"), beside("b", "", "a"), beside("c", "", "identity")}, "identity a b c safety", 0},
		{"parted by one before", []CustomSection{beside("a", "", "identity"), beside("b", "a", ""), beside("c", "", "identity")}, "identity c b a safety", 0},
		{"a cycle, and nothing there", []CustomSection{beside("a", "", "b"), beside("b", "", "a"), beside("c", "", "nowhere")}, "identity safety a b c", 3},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			out, err := Compile(Input{Custom: tt.custom, Facts: Facts{}})
			if err != nil {
				t.Fatal(err)
			}
			slices.Reverse(tt.custom)
			again, err := Compile(Input{Custom: tt.custom, Facts: Facts{}})
			if err != nil || again.Prompt.FullText != out.Prompt.FullText {
				t.Errorf("listed in reverse it is another prompt: %v", err)
			}
			var ids []string
			for i := range out.Sections {
				ids = append(ids, out.Sections[i].SectionID)
			}
			if diff := cmp.Diff(tt.want, strings.Join(ids, " ")); diff != "" {
				t.Errorf("order (-want +got):\n%s", diff)
			}
			if got := len(out.Diagnostics); got != tt.lost {
				t.Errorf("%d without an anchor, want %d", got, tt.lost)
			}
		})
	}
	if _, err := Compile(Input{Custom: make([]CustomSection, maxCustom+1)}); err == nil {
		t.Error("more sections than a host may have were compiled")
	}
}
