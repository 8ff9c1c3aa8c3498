package chain

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/internal/agentsdoc/agentsdoctest"
	"github.com/grapnelhq/grapnel/internal/agentsdoc/fsview"
)

func TestResolveFaults(t *testing.T) {
	t.Parallel()
	root := `root "r" found=true`
	denied := &fs.PathError{Op: "open", Path: "x", Err: syscall.EACCES}
	one := "kept project AGENTS.md: one"
	tests := []struct {
		name string
		fail map[string]error
		want string
	}{
		{"nothing", nil, lines(root, one, "kept project a/AGENTS.md: two")},
		{
			"file may not be read",
			map[string]error{"open r/AGENTS.md": denied},
			lines(root, "skipped project AGENTS.md (permission)", "kept project a/AGENTS.md: two", "! error permission r/AGENTS.md"),
		},
		{
			"file vanishes before it is opened",
			map[string]error{"open r/AGENTS.md": syscall.ENOENT},
			lines(root, "kept project a/AGENTS.md: two"),
		},
		{
			"file is leased",
			map[string]error{"open r/AGENTS.md": syscall.EAGAIN},
			lines(root, "skipped project AGENTS.md (file_busy)", "kept project a/AGENTS.md: two", "! error file_busy r/AGENTS.md"),
		},
		{
			"file fails to be read",
			map[string]error{"read r/AGENTS.md": syscall.EIO},
			lines(root, "skipped project AGENTS.md (read_error)", "kept project a/AGENTS.md: two", "! warning read_error r/AGENTS.md"),
		},
		{
			"file fails to be described",
			map[string]error{"fstat r/a/AGENTS.md": syscall.EIO},
			lines(root, one, "skipped project a/AGENTS.md (read_error)", "! warning read_error r/a/AGENTS.md"),
		},
		{
			"directory may not be searched",
			map[string]error{"lstat r/a/AGENTS.override.md": denied},
			lines(root, one, "! error permission r/a"),
		},
		{
			"name cannot be looked up",
			map[string]error{"lstat r/a/AGENTS.override.md": syscall.EIO},
			lines(root, one, "kept project a/AGENTS.md: two", "! warning read_error r/a/AGENTS.override.md"),
		},
		{
			"directory may not be entered",
			map[string]error{"opendir r/a": denied},
			lines("! error permission r/a"),
		},
		{
			"the top cannot be opened",
			map[string]error{"opendir /": syscall.EMFILE},
			lines("! warning read_error r/a"),
		},
		{
			"marker may not be looked at",
			map[string]error{"lstat r/.git": denied},
			lines(`root "r/a" found=false`, "kept project AGENTS.md: two", "! warning permission r/.git"),
		},
		{
			"an error of a kind of its own",
			map[string]error{"open r/AGENTS.md": errors.New("odd")},
			lines(root, "skipped project AGENTS.md (read_error)", "kept project a/AGENTS.md: two", "! warning read_error r/AGENTS.md"),
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			base := build(t, files{"r/.git/": "", "r/AGENTS.md": "one", "r/a/AGENTS.md": "two"})
			view := &faultFS{FS: OS{}, fail: map[string]error{}}
			for key, err := range tt.fail {
				op, path, _ := strings.Cut(key, " ")
				view.fail[op+" "+filepath.Join(base[:len(base)*b2i(path != "/")], path)] = err
			}
			got := outline(Resolve(view, filepath.Join(base, "r/a"), Options{}), base)
			if diff := cmp.Diff(got, tt.want); diff != "" {
				t.Errorf("(-got +want)\n%s", diff)
			}
			if view.open != 0 {
				t.Errorf("%d handles were left open", view.open)
			}
		})
	}
}

// b2i is 1 for true.
func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

func TestResolveRaces(t *testing.T) {
	t.Parallel()
	root := `root "r" found=true`
	tests := []struct {
		name, before string
		// swap is done to the tree before the operation.
		swap func(base string) error
		want string
	}{
		{
			"file becomes a link to a secret", "open r/AGENTS.md",
			func(base string) error { return replaceByLink(base+"/r/AGENTS.md", "../secret") },
			lines(root, "skipped project AGENTS.md (read_error)", "kept project a/AGENTS.md: two", "! warning read_error r/AGENTS.md"),
		},
		{
			"directory on a link's way becomes a link", "opendir r/d",
			func(base string) error { return replaceByLink(base+"/r/d", "../out") },
			lines(root, "kept project AGENTS.md: one", "skipped project a/AGENTS.md (read_error)", "! warning read_error r/a/AGENTS.md"),
		},
		{
			"link's target becomes a link", "lstat r/d/AGENTS.md",
			func(base string) error { return replaceByLink(base+"/r/d/AGENTS.md", "../../secret") },
			lines(root, "kept project AGENTS.md: one", "skipped project a/AGENTS.md (read_error)", "! warning read_error r/a/AGENTS.md"),
		},
		{
			"link's target vanishes", "lstat r/d/AGENTS.md",
			func(base string) error { return os.RemoveAll(base + "/r/d") },
			lines(root, "kept project AGENTS.md: one"),
		},
		{
			"directory vanishes after the survey", "lstat r/AGENTS.override.md",
			func(base string) error { return os.RemoveAll(base + "/r/a") },
			lines(root, "kept project AGENTS.md: one"),
		},
		{
			"directory becomes a link after the survey", "lstat r/AGENTS.override.md",
			func(base string) error { return replaceByLink(base+"/r/a", "../out") },
			lines(root, "kept project AGENTS.md: one"),
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tree := files{"r/.git/": "", "r/AGENTS.md": "one", "r/a/AGENTS.md": "-> ../d/AGENTS.md", "r/d/AGENTS.md": "two", "secret": "key", "out/AGENTS.md": "key"}
			base := build(t, tree)
			op, path, _ := strings.Cut(tt.before, " ")
			view := &faultFS{FS: OS{}}
			view.swap = map[string]func(){op + " " + filepath.Join(base, path): func() {
				if err := tt.swap(base); err != nil {
					t.Error(err)
				}
			}}
			got := outline(Resolve(view, filepath.Join(base, "r/a"), Options{}), base)
			if diff := cmp.Diff(got, tt.want); diff != "" {
				t.Errorf("(-got +want)\n%s", diff)
			}
			if len(view.swap) > 0 || view.open != 0 {
				t.Errorf("swapped: %t, left open: %d", len(view.swap) == 0, view.open)
			}
		})
	}
}

// replaceByLink puts a link in the place of what is there.
func replaceByLink(path, target string) error {
	if err := os.RemoveAll(path); err != nil {
		return err
	}
	return os.Symlink(target, path)
}

func TestSameFileUnderAnotherCase(t *testing.T) {
	t.Parallel()
	base := build(t, files{".git/": "", "AGENTS.md": "one", "AGENTS.override.md": "mine"})
	got := outline(Resolve(&caselessFS{FS: OS{}}, base, Options{}), base)
	want := lines(`root "" found=true`, "kept project AGENTS.override.md: mine", "! info shadowed_by_override AGENTS.md")
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("(-got +want)\n%s", diff)
	}
}

// caselessFS finds AGENTS.md whatever the case.
type caselessFS struct{ FS }

func (f *caselessFS) OpenDir(path string) (fsview.Dir, error) {
	d, err := f.FS.OpenDir(path)
	return &caselessDir{d}, err
}

type caselessDir struct{ fsview.Dir }

func (d *caselessDir) OpenDir(name string) (fsview.Dir, error) {
	child, err := d.Dir.OpenDir(name)
	return &caselessDir{child}, err
}

func (d *caselessDir) Lstat(name string) (fsview.Info, error) {
	if strings.EqualFold(name, "AGENTS.md") {
		name = "AGENTS.md"
	}
	return d.Dir.Lstat(name)
}

func TestPermissionOfTheSystem(t *testing.T) {
	t.Parallel()
	root, one, two, three := `root "" found=true`, "kept project AGENTS.md: one", "kept project a/AGENTS.md: two", "kept project a/b/AGENTS.md: three"
	behind := lines(root, one, two, "skipped project a/b/AGENTS.md (permission)", "! error permission a/b/AGENTS.md")
	closed := lines("! error permission a/b")
	tests := []struct {
		name, path string
		mode       os.FileMode
		want       string
		portable   string // where it differs
	}{
		{"file", "AGENTS.md", 0, lines(root, "skipped project AGENTS.md (permission)", two, three, "! error permission AGENTS.md"), ""},
		{"target of a link", "x.md", 0, behind, ""},
		{"directory on a link's way", "d", 0, behind, ""},
		{"directory of the tree", "a", 0, lines("! warning permission a/.git", "! error permission a/b"), closed},
		{"root", "", 0, lines("! warning permission .git", "! error permission a/b"), closed},
		{"directory that may be passed through", "a", 0o111, lines(root, one, two, three), closed},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			base := build(t, files{".git/": "", "AGENTS.md": "one", "a/AGENTS.md": "two", "a/b/AGENTS.md": "-> ../../d/AGENTS.md", "d/AGENTS.md": "-> ../x.md", "x.md": "three"})
			path := filepath.Join(base, tt.path)
			if err := os.Chmod(path, tt.mode); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = os.Chmod(path, 0o755) })
			for name, view := range views() {
				var got string
				agentsdoctest.AsOrdinary(t, base, func() { got = outline(Resolve(view, filepath.Join(base, "a/b"), Options{}), base) })
				want := tt.want
				if name == "portable" && tt.portable != "" {
					want = tt.portable
				}
				if diff := cmp.Diff(got, want); diff != "" {
					t.Errorf("%s: (-got +want)\n%s", name, diff)
				}
			}
		})
	}
}

// veryDeep makes a chain of more directories than the survey keeps open, and returns
// the directory of the tree and the deepest.
func veryDeep(t *testing.T) (base, dir string) {
	t.Helper()
	base = build(t, files{"r/.git/": "", "r/AGENTS.md": "top", "secret/d/AGENTS.md": "key"})
	dir = filepath.Join(base, "r", strings.Repeat("d/", 3*maxHeld))
	addFile(t, filepath.Join(dir, "AGENTS.md"), "end")
	addFile(t, filepath.Join(base, "r", strings.Repeat("d/", 2*maxHeld), "AGENTS.md"), "middle")
	return base, dir
}

func TestVeryDeep(t *testing.T) {
	t.Parallel()
	base, dir := veryDeep(t)
	tests := []struct {
		name string
		once map[string]error
		most int
	}{
		{"some directories are opened again", nil, maxHeld + 3},
		{"no handles to spare", map[string]error{"opendir " + filepath.Join(base, "r/d/d/d"): syscall.EMFILE}, 6},
		{"nor in the system", map[string]error{"opendir " + filepath.Join(base, "r/d/d/d"): syscall.ENFILE}, 6},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			view := &faultFS{FS: OS{}, once: tt.once}
			c := Resolve(view, dir, Options{})
			if len(c.Sources) != 3 || c.Sources[1].Text != "middle" || c.Sources[2].Text != "end" || len(c.Diagnostics) > 0 {
				t.Errorf("got %s", outline(c, base))
			}
			if view.open != 0 || view.most > tt.most {
				t.Errorf("%d handles at once, %d left open", view.most, view.open)
			}
		})
	}
}

// TestLeaseGivenBack: a file on which a program holds a lease is read once that has given
// it back.
func TestLeaseGivenBack(t *testing.T) {
	t.Parallel()

	base := build(t, files{"r/.git/": "", "r/AGENTS.md": "top"})
	view := &faultFS{FS: OS{}, once: map[string]error{"open " + filepath.Join(base, "r/AGENTS.md"): syscall.EAGAIN}}
	if c := Resolve(view, filepath.Join(base, "r"), Options{}); len(c.Sources) != 1 || c.Sources[0].Text != "top" || len(c.Diagnostics) > 0 {
		t.Errorf("got %s", outline(c, base))
	}
}

func TestVeryDeepRaces(t *testing.T) {
	t.Parallel()
	for name, swap := range map[string]func(base, late string) error{
		"becomes a link": func(base, late string) error { return replaceByLink(late, base+"/secret") },
		"vanishes":       func(_, late string) error { return os.RemoveAll(late) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			base, dir := veryDeep(t)
			late := filepath.Join(base, "r", strings.Repeat("d/", 2*maxHeld))
			view := &faultFS{FS: OS{}, swap: map[string]func(){"lstat " + filepath.Join(base, "r/AGENTS.override.md"): func() {
				if err := swap(base, late); err != nil {
					t.Error(err)
				}
			}}}
			want := lines(`root "r" found=true`, "kept project AGENTS.md: top", "! warning read_error "+strings.TrimPrefix(late, base+"/"))
			if diff := cmp.Diff(outline(Resolve(view, dir, Options{}), base), want); diff != "" || view.open != 0 {
				t.Errorf("%d left open (-got +want)\n%s", view.open, diff)
			}
		})
	}
}

// noIDFS is a view that does not number files.
type noIDFS struct{ FS }

func (f noIDFS) OpenDir(path string) (fsview.Dir, error) {
	d, err := f.FS.OpenDir(path)
	return noIDDir{d}, err
}

type noIDDir struct{ fsview.Dir }

func (d noIDDir) OpenDir(name string) (fsview.Dir, error) {
	child, err := d.Dir.OpenDir(name)
	return noIDDir{child}, err
}

func (d noIDDir) Lstat(name string) (fsview.Info, error) {
	info, err := d.Dir.Lstat(name)
	info.ID = fsview.FileID{}
	return info, err
}

func (d noIDDir) Open(name string) (fsview.File, error) {
	file, err := d.Dir.Open(name)
	return noIDFile{file}, err
}

type noIDFile struct{ fsview.File }

func (f noIDFile) Info() (fsview.Info, error) {
	info, err := f.File.Info()
	info.ID = fsview.FileID{}
	return info, err
}

func TestTwinsWithoutNumbers(t *testing.T) {
	t.Parallel()
	base := build(t, files{".git/": "", "AGENTS.md": "one", "a/AGENTS.md": "-> ../AGENTS.md", "a/b/AGENTS.md": "two", "a/b/c/AGENTS.md": "two"})
	got := outline(Resolve(noIDFS{OS{}}, filepath.Join(base, "a/b/c"), Options{}), base)
	want := outline(Resolve(OS{}, filepath.Join(base, "a/b/c"), Options{}), base)
	if diff := cmp.Diff(got, want); diff != "" || !strings.Contains(want, "duplicate project AGENTS.md") {
		t.Errorf("(-got +want)\n%s", diff)
	}
}
