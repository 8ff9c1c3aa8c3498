package lazy

import (
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/internal/agentsdoc/chain"
	"github.com/grapnelhq/grapnel/internal/agentsdoc/fsview"
)

// views are the implementations that keep the same promises.
func views() map[string]chain.FS {
	return map[string]chain.FS{"os": chain.OS{}, "portable": fsview.Portable{}}
}

func TestBoundaries(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		tree  files
		dir   string
		touch []string
		want  string
	}{
		{
			"directories that tools fill",
			files{
				".git/": "", "a/AGENTS.md": "a\n", "a/node_modules/AGENTS.md": "n\n", "a/node_modules/p/AGENTS.md": "n\n",
				"vendor/AGENTS.md": "v\n", "third_party/AGENTS.md": "t\n", ".venv/AGENTS.md": "e\n", "target/AGENTS.md": "g\n",
			},
			"",
			[]string{"a/node_modules/p/x.js", "vendor", "third_party", ".venv/x", "target", ".git/x"},
			lines("new body a/AGENTS.md"),
		},
		{
			"but not those that lead to the working directory",
			files{
				".git/": "", ".gitignore": "build\n", "build/vendor/x/": "", "build/vendor/AGENTS.md": "v\n", "build/vendor/y/AGENTS.md": "y\n", "build/target/AGENTS.md": "t\n",
			},
			"build/vendor/x",
			[]string{"../y", "../../target"},
			lines("new body build/vendor/y/AGENTS.md"),
		},
		{
			"ignored directories, by every list of patterns on the way",
			files{
				".git/info/exclude": "own\n", ".gitignore": "/dist\n*.out\n!keep.out\n", "a/.gitignore": "tmp/\n", "a/AGENTS.md": "a\n",
				"own/AGENTS.md": "x\n", "dist/AGENTS.md": "x\n", "a/b.out/AGENTS.md": "x\n", "a/tmp/AGENTS.md": "x\n",
				"a/dist/AGENTS.md": "seen\n", "a/keep.out/AGENTS.md": "kept\n",
			},
			"",
			[]string{"own", "dist", "a/b.out", "a/tmp/x", "a/dist", "a/keep.out"},
			lines("new body a/AGENTS.md", "new body a/dist/AGENTS.md", "new body a/keep.out/AGENTS.md"),
		},
		{
			"an ignored file is no ignored directory",
			files{".git/": "", ".gitignore": "AGENTS.md\n", "a/AGENTS.md": "a\n"},
			"",
			[]string{"a"},
			lines("new body a/AGENTS.md"),
		},
		{
			"patterns from outside of the root do not count",
			files{
				"r/.git/": "", "r/.gitignore": "-> BASE/out/patterns", "out/patterns": "a\n", "r/a/AGENTS.md": "a\n",
			},
			"r",
			[]string{"a"},
			lines("new body r/a/AGENTS.md"),
		},
		{
			"a nested repository inherits nothing",
			files{
				".git/": "", ".gitignore": "x\n", "a/AGENTS.md": "a\n", "a/sub/.git": "gitdir: elsewhere\n", "a/sub/AGENTS.md": "s\n", "a/sub/x/AGENTS.md": "x\n",
			},
			"",
			[]string{"a/sub/x"},
			lines("new body a/sub/AGENTS.md", "new body a/sub/x/AGENTS.md"),
		},
		{
			"an ignored nested repository is not looked at",
			files{".git/": "", ".gitignore": "clones/\n", "clones/x/.git/": "", "clones/x/AGENTS.md": "x\n"},
			"",
			[]string{"clones/x/y.go"},
			"",
		},
		{
			"a text that the nested repository has in common",
			files{
				".git/": "", "AGENTS.md": "same\n", "sub/.hg/": "", "sub/AGENTS.md": "same\n",
			},
			"",
			[]string{"sub"},
			lines("new body sub/AGENTS.md"),
		},
		{
			"outside of the root",
			files{"r/.git/": "", "r/a/": "", "AGENTS.md": "x\n", "o/AGENTS.md": "o\n", "rest/AGENTS.md": "o\n"},
			"r",
			[]string{"../o/x", "a/../../rest", "BASE"},
			lines("! outside_root o/x", "! outside_root rest", "! outside_root BASE"),
		},
		{
			"a link that leaves the root",
			files{
				"r/.git/": "", "r/a/AGENTS.md": "a\n", "r/a/out": "-> BASE/o", "o/AGENTS.md": "secret\n", "o/p/AGENTS.md": "secret\n",
			},
			"r",
			[]string{"a/out/p/x"},
			lines("new body r/a/AGENTS.md", "! symlink_escape r/a/out"),
		},
		{
			"a link inside of the root",
			files{".git/": "", "a/l": "-> ../b/c", "a/AGENTS.md": "a\n", "b/AGENTS.md": "b\n", "b/c/AGENTS.md": "c\n", "b/c/d/AGENTS.md": "d\n"},
			"",
			[]string{"a/l/d/x"},
			lines("new body a/AGENTS.md", "new body a/l/AGENTS.md", "new body a/l/d/AGENTS.md"),
		},
		{
			"links behind a boundary, either way",
			files{
				".git/": "", ".gitignore": "out\n", "in": "-> out/p", "out/p/AGENTS.md": "o\n", "node_modules/q": "-> ../q", "q/AGENTS.md": "q\n", "l": "-> node_modules/q",
				"m": "-> vendor/p", "vendor/p/AGENTS.md": "v\n",
			},
			"",
			[]string{"in", "node_modules/q", "m"},
			"",
		},
		{
			"a link into a nested repository",
			files{".git/": "", "a/AGENTS.md": "a\n", "a/l": "-> ../sub/x", "sub/.git/": "", "sub/AGENTS.md": "s\n", "sub/x/AGENTS.md": "x\n"},
			"",
			[]string{"a/l"},
			lines("new body a/l/AGENTS.md"),
		},
		{
			"links that lead nowhere",
			files{".git/": "", "a/AGENTS.md": "a\n", "a/loop": "-> loop", "a/gone": "-> nothing"},
			"",
			[]string{"a/gone/x", "a/loop/x"},
			lines("new body a/AGENTS.md", "! read_error a/loop"),
		},
		{
			"a path that is too long",
			files{".git/": ""},
			"",
			[]string{"a/" + strings.Repeat("b/", 2100), strings.Repeat("c", 300)},
			lines("! path_too_long a"+strings.Repeat("/b", 2100), "! path_too_long "+strings.Repeat("c", 300)),
		},
	}
	for _, tt := range tests {
		for name, view := range views() {
			t.Run(tt.name+"/"+name, func(t *testing.T) {
				t.Parallel()
				base := build(t, tt.tree)
				s := begin(base, tt.dir, chain.Default())
				paths := make([]string, len(tt.touch))
				for i, path := range tt.touch {
					paths[i] = strings.ReplaceAll(path, "BASE", base)
				}
				got := s.Touch(view, chain.Default(), paths)
				text := strings.ReplaceAll(outlineBelow(got, base), base, "BASE")
				if diff := cmp.Diff(text, tt.want); diff != "" {
					t.Errorf("(-got +want):\n%s", diff)
				}
			})
		}
	}
}

// outlineBelow is outline with the files' paths below base, which need not be
// the root.
func outlineBelow(got Touched, base string) string {
	for i := range got.Files {
		got.Files[i].Display = short(got.Files[i].Path, base)
	}
	return outline(got, base)
}

func TestPathsWrittenInAnotherWay(t *testing.T) {
	t.Parallel()
	base := build(t, files{"real/.git/": "", "real/a/AGENTS.md": "a\n", "link": "-> real"})
	for from, to := range map[string]string{"link": "real", "real": "link"} {
		s := begin(base, from, chain.Default())
		got := s.Touch(chain.OS{}, chain.Default(), []string{filepath.Join(base, to, "a", "missing", "x.go")})
		if diff := cmp.Diff(outlineBelow(got, base), lines("new body "+from+"/a/AGENTS.md")); diff != "" {
			t.Errorf("root %s, path %s (-got +want):\n%s", from, to, diff)
		}
	}
}

func TestWithoutRoot(t *testing.T) {
	t.Parallel()
	base := build(t, files{"a/AGENTS.md": "a\n"})
	var s State
	if diff := cmp.Diff(outline(s.Touch(chain.OS{}, chain.Default(), []string{filepath.Join(base, "a"), "b"}), base), lines("! outside_root a", "! outside_root b")); diff != "" {
		t.Errorf("the zero state (-got +want):\n%s", diff)
	}
	s = State{Root: filepath.Join(base, "gone"), Dir: filepath.Join(base, "gone")}
	if diff := cmp.Diff(outline(s.Touch(chain.OS{}, chain.Default(), []string{"b"}), base), lines("! root_refused gone")); diff != "" {
		t.Errorf("a root that is gone (-got +want):\n%s", diff)
	}
}

// tracing is a view that counts what is open, and remembers what was opened.
type tracing struct {
	chain.FS
	open  *int
	paths *[]string
}

func (v tracing) OpenDir(path string) (fsview.Dir, error) {
	dir, err := v.FS.OpenDir(path)
	return v.dir(dir, path, err)
}

func (v tracing) dir(dir fsview.Dir, path string, err error) (fsview.Dir, error) {
	if err != nil {
		return nil, err
	}
	*v.open++
	return tracedDir{dir, v, path}, nil
}

type tracedDir struct {
	fsview.Dir
	view tracing
	path string
}

func (d tracedDir) OpenDir(name string) (fsview.Dir, error) {
	dir, err := d.Dir.OpenDir(name)
	return d.view.dir(dir, filepath.Join(d.path, name), err)
}

func (d tracedDir) Open(name string) (fsview.File, error) {
	f, err := d.Dir.Open(name)
	if err != nil {
		return nil, err
	}
	*d.view.open++
	*d.view.paths = append(*d.view.paths, filepath.Join(d.path, name))
	return tracedFile{f, d.view}, nil
}

func (d tracedDir) Close() error {
	*d.view.open--
	return d.Dir.Close()
}

type tracedFile struct {
	fsview.File
	view tracing
}

func (f tracedFile) Close() error {
	*f.view.open--
	return f.File.Close()
}

// TestNothingOutsideIsOpened touches everything that leads out of a root, by
// files and directories, and looks at what was opened.
func TestNothingOutsideIsOpened(t *testing.T) {
	t.Parallel()
	base := build(t, files{
		"r/.git/": "", "r/a/.gitignore": "-> BASE/o/patterns", "o/patterns": "*\n", "o/secret": "secret\n", "o/d/AGENTS.md": "secret\n", "o/d/.git/info/exclude": "x\n",
		"r/a/AGENTS.md": "-> BASE/o/secret", "r/b": "-> BASE/o/d", "r/c/b": "-> ../b", "r/d/.git": "-> BASE/o/d/.git", "r/d/AGENTS.md": "d\n",
	})
	s := begin(base, "r", chain.Default())
	view := tracing{chain.OS{}, new(int), &[]string{}}
	got := s.Touch(view, chain.Default(), []string{"a", "b", "b/x", "c/b/x", "d", "../o/d"})
	for _, path := range *view.paths {
		if !chain.Within(filepath.Join(base, "r"), path) {
			t.Errorf("%s was opened", path)
		}
	}
	if *view.open != 0 {
		t.Errorf("%d handles are open", *view.open)
	}
	want := lines("new body d/AGENTS.md", "! symlink_escape r/a/AGENTS.md", "! symlink_escape r/b", "! symlink_escape r/c/b", "! outside_root o/d")
	if diff := cmp.Diff(outline(got, base), want); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
	if strings.Contains(got.Reminder, "secret") {
		t.Error("the reminder holds what is outside")
	}
}

// swapping replaces a directory by a link to one outside as soon as it was entered.
type swapping struct {
	chain.FS
	swap func()
}

func (v swapping) OpenDir(path string) (fsview.Dir, error) {
	dir, err := v.FS.OpenDir(path)
	if err != nil {
		return nil, err
	}
	return swappingDir{dir, v}, nil
}

type swappingDir struct {
	fsview.Dir
	view swapping
}

func (d swappingDir) OpenDir(name string) (fsview.Dir, error) {
	dir, err := d.Dir.OpenDir(name)
	if name == "sub" {
		d.view.swap()
	}
	return dir, err
}

func TestDirectorySwappedForALink(t *testing.T) {
	t.Parallel()
	base := build(t, files{"r/.git/": "", "r/sub/.git/": "", "r/sub/AGENTS.md": "s\n", "o/AGENTS.md": "secret\n", "o/.git/": ""})
	s := begin(base, "r", chain.Default())
	done := false
	view := swapping{chain.OS{}, func() {
		if !done {
			done = true
			remove(t, base, "r/sub")
			put(t, base, "r/sub", "-> BASE/o")
		}
	}}
	got := s.Touch(view, chain.Default(), []string{"sub"})
	if !done || strings.Contains(got.Reminder, "secret") || len(got.Files) > 0 {
		t.Errorf("swapped: %t, reported:\n%s", done, got.Reminder)
	}
}

// failing is a view in which a directory of one name cannot be opened.
type failing struct {
	chain.FS
	name string
	err  error
}

func (v failing) OpenDir(path string) (fsview.Dir, error) {
	dir, err := v.FS.OpenDir(path)
	if err != nil {
		return nil, err
	}
	return failingDir{dir, v}, nil
}

type failingDir struct {
	fsview.Dir
	view failing
}

func (d failingDir) OpenDir(name string) (fsview.Dir, error) {
	if name == d.view.name {
		return nil, d.view.err
	}
	dir, err := d.Dir.OpenDir(name)
	if err != nil {
		return nil, err
	}
	return failingDir{dir, d.view}, nil
}

func TestDirectoryThatCannotBeEntered(t *testing.T) {
	t.Parallel()
	base := build(t, files{".git/": "", "a/AGENTS.md": "a\n", "a/b/c/": ""})
	for err, code := range map[error]chain.Code{fs.ErrPermission: chain.CodePermission, syscall.EIO: chain.CodeReadError} {
		s := begin(base, "", chain.Default())
		got := s.Touch(failing{chain.OS{}, "b", err}, chain.Default(), []string{"a/b/c"})
		if diff := cmp.Diff(outline(got, base), lines("new body a/AGENTS.md", "! "+string(code)+" a/b")); diff != "" {
			t.Errorf("%v (-got +want):\n%s", err, diff)
		}
	}
}
