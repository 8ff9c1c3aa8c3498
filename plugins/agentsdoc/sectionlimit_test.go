package agentsdoc_test

import (
	"cmp"
	"fmt"
	"strings"
	"testing"

	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

// guide is an instruction file of about n bytes, as projects write them: headings, paragraphs and lists.
func guide(name string, n int) string {
	var out strings.Builder
	fmt.Fprintf(&out, "# %s\n\n", name)
	for i := 1; out.Len() < n; i++ {
		fmt.Fprintf(&out, "## Rule %d of %s\n\n- Run `make check` before you commit, and read what it says.\n- Generated files are never edited by hand.\n\n", i, name)
	}
	return out.String()[:n]
}

// TestSectionFollowsWhatWasAskedFor: what a preset or an operator asks for is what the prompt has, up to the prompt's own budget; what
// is cut is told once, with figures that agree.
func TestSectionFollowsWhatWasAskedFor(t *testing.T) {
	t.Parallel()
	const k = 1000
	tests := []struct {
		name, settings, chars, head string
		sizes                       []int // of the files, from the root down
		cut                         phases.Limit
		least, most                 int    // characters of the section
		told                        string // in the diagnostics
	}{
		{"default, fits", "", "", "", []int{10 * k, 20 * k}, "", 30 * k, 31 * k, ""},
		{"default, cut", "", "", "", []int{24 * k, 12 * k, 30 * k}, phases.LimitPlugin, 31_500, 32 * k, "limit: budget.total or budget.file, the lesser of budget.chars of the subscription and budgets.turn.chars"},
		{"more than a prompt has", "", "90000", "", []int{40 * k, 40 * k, 40 * k}, phases.LimitPlugin, 63 * k, 64 * k, "the lesser of budget.chars of the subscription and budgets.turn.chars"},
		{"the operator's prompt", "", "90000", "budgets: {turn: {chars: 100000}}\n", []int{40 * k, 40 * k}, "", 80 * k, 82 * k, ""},
		{"the operator's bytes", ", budget: {total: 50000, file: 50000}", "", "", []int{20 * k, 25 * k}, "", 45 * k, 47 * k, ""},
		{"codex, all that it allows", ", preset: codex", "", "", []int{10 * k, 20 * k, 40 * k}, phases.LimitPlugin, 32_768, 33 * k, "limit: budget.total or budget.file"},
		{"codelia, more than the others", ", preset: codelia", "", "", []int{24 * k, 12 * k, 25 * k}, "", 61 * k, 62 * k, ""},
		{"codelia, one file", ", preset: codelia", "", "", []int{64_500}, phases.LimitPlugin, 63 * k, 64 * k, "the lesser of budget.chars of the subscription and budgets.turn.chars"},
		{"claude, a little too much", ", preset: claude", "", "", []int{63_900}, phases.LimitPlugin, 63 * k, 64 * k, "the lesser of budget.chars of the subscription and budgets.turn.chars"},
		{"claude, the operator's bytes", ", preset: claude, budget: {total: 5000}", "", "", []int{5100}, phases.LimitPlugin, 4900, 5600, "limit: budget.total or budget.file"},
		{"gemini, one file", ", preset: gemini, names: [AGENTS.md]", "", "", []int{300 * k}, phases.LimitPlugin, 63 * k, 64 * k, "the lesser of budget.chars of the subscription and budgets.turn.chars"},
		{"opencode, the file above", ", preset: opencode", "", "", []int{60 * k, 10 * k}, phases.LimitPlugin, 63 * k, 64 * k, "the lesser of budget.chars of the subscription and budgets.turn.chars"},
		{"cursor, one file", ", preset: cursor", "", "", []int{64_500}, phases.LimitPlugin, 31 * k, 32 * k, "the lesser of budget.chars of the subscription and budgets.turn.chars"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			base := build(t, map[string]string{"r/.git/HEAD": ""})
			dir := base + "/r"
			for i, size := range tt.sizes {
				if i > 0 {
					dir += fmt.Sprintf("/d%d", i)
				}
				write(t, dir+"/AGENTS.md", guide(fmt.Sprintf("file %d", i), size))
			}
			rest := ""
			if tt.chars != "" {
				rest = "    subscriptions: {agentsdoc.prompt: {budget: {chars: " + tt.chars + "}}}\n"
			}
			eng := withDocuments(t, declared(tt.head, grants, "{global: false"+tt.settings+"}", rest), runtime.Options{})
			done, err := compileIn(t, eng, phases.Context{Dir: dir})
			if err != nil {
				t.Fatal(err)
			}
			row, told := agentsRow(t, done.Manifest)
			if row.Chars < tt.least || row.Chars > tt.most {
				t.Errorf("%d characters, want %d to %d", row.Chars, tt.least, tt.most)
			}
			if nearest := fmt.Sprintf("# file %d\n", len(tt.sizes)-1); !strings.Contains(done.Prompt.FullText+fmt.Sprint(done.Prompt.SystemMessages, done.Prompt.UserMessages), nearest) &&
				tt.name != "codex, all that it allows" {
				t.Error("the nearest file is lost")
			}
			switch {
			case tt.cut == "" && (row.Truncation != nil || row.OriginalChars != row.Chars || told != ""):
				t.Errorf("cut: %+v of %d, %q", row.Truncation, row.OriginalChars, told)
			case tt.cut == "":
			case row.Truncation == nil || row.Truncation.Limit != tt.cut || row.Truncation.Original != row.OriginalChars || row.Truncation.Kept != row.Chars:
				t.Errorf("%d of %d characters, but the truncation is %+v", row.Chars, row.OriginalChars, row.Truncation)
			case !strings.Contains(told, tt.told):
				t.Errorf("told %q, want %q in it", told, tt.told)
			}
		})
	}
}

// agentsRow returns the section's row and the diagnostics of its cuts.
func agentsRow(tb testing.TB, m *manifest.Manifest) (row manifest.Section, told string) {
	var lines []string
	tb.Helper()
	for _, s := range m.Sections {
		if s.SectionID == "agents_md" {
			row = s
		}
	}
	for _, d := range m.Diagnostics {
		if d.Code == "truncated" || d.Code == "omitted_budget" {
			lines = append(lines, cmp.Or(d.Message, d.Code))
		}
	}
	return row, strings.Join(lines, "\n")
}
