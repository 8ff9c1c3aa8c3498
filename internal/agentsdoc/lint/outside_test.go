package lint

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/internal/agentsdoc/chain"
	"github.com/grapnelhq/grapnel/internal/agentsdoc/fsview"
	"github.com/grapnelhq/grapnel/phases"
)

// counting is a view that notes which files are opened.
type counting struct {
	chain.FS

	files  map[string]int
	closed []string // files and directories that may not be read
}

func (c counting) OpenDir(path string) (chain.Dir, error) {
	d, err := c.FS.OpenDir(path)
	if err != nil {
		return nil, err
	}
	return countingDir{d, c, path}, nil
}

type countingDir struct {
	chain.Dir

	c    counting
	path string
}

func (d countingDir) OpenDir(name string) (chain.Dir, error) {
	child, err := d.Dir.OpenDir(name)
	if err != nil {
		return nil, err
	}
	return countingDir{child, d.c, filepath.Join(d.path, name)}, nil
}

func (d countingDir) Open(name string) (fsview.File, error) {
	path := filepath.Join(d.path, name)
	if d.c.files[path]++; slices.Contains(d.c.closed, path) {
		return nil, fs.ErrPermission
	}
	return d.Dir.Open(name)
}

func (d countingDir) Entries(most int) ([]fs.DirEntry, error) {
	if slices.Contains(d.c.closed, d.path) {
		return nil, fs.ErrPermission
	}
	return d.Dir.Entries(most)
}

// TestUnreadable: directories and files that may not be read are errors, and the rest is looked at.
func TestUnreadable(t *testing.T) {
	t.Parallel()

	base := build(t, files{".git/": "", "AGENTS.md": "R\n", "a/AGENTS.md": "A\n", "b/AGENTS.md": "B\n"})
	view := counting{chain.OS{}, map[string]int{}, []string{filepath.Join(base, "a"), filepath.Join(base, "b", "AGENTS.md")}}
	r, err := run(t.Context(), view, base, noGlobals(nil))
	if diff := cmp.Diff(outline(&r, base), []string{"2 files, 2 directories, 0 over", "error permission a", "error permission b/AGENTS.md"}); diff != "" || err != nil {
		t.Errorf("%v, report (-got +want):\n%s", err, diff)
	}
}

// TestNothingOutside: no file is opened but in the tree and git's own directory.
func TestNothingOutside(t *testing.T) {
	t.Parallel()

	base := build(t, files{
		"secret/AGENTS.md": "S\n",
		"repo/.git/":       "", "repo/AGENTS.md": "-> ../secret/AGENTS.md", "repo/a/AGENTS.md": "A\n", "repo/a/AGENTS.local.md": "-> /etc/hostname",
		"repo/out": "-> BASE/secret", "repo/b/.gitignore": "-> BASE/secret/AGENTS.md", "repo/b/c/AGENTS.md": "../../../secret/AGENTS.md",
	})
	view := counting{chain.OS{}, map[string]int{}, nil}
	r, err := run(t.Context(), view, filepath.Join(base, "repo"), noGlobals(nil))
	if err != nil {
		t.Fatal(err)
	}
	for path := range view.files {
		if !strings.HasPrefix(path, filepath.Join(base, "repo")+"/") {
			t.Errorf("%s was opened", path)
		}
	}
	if r.Count(phases.SeverityError) != 2 {
		t.Errorf("report %v, want 2 links that lead out", outline(&r, base))
	}
}

// TestDeepTree: a path that is too long ends the walk with a row.
func TestDeepTree(t *testing.T) {
	t.Parallel()

	base := build(t, files{".git/": ""})
	root, err := os.OpenRoot(base)
	if err != nil {
		t.Fatal(err)
	}
	path := base
	for i := range 148 {
		name := strings.Repeat("d", 60)
		if err := root.Mkdir(name, 0o700); err != nil {
			t.Fatal(err)
		}
		next, err := root.OpenRoot(name)
		if err != nil {
			t.Fatal(err)
		}
		_ = root.Close()
		root, path = next, chain.Below(path, name)
		if i%20 == 19 {
			if err := root.WriteFile("AGENTS.md", fmt.Appendf(nil, "File %d.\n", i), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	_ = root.Close()
	r := mustRun(t, base, noGlobals(nil))
	within := (maxPath - len(base)) / 61
	if r.Directories != within+1 || r.Files != within/20 {
		t.Errorf("%d directories and %d files, want %d and %d", r.Directories, r.Files, within+1, within/20)
	}
	if len(r.Problems) != 1 || r.Problems[0].Code != chain.CodePathTooLong {
		t.Errorf("problems %v, want one path that is too long", r.Problems)
	}
	t.Cleanup(func() { _ = os.RemoveAll(base) })
}

// TestLinkedRoot: a tree that is reached through a link is looked at by the name
// that the person used.
func TestLinkedRoot(t *testing.T) {
	t.Parallel()

	base := build(t, files{"real/.git/": "", "real/AGENTS.md": "R\n", "real/a/AGENTS.md": "A\n", "link": "-> real"})
	link := filepath.Join(base, "link")
	r := mustRun(t, filepath.Join(link, "a"), noGlobals(nil))
	if r.Root != link || r.Files != 2 || len(r.Problems) != 0 {
		t.Errorf("root %s, report %v", r.Root, outline(&r, base))
	}
}
