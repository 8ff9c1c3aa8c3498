package agentsdoc

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/phases"
)

func TestNothingToSay(t *testing.T) {
	t.Parallel()
	base := build(t, map[string]string{"r/.git/HEAD": "", "r/a/x": "", "n/.git/HEAD": "", "n/agents.md": "near", "e/AGENTS.md": "\n \n"})
	tests := []struct {
		name, config string
		dir          string
		room         int
		codes        []string // of a noop; nil is no contribution
	}{
		{"no file", "", "r/a", 0, nil},
		{"blank file", "", "e", 0, nil},
		{"directory is not there", "", "r/gone", 0, []string{"read_error"}},
		{"budget of nothing", `{"budget":{"total":0},"names":["x"]}`, "r/a", 0, nil},
		{"room smaller than the frame", `{"names":["near.md","agents.md"]}`, "n", 10, []string{"omitted_budget"}},
		{"root elsewhere", `{"root":"` + base + `/e"}`, "r", 0, []string{"root_refused"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := ask(t, configured(t, tt.config), inDir(base, tt.dir), phases.AnswerBudget{MaxChars: tt.room})
			if tt.codes == nil {
				if c != nil {
					t.Errorf("got %T with %v, want nothing", c, codes(c))
				}
				return
			}
			if _, ok := c.(*phases.Noop); !ok {
				t.Fatalf("got %T, want a noop", c)
			}
			if diff := cmp.Diff(codes(c), tt.codes); diff != "" {
				t.Errorf("codes (-got +want)\n%s", diff)
			}
		})
	}
}

// TestCutIsReported: the marker may be longer than what it stands for, and still it is a cut.
func TestCutIsReported(t *testing.T) {
	t.Parallel()
	base := build(t, map[string]string{"AGENTS.md": strings.Repeat("x", 33)})
	for config, want := range map[string]bool{`{"budget":{"file":32}}`: true, "": false} {
		got := askSection(t, configured(t, config), inDir(base), phases.AnswerBudget{})
		if (got.Cut != nil) != want || want && got.Cut.Original <= got.Cut.Kept {
			t.Errorf("%s: cut is %+v", config, got.Cut)
		}
	}
}
