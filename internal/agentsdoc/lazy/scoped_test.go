package lazy

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/internal/agentsdoc/chain"
)

// TestRulesForPaths touches files that rules with a front matter are for.
func TestRulesForPaths(t *testing.T) {
	t.Parallel()
	base := build(t, files{
		".git/": "", "CLAUDE.md": "@docs/a.md\n", "docs/a.md": "a\n", "src/CLAUDE.md": "src\n", "src/a.ts": "", "src/a.go": "", "x/y.ts": "",
		".claude/rules/ts.md":      "---\npaths: \"src/**/*.ts\"\n---\nscript\n",
		".claude/rules/all.md":     "all\n",
		"src/.claude/rules/in.md":  "---\npaths: [\"*.go\"]\n---\nnested\n",
		"src/.claude/rules/now.md": "now\n",
	})
	o, err := chain.ForPreset(chain.PresetClaude, chain.Places{})
	if err != nil {
		t.Fatal(err)
	}
	c := chain.Resolve(chain.OS{}, base, o)
	s := Begin(0, c, chain.Render(c, chain.Budget{Bytes: 1 << 20, Chars: 1 << 20}))
	for _, step := range []struct {
		path string
		want []string
	}{
		{"x/y.ts", nil},
		{"src/a.ts", []string{"src/CLAUDE.md", ".claude/rules/ts.md", "src/.claude/rules/now.md"}},
		{"src/a.ts", nil},
		{"src/a.go", []string{"src/.claude/rules/in.md"}},
		{"src", nil},
	} {
		var got []string
		for _, f := range s.Touch(chain.OS{}, o, []string{step.path}).Files {
			got = append(got, f.Display)
			if f.Body == "" || filepath.Base(f.Path) == "ts.md" && f.Body != "script" {
				t.Errorf("%s is delivered as %q", f.Display, f.Body)
			}
		}
		if diff := cmp.Diff(got, step.want); diff != "" {
			t.Errorf("%s (-got +want)\n%s", step.path, diff)
		}
	}
	put(t, base, "docs/a.md", "b\n")
	now := chain.Resolve(chain.OS{}, base, o)
	changes := s.Changed(now)
	if len(changes.Files) != 1 || changes.Files[0].Display != "docs/a.md" {
		t.Errorf("after an import was edited: %+v", changes.Files)
	}
}
