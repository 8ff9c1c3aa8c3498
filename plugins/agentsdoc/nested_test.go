package agentsdoc

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/sdk"
)

// told are the files below a directory that reminders say to apply.
func told(base string, list []phases.Contribution) []string {
	var files []string
	for _, c := range list {
		r, ok := c.(*phases.Reminder)
		if !ok || r.Type != "agents.resolve.paths" {
			continue
		}
		for line := range strings.Lines(r.Text) {
			if path, ok := strings.CutPrefix(line, "- "+base+"/"); ok {
				path, _, _ = strings.Cut(path, " (")
				files = append(files, path)
			}
		}
	}
	return files
}

// TestRelativePaths: a path that a tool touches is meant from the host's working
// directory, whatever directory the session's text is from.
func TestRelativePaths(t *testing.T) {
	t.Parallel()
	tree := map[string]string{
		"r/.git/HEAD": "", "r/AGENTS.md": "top", "r/x/AGENTS.md": "not this", "r/a/AGENTS.md": "deep", "r/a/x/AGENTS.md": "this",
		"other/.git/HEAD": "", "other/AGENTS.md": "elsewhere", "other/x/AGENTS.md": "elsewhere, nested",
	}
	in := func(where phases.Context, dir string) phases.Context { where.Dir = dir; return where }
	tests := []struct {
		name  string
		begin func(t *testing.T, p *sdk.Plugin, base string) phases.Context
		want  []string
	}{
		{"in the session's directory", func(t *testing.T, p *sdk.Plugin, base string) phases.Context {
			where := inSession("s", base+"/r/a")
			ask(t, p, where, phases.AnswerBudget{})
			return where
		}, []string{"r/a/x/AGENTS.md"}},
		{"in another one, before its prompt", func(t *testing.T, p *sdk.Plugin, base string) phases.Context {
			where := inSession("s", base+"/r")
			ask(t, p, where, phases.AnswerBudget{})
			return in(where, base+"/r/a")
		}, []string{"r/a/AGENTS.md", "r/a/x/AGENTS.md"}},
		{"in a sub-task's", func(t *testing.T, p *sdk.Plugin, base string) phases.Context {
			ask(t, p, inSession("parent", base+"/r"), phases.AnswerBudget{})
			where := inSession("s", base+"/r/a")
			where.ParentSessionID = "parent"
			ask(t, p, where, phases.AnswerBudget{})
			return where
		}, []string{"r/a/AGENTS.md", "r/a/x/AGENTS.md"}},
		{"without any prompt", func(_ *testing.T, _ *sdk.Plugin, base string) phases.Context {
			return inSession("s", base+"/r/a")
		}, []string{"r/AGENTS.md", "r/a/AGENTS.md", "r/a/x/AGENTS.md"}},
		{"without any prompt, in another tree than before", func(t *testing.T, p *sdk.Plugin, base string) phases.Context {
			where := inSession("s", base+"/r/a")
			dispatch(t, p, "touching", where, &phases.ToolPreCallInput{Tool: "edit", TouchedPaths: []string{"y"}}, phases.AnswerBudget{})
			return in(where, base+"/other")
		}, []string{"other/AGENTS.md", "other/x/AGENTS.md"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			base := build(t, tree)
			p := configured(t, `{"global":false}`)
			where := tt.begin(t, p, base)
			touch := func() []string {
				return told(base, dispatch(t, p, "touching", where, &phases.ToolPreCallInput{Tool: "edit", TouchedPaths: []string{"x/y.go"}}, phases.AnswerBudget{}))
			}
			if diff := cmp.Diff(touch(), tt.want); diff != "" {
				t.Errorf("(-got +want)\n%s", diff)
			}
			if again := touch(); again != nil {
				t.Errorf("again it tells of %q", again)
			}
		})
	}
}
