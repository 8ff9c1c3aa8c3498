package agentsdoc

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/grapnelhq/grapnel/internal/agentsdoc/agentsdoctest"
	"github.com/grapnelhq/grapnel/internal/agentsdoc/chain"
	"github.com/grapnelhq/grapnel/internal/engine/merge"
	"github.com/grapnelhq/grapnel/phases"
)

// hostCut merges a section as the host does and returns what came of it.
func hostCut(tb testing.TB, s *phases.PromptSection, chars int) phases.MergedSection {
	tb.Helper()
	row, ok := phases.Standard().Lookup(phases.PrePromptCompile)
	if !ok {
		tb.Fatal("no such phase")
	}
	h := &merge.Hook{
		Subscription: "agentsdoc.prompt", Hook: "prompt", Plugin: "agentsdoc", Priority: priority,
		Kinds: []phases.Kind{phases.KindPromptSection}, Budget: phases.TextBudget{Chars: chars},
		Grants: &phases.Grants{Contribute: []string{"prompt_section"}, Sections: []string{sectionID}, Domains: []string{"thread_agents_doc"}},
	}
	admitted, err := merge.Admit(row, h, []phases.Contribution{s})
	if err != nil || len(admitted.Entries) != 1 {
		tb.Fatalf("the host refuses the section: %v, %v", err, admitted.Diagnostics)
	}
	out := merge.Merge(row, []merge.Reply{{Hook: h, Entries: admitted.Entries}}, merge.State{}, merge.Limits{})
	if len(out.Merged.Sections) != 1 {
		tb.Fatalf("%d sections; omitted: %+v", len(out.Merged.Sections), out.Omitted)
	}
	return out.Merged.Sections[0]
}

// checkHost asserts that the host neither cut nor changed a section.
func checkHost(tb testing.TB, s *phases.PromptSection, chars int) {
	tb.Helper()
	got := hostCut(tb, s, chars)
	if n := utf8.RuneCountInString(got.Content); chars > 0 && n > chars {
		tb.Errorf("%d characters, %d are allowed", n, chars)
	}
	if got.Truncation != nil && got.Truncation.Limit != phases.LimitPlugin {
		tb.Errorf("the host cut: %+v", got.Truncation)
	}
	if (got.Truncation != nil) != (s.Cut != nil) {
		tb.Errorf("the plugin's cut is %+v, the host's record %+v", s.Cut, got.Truncation)
	}
	if s.Placement != "" {
		// All that the host does to a message: newlines, and a backslash into what
		// looks like its own lines.
		plain := strings.NewReplacer("\r\n", "\n", "\r", "\n", `\`, "")
		if plain.Replace(got.Content) != plain.Replace(s.Content) {
			tb.Errorf("the host changed the message of %d bytes to %d bytes", len(s.Content), len(got.Content))
		}
		return
	}
	if !strings.HasPrefix(got.Content, chain.FrameOpen+"\n") || !strings.HasSuffix(got.Content, "\n"+chain.FrameClose) {
		tb.Errorf("the frame is damaged:\n%.100q … %q", got.Content, got.Content[len(got.Content)-40:])
	}
}

// deepTree makes a repository with a file in each of n nested directories, and
// returns the innermost.
func deepTree(tb testing.TB, n int, text func(i int) string) string {
	tb.Helper()
	dir := build(tb, map[string]string{".git/HEAD": ""})
	for i := range n {
		if i > 0 {
			dir = filepath.Join(dir, fmt.Sprintf("d%d", i))
		}
		write(tb, filepath.Join(dir, "AGENTS.md"), text(i))
	}
	return dir
}

// presets are configurations of all presets, without the user's own files.
var presets = map[string]string{
	"default": `{"global":false}`, "codex": `{"preset":"codex","global":false}`, "codelia": `{"preset":"codelia"}`,
}

func TestHostNeverCuts(t *testing.T) {
	t.Parallel()
	step := 64 / agentsdoctest.Rounds(64) // 1 or 10
	for name, config := range presets {
		for n := 1; n <= 64; n += step {
			t.Run(fmt.Sprintf("%s, %d files", name, n), func(t *testing.T) {
				t.Parallel()
				// Together far more than either limit, each with a word of its own.
				dir := deepTree(t, n, func(i int) string { return fmt.Sprintf("file %d\n%s", i, lines(10+40_000/(10*n))) })
				p := configured(t, config)
				for _, room := range []int{16_000, 20_000, 3000} {
					s, ok := ask(t, p, inDir(dir), phases.AnswerBudget{MaxChars: room}).(*phases.PromptSection)
					if !ok { // codelia takes whole files or none
						if name != "codelia" {
							t.Errorf("room %d: no section", room)
						}
						continue
					}
					checkHost(t, s, room)
					if name == "default" && !strings.Contains(s.Content, fmt.Sprintf("\nfile %d\n", n-1)) {
						t.Errorf("room %d: the nearest file is lost", room)
					}
					if s.Cut == nil {
						t.Errorf("room %d: nothing was cut, so that the test sees nothing", room)
					}
				}
			})
		}
	}
}
