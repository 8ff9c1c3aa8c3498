package lint

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/internal/agentsdoc/chain"
	"github.com/grapnelhq/grapnel/internal/agentsdoc/fsview"
	"github.com/grapnelhq/grapnel/phases"
)

// counting is a view that counts what is opened, and notes where.
type counting struct {
	chain.FS

	files map[string]int
	dirs  *int
}

func newCounting() counting { return counting{chain.OS{}, map[string]int{}, new(int)} }

func (c counting) OpenDir(path string) (chain.Dir, error) {
	*c.dirs++
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
	*d.c.dirs++
	child, err := d.Dir.OpenDir(name)
	if err != nil {
		return nil, err
	}
	return countingDir{child, d.c, filepath.Join(d.path, name)}, nil
}

func (d countingDir) Open(name string) (fsview.File, error) {
	d.c.files[filepath.Join(d.path, name)]++
	return d.Dir.Open(name)
}

// runWith runs lint on a view.
func runWith(t *testing.T, view chain.FS, dir string, o Options) Report {
	t.Helper()
	r, err := run(t.Context(), view, dir, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestSharedWork: every directory of a deep tree is opened a few times, however many chains it is in.
func TestSharedWork(t *testing.T) {
	t.Parallel()

	const depth = 40
	tree := files{".git/": "", "AGENTS.md": "R\n"}
	path := ""
	for i := range depth {
		path += fmt.Sprintf("d%d/", i)
		tree[path+"AGENTS.md"] = fmt.Sprintf("File %d.\n", i)
	}
	base, view := build(t, tree), newCounting()
	r := runWith(t, view, base, noGlobals(nil))
	if r.Files != depth+1 {
		t.Fatalf("%d files, want %d", r.Files, depth+1)
	}
	if limit := 3 * (depth + strings.Count(base, "/") + 10); *view.dirs > limit {
		t.Errorf("%d directories are opened for a depth of %d, want at most %d", *view.dirs, depth, limit)
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
	view := newCounting()
	r := runWith(t, view, filepath.Join(base, "repo"), noGlobals(nil))
	for path := range view.files {
		if !strings.HasPrefix(path, filepath.Join(base, "repo")+"/") {
			t.Errorf("%s was opened", path)
		}
	}
	if r.Count(phases.SeverityError) != 2 {
		t.Errorf("report %v, want 2 links that lead out", outline(&r, base))
	}
}

// TestSameAsChain: what lint sees through its memory is what a chain sees that is
// resolved alone.
func TestSameAsChain(t *testing.T) {
	t.Parallel()

	random := rand.New(rand.NewPCG(3, 5))
	for range 25 {
		base := build(t, randomTree(random))
		w := newWalker(t.Context(), chain.OS{}, base, &Options{Chain: chain.Default()})
		compareWalk(t, w, base)
		w.memory.close()
	}
}

// compareWalk walks as lint does and compares the chain of each directory.
func compareWalk(t *testing.T, w *walker, base string) {
	t.Helper()
	top, err := openTop(base)
	if err != nil {
		t.Fatal(err)
	}
	defer top.close()
	var visit func(f directory, path string)
	visit = func(f directory, path string) {
		list, err := f.list(&w.notable)
		if err != nil {
			t.Fatal(err)
		}
		w.memory.enter(path, list.notable, true)
		defer w.memory.leave()
		got, want := reportOf(t, w.memory, path), reportOf(t, chain.OS{}, path)
		if diff := cmp.Diff(got, want); diff != "" {
			t.Errorf("chain of %s (-memory +alone):\n%s", path, diff)
		}
		for _, name := range list.directories {
			child, err := f.child(name)
			if err != nil {
				t.Fatal(err)
			}
			visit(child, chain.Below(path, name))
			child.close()
		}
	}
	visit(top, base)
}

// reportOf is all that is told of a directory's chain.
func reportOf(t *testing.T, view chain.FS, dir string) string {
	t.Helper()
	c := chain.Resolve(view, dir, chain.Default())
	data, err := json.MarshalIndent(chain.NewReport(c, chain.Render(c, chain.Budget{Bytes: 1 << 20, Chars: 1 << 20})), "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// randomTree is a small tree with everything in it that a chain looks at.
func randomTree(random *rand.Rand) files {
	tree := files{}
	names := []string{"AGENTS.md", "AGENTS.override.md", "AGENTS.local.md", "agents.md", "CLAUDE.md", ".git/", "other"}
	texts := []string{"text %d\n", " \n", "\x00", "-> ../AGENTS.md", "-> BASE/AGENTS.md", "../AGENTS.md", "-> /etc/hostname", "same\n", "\xff %d"}
	for i := range 14 {
		dir := ""
		var dirSb182 strings.Builder
		for range random.IntN(4) {
			dirSb182.WriteString(string(rune('a'+random.IntN(2))) + "/")
		}
		dir += dirSb182.String()
		name := names[random.IntN(len(names))]
		text := texts[random.IntN(len(texts))]
		if strings.Contains(text, "%d") {
			text = fmt.Sprintf(text, i)
		}
		tree[dir+name] = text
	}
	if _, ok := tree["AGENTS.md"]; ok {
		tree["AGENTS.md"] = "root\n" // links to it lead to an end
	}
	return tree
}

// TestDeepTree: deeper than what is held open, everything still is as it is alone,
// and a path that is too long ends the walk with a row.
func TestDeepTree(t *testing.T) {
	t.Parallel()

	base := build(t, files{".git/": ""})
	root, err := os.OpenRoot(base)
	if err != nil {
		t.Fatal(err)
	}
	path := base
	for i := range maxHandles + 20 {
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

// TestBeyondHandles: directories below those that are held open are remembered too.
func TestBeyondHandles(t *testing.T) {
	t.Parallel()

	tree, path := files{".git/": ""}, ""
	for i := range maxHandles + 15 {
		path += "d/"
		if i%10 == 0 {
			tree[path+"AGENTS.md"] = fmt.Sprintf("File %d.\n", i)
		}
	}
	base := build(t, tree)
	w := newWalker(t.Context(), chain.OS{}, base, &Options{Chain: chain.Default()})
	defer w.memory.close()
	compareWalk(t, w, base)
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
