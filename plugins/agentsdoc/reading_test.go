package agentsdoc

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/phases"
)

func TestReadsFiles(t *testing.T) {
	t.Parallel()
	for tool, want := range map[string]bool{
		"read": true, "Read": true, "read_file": true, "ReadFile": true, "read-many-files": true, "cat": true, "view": true,
		"mcp__fs__read_text_file": true, "fs.read_file": true, "fs:view": true, "a/b/read": true,
		"": false, "edit": false, "shell": false, "write_file": false, "ls": false, "read_image": false, "thread": false, "__": false,
	} {
		if got := readsFiles(tool); got != want {
			t.Errorf("readsFiles(%q) = %t, want %t", tool, got, want)
		}
	}
}

// TestReadCountsAsDelivered: an instruction file that a tool reads for the model
// is not told of, as long as it says the same; all others are.
func TestReadCountsAsDelivered(t *testing.T) {
	t.Parallel()
	const file, beside = "a/b/AGENTS.md", "a/b/x.go"
	tests := []struct {
		name, tool, outcome, path string
		before, after, then       []string // the files that are told
	}{
		{"read", "read_file", "ok", file, nil, []string{"a/AGENTS.md"}, nil},
		{"the host does not say how it went", "Read", "", file, nil, []string{"a/AGENTS.md"}, nil},
		{"failed", "read_file", "error", file, nil, []string{"a/AGENTS.md", "a/b/AGENTS.md"}, nil},
		{"another file of the directory", "read_file", "ok", beside, []string{"a/AGENTS.md", "a/b/AGENTS.md"}, nil, nil},
		{"edited", "edit", "ok", file, []string{"a/AGENTS.md", "a/b/AGENTS.md"}, nil, nil},
		{"a file that no name counts for", "read", "ok", "a/b/CLAUDE.md", []string{"a/AGENTS.md", "a/b/AGENTS.md"}, nil, nil},
		{"a file that another one stands before", "read", "ok", "over/AGENTS.md", nil, []string{"over/AGENTS.override.md"}, []string{"a/AGENTS.md", "a/b/AGENTS.md"}},
		{"not there", "read", "ok", "nowhere/AGENTS.md", nil, nil, []string{"a/AGENTS.md", "a/b/AGENTS.md"}},
		{"outside", "read", "ok", "/etc/AGENTS.md", nil, nil, []string{"a/AGENTS.md", "a/b/AGENTS.md"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			base := build(t, map[string]string{
				".git/HEAD": "", "AGENTS.md": "top", "a/AGENTS.md": "deep", file: "deeper", beside: "", "a/b/CLAUDE.md": "x",
				"over/AGENTS.md": "no", "over/AGENTS.override.md": "yes",
			})
			host := &fakeHost{}
			p := withoutHome()
			configure(t, p, `{"global":false,"watch":false}`, host)
			where := inSession("s", base)
			ask(t, p, where, phases.AnswerBudget{})
			call := func(tool, outcome, path string) (before, after []string) {
				paths := []string{path}
				return told(base, dispatch(t, p, "touching", where, &phases.ToolPreCallInput{Tool: tool, TouchedPaths: paths}, phases.AnswerBudget{})),
					told(base, dispatch(t, p, "touched", where, &phases.ToolPostCallInput{Tool: tool, TouchedPaths: paths, Outcome: outcome}, phases.AnswerBudget{}))
			}
			before, after := call(tt.tool, tt.outcome, tt.path)
			if diff := cmp.Diff([][]string{before, after}, [][]string{tt.before, tt.after}); diff != "" {
				t.Errorf("before and after the call (-got +want)\n%s", diff)
			}
			p = withoutHome() // another process, which knows what the host has kept
			configure(t, p, `{"global":false,"watch":false}`, host)
			then, again := call("edit", "ok", beside)
			if diff := cmp.Diff(then, tt.then); diff != "" || again != nil {
				t.Errorf("then, and %q again (-got +want)\n%s", again, diff)
			}
			write(t, filepath.Join(base, file), "edited")
			if got, _ := call("edit", "ok", beside); !cmp.Equal(got, []string{"a/b/AGENTS.md"}) {
				t.Errorf("after an edit %q is told", got)
			}
		})
	}
}
