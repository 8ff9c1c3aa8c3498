package lint

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/internal/agentsdoc/chain"
)

// TestTracked: a personal file in git's index is reported, be the repository a
// worktree or around the root.
func TestTracked(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name  string
		tree  files
		index string // its path
		names []string
		root  string
		want  []string
	}{
		{
			"one of two",
			files{".git/": "", "AGENTS.local.md": "mine\n", "a/AGENTS.local.md": "mine too\n"},
			".git/index",
			[]string{"AGENTS.md", "a/AGENTS.local.md", "b"},
			"",
			[]string{"2 files, 2 directories, 0 over", "warning tracked_local a/AGENTS.local.md"},
		},
		{
			"a worktree",
			files{"work/.git": "gitdir: ../main/worktrees/work\n", "main/worktrees/work/gitdir": "../../../work/.git\n", "work/AGENTS.local.md": "mine\n"},
			"main/worktrees/work/index",
			[]string{"AGENTS.local.md"},
			"work",
			[]string{"1 files, 1 directories, 0 over", "warning tracked_local work/AGENTS.local.md"},
		},
		{
			"the repository is around the root",
			files{".git/": "", "a/AGENTS.local.md": "mine\n"},
			".git/index",
			[]string{"a/AGENTS.local.md"},
			"a",
			[]string{"1 files, 1 directories, 0 over", "warning tracked_local a/AGENTS.local.md"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			base := build(t, tt.tree)
			writeIndex(t, filepath.Join(base, tt.index), tt.names...)
			dir := filepath.Join(base, tt.root)
			r := mustRun(t, dir, noGlobals(func(o *chain.Options) { o.Root = dir }))
			if diff := cmp.Diff(outline(&r, base), tt.want); diff != "" {
				t.Errorf("report (-got +want):\n%s", diff)
			}
		})
	}
}

// TestDamagedIndex: an index that git cannot read is a row.
func TestDamagedIndex(t *testing.T) {
	t.Parallel()

	base := build(t, files{".git/index": "AGENTS.local.md", "AGENTS.local.md": "mine\n"})
	r := mustRun(t, base, noGlobals(nil))
	if diff := cmp.Diff(outline(&r, base), []string{"1 files, 1 directories, 0 over", "warning read_error .git/index"}); diff != "" {
		t.Errorf("report (-got +want):\n%s", diff)
	}
}

// TestFormsOfIndex reads what git writes, in each form that it has.
func TestFormsOfIndex(t *testing.T) {
	t.Parallel()

	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("there is no git to write an index")
	}
	const local = "AGENTS.local.md"
	names := []string{local, "a/" + local, strings.Repeat("long/", 900) + local, "zz/" + strings.Repeat("x", 200)}
	tests := []struct {
		name   string
		format string
		steps  [][]string
	}{
		{name: "version 2", steps: [][]string{{"update-index", "--index-version", "2"}}},
		{name: "version 3", steps: [][]string{{"update-index", "--index-version", "3"}, {"update-index", "--skip-worktree", local}}},
		{name: "version 4", steps: [][]string{{"update-index", "--index-version", "4"}, {"update-index", "--skip-worktree", local}}},
		{name: "SHA-256", format: "--object-format=sha256"},
		{name: "split", steps: [][]string{{"update-index", "--split-index"}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			base := t.TempDir()
			run := func(in string, args ...string) {
				t.Helper()
				c := exec.CommandContext(t.Context(), git, args...)
				c.Dir, c.Stdin = base, strings.NewReader(in)
				c.Env = []string{"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "HOME=" + base}
				if out, err := c.CombinedOutput(); err != nil {
					t.Fatalf("git %v: %v: %s", args, err, out)
				}
			}
			run("", append([]string{"init", "--quiet"}, slices.DeleteFunc([]string{tt.format}, func(s string) bool { return s == "" })...)...)
			id := strings.Repeat("1", 40)
			if tt.format != "" {
				id = strings.Repeat("1", 64)
			}
			var in strings.Builder
			for _, name := range names {
				in.WriteString("100644 " + id + "\t" + name + "\n")
			}
			run(in.String(), "update-index", "--index-info")
			for _, args := range tt.steps {
				run("", args...)
			}
			found, err := trackedFiles(t.Context(), chain.OS{}, filepath.Join(base, ".git"), append(names, "b/"+local))
			found = slices.DeleteFunc(found, func(s string) bool { return s == "" })
			slices.Sort(found)
			if diff := cmp.Diff(found, slices.Sorted(slices.Values(names))); diff != "" || err != nil {
				t.Errorf("error %v (-got +want):\n%s", err, diff)
			}
		})
	}
}

// TestNeverBlocks: what stands where git's files should be is not waited for.
func TestNeverBlocks(t *testing.T) {
	t.Parallel()

	base := build(t, files{".git/index/": "", ".git/info/exclude/": "", "AGENTS.local.md": "mine\n", ".gitignore/": ""})
	r := mustRun(t, base, noGlobals(nil))
	if r.Files != 1 || len(r.Problems) != 1 || r.Problems[0].Code != chain.CodeReadError {
		t.Errorf("report %v", outline(&r, base))
	}
}

// TestGitRunsNothing: a repository whose configuration and hooks name programs starts
// none of them.
func TestGitRunsNothing(t *testing.T) {
	t.Parallel()

	base := build(t, files{
		".git/HEAD": "ref: refs/heads/main\n", ".git/objects/": "", ".git/refs/": "", "AGENTS.local.md": "mine\n",
		".git/config": "[core]\nfsmonitor = touch BASE/ran; false\nhooksPath = BASE/hooks\nsshCommand = touch BASE/ran\n[pager]\nls-files = touch BASE/ran\n" +
			"[remote \"origin\"]\nurl = ext::touch BASE/ran\npromisor = true\n[extensions]\npartialClone = origin\n[protocol \"ext\"]\nallow = always\n",
	})
	config := filepath.Join(base, ".git", "config")
	data, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	write(t, config, strings.ReplaceAll(string(data), "BASE", base))
	writeIndex(t, filepath.Join(base, ".git", "index"), "AGENTS.local.md")
	r := mustRun(t, base, noGlobals(nil))
	if len(r.Problems) != 1 || r.Problems[0].Code != codeTrackedLocal {
		t.Errorf("report %v", outline(&r, base))
	}
	if _, err := os.Stat(filepath.Join(base, "ran")); err == nil {
		t.Error("a program of the repository ran")
	}
}
