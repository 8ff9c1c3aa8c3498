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
)

// faultFS is a view of the machine's files that answers with errors where it is
// told to, remembers what was opened, and counts what was closed. Keys are an
// operation and a path: "lstat /x/y".
type faultFS struct {
	FS
	fail map[string]error
	// swap runs before the operation, once.
	swap map[string]func()

	opened []string
	open   int // handles
}

// before is called by each operation.
func (f *faultFS) before(op, path string) error {
	key := op + " " + path
	if swap := f.swap[key]; swap != nil {
		delete(f.swap, key)
		swap()
	}
	return f.fail[key]
}

func (f *faultFS) OpenDir(path string) (Dir, error) {
	if err := f.before("opendir", path); err != nil {
		return nil, err
	}
	return f.wrap(path)(f.FS.OpenDir(path))
}

func (f *faultFS) RealPath(path string) (string, error) {
	if err := f.before("realpath", path); err != nil {
		return "", err
	}
	return f.FS.RealPath(path)
}

// wrap makes a folder's handle one that answers as told.
func (f *faultFS) wrap(path string) func(Dir, error) (Dir, error) {
	return func(d Dir, err error) (Dir, error) {
		if err != nil {
			return nil, err
		}
		f.open++
		return &faultDir{Dir: d, view: f, path: path}, nil
	}
}

// faultDir is a folder of a faultFS.
type faultDir struct {
	Dir
	view *faultFS
	path string
}

func (d *faultDir) OpenDir(name string) (Dir, error) {
	path := filepath.Join(d.path, name)
	if err := d.view.before("opendir", path); err != nil {
		return nil, err
	}
	return d.view.wrap(path)(d.Dir.OpenDir(name))
}

func (d *faultDir) Lstat(name string) (Info, error) {
	if err := d.view.before("lstat", filepath.Join(d.path, name)); err != nil {
		return Info{}, err
	}
	return d.Dir.Lstat(name)
}

func (d *faultDir) Open(name string) (File, error) {
	path := filepath.Join(d.path, name)
	if err := d.view.before("open", path); err != nil {
		return nil, err
	}
	file, err := d.Dir.Open(name)
	if err != nil {
		return nil, err
	}
	d.view.open++
	d.view.opened = append(d.view.opened, path)
	return &faultFile{File: file, view: d.view, path: path}, nil
}

func (d *faultDir) Close() error {
	d.view.open--
	return d.Dir.Close()
}

// faultFile is a file of a faultFS.
type faultFile struct {
	File
	view *faultFS
	path string
}

func (f *faultFile) Info() (Info, error) {
	if err := f.view.before("fstat", f.path); err != nil {
		return Info{}, err
	}
	return f.File.Info()
}

func (f *faultFile) Read(p []byte) (int, error) {
	if err := f.view.before("read", f.path); err != nil {
		return 0, err
	}
	return f.File.Read(p)
}

func (f *faultFile) Close() error {
	f.view.open--
	return f.File.Close()
}

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
			"folder may not be searched",
			map[string]error{"lstat r/a/AGENTS.override.md": denied},
			lines(root, one, "! error permission r/a"),
		},
		{
			"name cannot be looked up",
			map[string]error{"lstat r/a/AGENTS.override.md": syscall.EIO},
			lines(root, one, "kept project a/AGENTS.md: two", "! warning read_error r/a/AGENTS.override.md"),
		},
		{
			"folder may not be entered",
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
			"folder on a link's way becomes a link", "opendir r/d",
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
			"folder vanishes after the survey", "lstat r/AGENTS.override.md",
			func(base string) error { return os.RemoveAll(base + "/r/a") },
			lines(root, "kept project AGENTS.md: one", "! warning read_error r/a"),
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

func TestNothingOutsideIsOpened(t *testing.T) {
	t.Parallel()
	base := build(t, files{
		"AGENTS.md": "above", "secret": "key", "g/AGENTS.md": "all", "r/.git": "gitdir: ../store/worktrees/r",
		"store/worktrees/r/commondir": "../..", "r/AGENTS.md": "-> ../secret", "r/a/AGENTS.md": "../../secret/AGENTS.md",
		"r/a/b/AGENTS.md": "-> ../../../store/worktrees/r/commondir", "r/a/b/c/AGENTS.md": "-> ../../../x.md", "r/x.md": "fine",
	})
	view := &faultFS{FS: OS{}}
	c := Resolve(view, filepath.Join(base, "r/a/b/c"), Options{GlobalDir: filepath.Join(base, "g")})
	for _, path := range view.opened {
		if !within(filepath.Join(base, "r"), path) && !within(filepath.Join(base, "g"), path) {
			t.Errorf("opened %s", path)
		}
	}
	if len(view.opened) < 4 {
		t.Errorf("only %v were opened: the test sees nothing", view.opened)
	}
	if text := Render(c, Budget{1 << 20, 1 << 20}).Text; strings.Contains(text, "key") || !strings.Contains(text, "fine") {
		t.Errorf("text is\n%s", text)
	}
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

func (f *caselessFS) OpenDir(path string) (Dir, error) {
	d, err := f.FS.OpenDir(path)
	return &caselessDir{d}, err
}

type caselessDir struct{ Dir }

func (d *caselessDir) OpenDir(name string) (Dir, error) {
	child, err := d.Dir.OpenDir(name)
	return &caselessDir{child}, err
}

func (d *caselessDir) Lstat(name string) (Info, error) {
	if strings.EqualFold(name, "AGENTS.md") {
		name = "AGENTS.md"
	}
	return d.Dir.Lstat(name)
}

func TestPermissionOfTheSystem(t *testing.T) {
	t.Parallel()
	if os.Geteuid() <= 0 {
		t.Skip("the superuser may read everything, and some systems have no such rights")
	}
	base := build(t, files{".git/": "", "AGENTS.md": "one", "a/AGENTS.md": "two"})
	if err := os.Chmod(filepath.Join(base, "AGENTS.md"), 0); err != nil {
		t.Fatal(err)
	}
	got := outline(Resolve(OS{}, filepath.Join(base, "a"), Options{}), base)
	want := lines(`root "" found=true`, "skipped project AGENTS.md (permission)", "kept project a/AGENTS.md: two", "! error permission AGENTS.md")
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("(-got +want)\n%s", diff)
	}
}
