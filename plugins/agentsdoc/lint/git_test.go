package lint

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/plugins/agentsdoc/chain"
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
			[]string{"2 files, 2 folders, 0 over", "warning tracked_local a/AGENTS.local.md"},
		},
		{
			"a worktree",
			files{"work/.git": "gitdir: ../main/worktrees/work\n", "main/worktrees/work/": "", "work/AGENTS.local.md": "mine\n"},
			"main/worktrees/work/index",
			[]string{"AGENTS.local.md"},
			"work",
			[]string{"1 files, 1 folders, 0 over", "warning tracked_local work/AGENTS.local.md"},
		},
		{
			"the repository is around the root",
			files{".git/": "", "a/AGENTS.local.md": "mine\n"},
			".git/index",
			[]string{"a/AGENTS.local.md"},
			"a",
			[]string{"1 files, 1 folders, 0 over", "warning tracked_local a/AGENTS.local.md"},
		},
		{
			"nothing is tracked",
			files{".git/": "", "AGENTS.local.md": "mine\n"},
			".git/index",
			[]string{"AGENTS.md"},
			"",
			[]string{"1 files, 1 folders, 0 over"},
		},
		{
			"no repository",
			files{"AGENTS.local.md": "mine\n"},
			"elsewhere", nil, "",
			[]string{"1 files, 1 folders, 0 over"},
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

// TestDamagedIndex: what an index says before it breaks counts, and that it is
// broken is a row. No index at all is no problem.
func TestDamagedIndex(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name   string
		damage func(data []byte) []byte
		want   []string
	}{
		{"no index", nil, []string{"2 files, 2 folders, 0 over"}},
		{
			"cut", func(data []byte) []byte { return data[:len(data)-30] },
			[]string{"2 files, 2 folders, 0 over", "warning read_error .git/index", "warning tracked_local AGENTS.local.md"},
		},
		{
			"no index at all", func([]byte) []byte { return []byte("AGENTS.local.md") },
			[]string{"2 files, 2 folders, 0 over", "warning read_error .git/index"},
		},
		{"empty", func([]byte) []byte { return nil }, []string{"2 files, 2 folders, 0 over", "warning read_error .git/index"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			base := build(t, files{".git/": "", "AGENTS.local.md": "mine\n", "a/AGENTS.local.md": "mine too\n"})
			path := filepath.Join(base, ".git", "index")
			writeIndex(t, path, "AGENTS.local.md", "z")
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if tt.damage == nil {
				err = os.Remove(path)
			} else {
				err = os.WriteFile(path, tt.damage(data), 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
			r := mustRun(t, base, noGlobals(nil))
			if diff := cmp.Diff(outline(&r, base), tt.want); diff != "" {
				t.Errorf("report (-got +want):\n%s", diff)
			}
		})
	}
}

// TestHolds finds a name wherever it stands, also across two reads.
func TestHolds(t *testing.T) {
	t.Parallel()

	names := map[string]bool{"AGENTS.local.md": true, "x.local": true}
	for _, before := range []int{0, 1, 64<<10 - 7, 64 << 10, 64<<10 + 15, 200_000} {
		for text, want := range map[string]bool{"AGENTS.local.md": true, "x.local": true, "AGENTS.md": false} {
			data := strings.Repeat("-", before) + text + "----"
			got, err := holds(iotest.HalfReader(strings.NewReader(data)), names)
			if err != nil || got != want {
				t.Errorf("%s behind %d bytes: %v, error %v, want %v", text, before, got, err, want)
			}
		}
	}
	if _, err := holds(iotest.ErrReader(os.ErrClosed), names); err == nil {
		t.Error("a failure to read is no answer")
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

// FuzzTracked: no index makes lint fail, and one that names nobody tracks nothing.
func FuzzTracked(f *testing.F) {
	path := filepath.Join(f.TempDir(), "index")
	writeIndex(f, path, "AGENTS.local.md", "b")
	data, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte("DIRC\x00\x00\x00\x04\x00\x00\x00\x01"))
	f.Fuzz(func(t *testing.T, data []byte) {
		dir := t.TempDir()
		write(t, filepath.Join(dir, "index"), string(data))
		found, _ := tracked(chain.OS{}, dir, map[string]string{"AGENTS.local.md": "/x/AGENTS.local.md"})
		if found["/x/AGENTS.local.md"] && !bytes.Contains(data, []byte("AGENTS.local.md")) {
			t.Error("tracked, and the index does not name it")
		}
	})
}
