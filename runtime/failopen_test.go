package runtime_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/grapnelhq/grapnel/phases"
)

// TestFailOpenMark: the mark of a hook that failed and did not stop its phase says
// how much of it was kept, as the ledger has it: contributions beside one that was
// dropped stay in force.
func TestFailOpenMark(t *testing.T) {
	t.Parallel()
	text := func(ids ...string) []phases.Contribution {
		var list []phases.Contribution
		for _, id := range ids {
			list = append(list, &phases.PromptSection{SectionID: id, Title: id, Content: id})
		}
		return list
	}
	tests := []struct {
		name     string
		answer   []phases.Contribution
		fallback []phases.Contribution
		cause    phases.Cause
		kept     int
		want     string
	}{
		{"all are forbidden", text("not_granted"), nil, phases.CauseForbidden, 0, "nothing of it was kept"},
		{"one of three is forbidden", text("s", "not_granted", "s2"), nil, phases.CauseForbidden, 2, "2 of its 3 contributions were kept"},
		{"one of two slots is lost", text("s", "taken"), nil, phases.CauseConflict, 1, "1 of its 2 contributions were kept"},
		{"the only slot is lost", text("taken"), nil, phases.CauseConflict, 0, "nothing of it was kept"},
		{"a fallback", text("not_granted"), text("spare"), phases.CauseForbidden, 1, "its fallback was used"},
		{"a fallback beside a part", text("s", "not_granted"), text("spare"), phases.CauseForbidden, 2, "2 of its 3 contributions were kept, its fallback included"},
		{"a fallback that loses its slot", text("not_granted"), text("taken"), phases.CauseForbidden, 0, "nothing of it was kept, nor of its fallback"},
		{"a fallback that is refused", text("not_granted"), text("not_granted"), phases.CauseForbidden, 0, "its fallback was refused, and nothing of it was kept"},
		{"a part, and a fallback that is refused", text("s", "not_granted"), text("not_granted"), phases.CauseForbidden, 1, "its fallback was refused; 1 of its"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h := on("h", phases.PrePromptCompile, reply(tt.answer...), phases.KindPromptSection)
			h.OnFailure = word(phases.BestEffort)
			if tt.fallback != nil {
				h.OnFailure, h.Fallback = word(phases.UseInstead), tt.fallback
			}
			hosted := newHosted(plugin("owner", section("o", "taken", "text")), plugin("p", h))
			hosted.cfg.Plugins[1].Grants.Sections = []string{"s", "s2", "spare", "taken"}
			out := dispatch(t, hosted.start(t), &phases.PrePromptCompileInput{})
			i := slices.IndexFunc(out.Diagnostics, func(d phases.Diagnostic) bool { return d.Code == phases.CodeFailOpen })
			if i < 0 {
				t.Fatalf("no mark: %+v", out.Diagnostics)
			}
			mark := out.Diagnostics[i]
			if mark.Cause != tt.cause || mark.Slot != "" || mark.Subscription != "p.h" {
				t.Errorf("the mark is %+v", mark)
			}
			if _, says, _ := strings.Cut(mark.Message, "); "); !strings.HasPrefix(says, tt.want) {
				t.Errorf("it says %q, want %q", says, tt.want)
			}
			if kept := len(runOf(t, out, "p.h").Contributions); kept != tt.kept {
				t.Errorf("the ledger says that %d were kept, want %d", kept, tt.kept)
			}
		})
	}
}
