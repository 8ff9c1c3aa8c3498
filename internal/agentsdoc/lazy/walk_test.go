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

func TestPathsWrittenInAnotherWay(t *testing.T) {
	t.Parallel()
	base := build(t, files{"real/.git/": "", "real/a/AGENTS.md": "a\n", "link": "-> real"})
	for from, to := range map[string]string{"link": "real", "real": "link"} {
		s := begin(base, from, chain.Default())
		got := s.Touch(chain.OS{}, chain.Default(), []string{filepath.Join(base, to, "a", "missing", "x.go")})
		if diff := cmp.Diff(outline(got, base), lines("new body "+from+"/a/AGENTS.md")); diff != "" {
			t.Errorf("root %s, path %s (-got +want):\n%s", from, to, diff)
		}
	}
}

func TestLongPaths(t *testing.T) {
	t.Parallel()
	base := build(t, files{".git/": ""})
	s := begin(base, "", chain.Default())
	for _, path := range []string{"a/" + strings.Repeat("b/", 2100), strings.Repeat("c", 300)} {
		if got := outline(s.Touch(chain.OS{}, chain.Default(), []string{path}), base); got != lines("! path_too_long "+strings.TrimSuffix(path, "/")) {
			t.Errorf("got %.100q", got)
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

// hooked is a view that counts what is open, and calls back.
type hooked struct {
	chain.FS
	open     *int
	entering func(name string) error // before a directory is opened in another one
	entered  func(name string)
	opened   func(path string) // a file
}

func (v hooked) OpenDir(path string) (fsview.Dir, error) { return v.dir(path)(v.FS.OpenDir(path)) }

func (v hooked) dir(path string) func(fsview.Dir, error) (fsview.Dir, error) {
	return func(dir fsview.Dir, err error) (fsview.Dir, error) {
		if err != nil {
			return nil, err
		}
		*v.open++
		return hookedDir{dir, v, path}, nil
	}
}

type hookedDir struct {
	fsview.Dir
	view hooked
	path string
}

func (d hookedDir) OpenDir(name string) (fsview.Dir, error) {
	if d.view.entering != nil {
		if err := d.view.entering(name); err != nil {
			return nil, err
		}
	}
	dir, err := d.Dir.OpenDir(name)
	if d.view.entered != nil {
		d.view.entered(name)
	}
	return d.view.dir(filepath.Join(d.path, name))(dir, err)
}

func (d hookedDir) Open(name string) (fsview.File, error) {
	if d.view.opened != nil {
		d.view.opened(filepath.Join(d.path, name))
	}
	return d.Dir.Open(name)
}

func (d hookedDir) Close() error {
	*d.view.open--
	return d.Dir.Close()
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
	view := hooked{FS: chain.OS{}, open: new(int), opened: func(path string) {
		if !chain.Within(filepath.Join(base, "r"), path) {
			t.Errorf("%s was opened", path)
		}
	}}
	got := s.Touch(view, chain.Default(), []string{"a", "b", "b/x", "c/b/x", "d", "../o/d"})
	if *view.open != 0 {
		t.Errorf("%d handles are open", *view.open)
	}
	want := lines("new body r/d/AGENTS.md", "! symlink_escape r/a/AGENTS.md", "! symlink_escape r/b", "! symlink_escape r/c/b", "! outside_root o/d")
	if diff := cmp.Diff(outline(got, base), want); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
	if strings.Contains(got.Reminder, "secret") {
		t.Error("the reminder holds what is outside")
	}
}

func TestDirectorySwappedForALink(t *testing.T) {
	t.Parallel()
	base := build(t, files{"r/.git/": "", "r/sub/.git/": "", "r/sub/AGENTS.md": "s\n", "o/AGENTS.md": "secret\n", "o/.git/": ""})
	s := begin(base, "r", chain.Default())
	done := false
	view := hooked{FS: chain.OS{}, open: new(int), entered: func(name string) {
		if name == "sub" && !done {
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

func TestDirectoryThatCannotBeEntered(t *testing.T) {
	t.Parallel()
	base := build(t, files{".git/": "", "a/AGENTS.md": "a\n", "a/b/c/": ""})
	for err, code := range map[error]chain.Code{fs.ErrPermission: chain.CodePermission, syscall.EIO: chain.CodeReadError} {
		s := begin(base, "", chain.Default())
		view := hooked{FS: chain.OS{}, open: new(int), entering: func(name string) error { return map[string]error{"b": err}[name] }}
		got := s.Touch(view, chain.Default(), []string{"a/b/c"})
		if diff := cmp.Diff(outline(got, base), lines("new body a/AGENTS.md", "! "+string(code)+" a/b")); diff != "" {
			t.Errorf("%v (-got +want):\n%s", err, diff)
		}
	}
}
