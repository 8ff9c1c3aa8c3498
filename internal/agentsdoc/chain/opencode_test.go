package chain

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/internal/agentsdoc/agentsdoctest"
)

func TestUntrimmedAsOpencodeDoes(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(151, 152))
	seen := map[string]int{}
	for range agentsdoctest.Rounds(800) {
		base, directories := randomProject(t, rng, 4, "AGENTS.md", "CLAUDE.md", "CLAUDE.md", "CONTEXT.md")
		home := build(t, files{})
		for _, name := range []string{".config/opencode/AGENTS.md", ".claude/CLAUDE.md"} {
			if rng.IntN(2) == 0 {
				addFile(t, filepath.Join(home, name), "user "+name)
			}
		}
		o, err := ForPreset(PresetOpencode, Places{Home: home})
		if err != nil {
			t.Fatal(err)
		}
		c := Resolve(OS{}, directories[len(directories)-1], o)
		r := Render(c, Budget{plenty, plenty})

		var paths, want []string
		for _, name := range []string{".config/opencode/AGENTS.md", ".claude/CLAUDE.md"} {
			if path := filepath.Join(home, name); len(paths) == 0 && isThere(path) {
				paths = append(paths, path)
			}
		}
		wide := len(paths)
		for _, name := range []string{"AGENTS.md", "CLAUDE.md", "CONTEXT.md"} {
			for _, dir := range slices.Backward(directories) {
				if path := filepath.Join(dir, name); len(paths) >= wide && isThere(path) {
					paths = append(paths, path)
				}
			}
			if len(paths) > wide {
				seen[name]++
				break
			}
		}
		for _, path := range paths {
			if data, err := os.ReadFile(path); err == nil && len(data) > 0 {
				want = append(want, "Instructions from: "+path+"\n"+string(data))
			}
		}
		if diff := cmp.Diff(r.Text, strings.Join(want, "\n")); diff != "" {
			t.Fatalf("(-got +want)\n%s\n%s", diff, outline(c, base))
		}
	}
	for _, name := range []string{"AGENTS.md", "CLAUDE.md", "CONTEXT.md"} {
		if seen[name] < agentsdoctest.Rounds(30) {
			t.Errorf("%s decided only %d times: the test sees too little", name, seen[name])
		}
	}
}

func isThere(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// TestCursorRules has the cases of the documentation: always, by paths, and what
// a model or a person chooses.
func TestCursorRules(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(161, 162))
	for range agentsdoctest.Rounds(200) {
		tree := files{".git/": "", "AGENTS.md": "root", "d/AGENTS.md": "near", "d/e/AGENTS.md": "nested"}
		want, scoped, manual := []string{"AGENTS.md"}, []string{}, []string{}
		if rng.IntN(2) == 0 {
			tree[".cursorrules"] = "old"
			want = append(want, ".cursorrules")
		}
		for _, name := range []string{"a.mdc", "b.mdc", "x/c.mdc", "no.md"} {
			always, globs := rng.IntN(3), rng.IntN(2) == 0
			matter := []string{"", "alwaysApply: false\n", "alwaysApply: true\n"}[always]
			if globs {
				matter += "globs: *.ts,src/**/*.go\n"
			}
			if matter != "" {
				matter = "---\ndescription: d\n" + matter + "---\n"
			}
			path := ".cursor/rules/" + name
			tree[path] = matter + "rule " + name
			switch {
			case name == "no.md":
			case always == 2:
				want = append(want, path)
			case globs:
				scoped = append(scoped, path)
			default:
				manual = append(manual, path)
			}
		}
		base := build(t, tree)
		c := Resolve(OS{}, filepath.Join(base, "d"), preset(t, PresetCursor))
		got := map[string][]string{}
		for _, s := range c.Sources {
			got[string(s.State)+s.Reason] = append(got[string(s.State)+s.Reason], s.Display)
			if s.Rule && s.State == StateKept && s.Text != "rule "+strings.TrimPrefix(s.Display, ".cursor/rules/") {
				t.Errorf("%s is %q", s.Display, s.Text)
			}
			if s.Reason == ReasonScoped && (!s.Concerns(filepath.Join(base, "d/x.ts")) || s.Concerns(filepath.Join(base, "d/x.go"))) {
				t.Errorf("%s is for %v", s.Display, s.Globs)
			}
		}
		want = append(want, "d/AGENTS.md")
		for what, list := range map[string][]string{"kept": want, "skippedscoped": scoped, "skippedmanual": manual} {
			if diff := cmp.Diff(strings.Join(got[what], " "), strings.Join(list, " ")); diff != "" {
				t.Fatalf("%s (-got +want)\n%s\n%s", what, diff, outline(c, base))
			}
		}
	}
}
