package fsview

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// views are the implementations that keep the same promises.
func views() map[string]FS { return map[string]FS{"os": OS{}, "portable": Portable{}} }

// tree makes a few files and returns their directory's real path.
func tree(t *testing.T) string {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{
		os.Mkdir(filepath.Join(base, "d"), 0o755),
		os.WriteFile(filepath.Join(base, "d/file"), []byte("some text"), 0o644),
		os.Symlink("d", filepath.Join(base, "directorylink")),
		os.Symlink("d/file", filepath.Join(base, "filelink")),
		os.Symlink("nothing", filepath.Join(base, "deadlink")),
		os.Link(filepath.Join(base, "d/file"), filepath.Join(base, "hard")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return base
}

// open opens a directory and closes it in the end.
func open(t *testing.T, view FS, path string) Dir {
	t.Helper()
	dir, err := view.OpenDir(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = dir.Close() })
	return dir
}

// onEach runs a test on each view, in the directory of a tree.
func onEach(t *testing.T, test func(t *testing.T, view FS, base string, dir Dir)) {
	t.Helper()
	for name, view := range views() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			base := tree(t)
			test(t, view, base, open(t, view, base))
		})
	}
}

func TestOpenDir(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, view FS, base string, dir Dir) {
		t.Helper()
		child, err := dir.OpenDir("d")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := child.Lstat("file"); err != nil {
			t.Errorf("file in the directory: %v", err)
		}
		if err := child.Close(); err != nil {
			t.Error(err)
		}
		if _, err := dir.OpenDir("directorylink"); !errors.Is(err, ErrLink) {
			t.Errorf("a link: %v", err)
		}
		if _, err := dir.OpenDir("nothing"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("nothing: %v", err)
		}
		if _, err := dir.OpenDir("hard"); err == nil || errors.Is(err, ErrLink) {
			t.Errorf("a file: %v", err)
		}
		if _, err := view.OpenDir(filepath.Join(base, "directorylink")); err != nil {
			t.Errorf("by path a link is followed: %v", err)
		}
		if _, err := view.OpenDir(filepath.Join(base, "nothing")); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("nothing by path: %v", err)
		}
	})
}

func TestLstat(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, _ FS, _ string, dir Dir) {
		t.Helper()
		link, err := dir.Lstat("deadlink")
		if err != nil || !link.IsLink() {
			t.Errorf("a link to nothing is %+v, %v", link, err)
		}
		file, err := dir.Lstat("hard")
		if err != nil || !file.Mode.IsRegular() || file.Size != 9 || file.MTimeMs < 1e12 || file.IsLink() {
			t.Errorf("a file is %+v, %v", file, err)
		}
		directory, err := dir.Lstat("d")
		if err != nil || !directory.Mode.IsDir() || directory.Same(file) {
			t.Errorf("a directory is %+v, %v", directory, err)
		}
		if _, err := dir.Lstat("nothing"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("nothing: %v", err)
		}
		if _, err := dir.Lstat(strings.Repeat("x", 300)); err == nil || errors.Is(err, fs.ErrNotExist) {
			t.Errorf("a name that is too long: %v", err)
		}
		self, err := dir.Info()
		if err != nil || !self.Mode.IsDir() {
			t.Errorf("the directory itself is %+v, %v", self, err)
		}
	})
}

func TestOpen(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, view FS, base string, dir Dir) {
		t.Helper()
		file, err := dir.Open("hard")
		if err != nil {
			t.Fatal(err)
		}
		if n, err := file.Read(nil); n != 0 || err != nil {
			t.Errorf("reading nothing gives %d, %v", n, err)
		}
		data, err := io.ReadAll(file)
		if err != nil || string(data) != "some text" {
			t.Errorf("read %q, %v", data, err)
		}
		info, err := file.Info()
		if err != nil {
			t.Fatal(err)
		}
		other, err := open(t, view, filepath.Join(base, "d")).Lstat("file")
		if err != nil || !info.Same(other) {
			t.Errorf("two names of one file are not the same: %+v, %+v, %v", info, other, err)
		}
		if err := file.Close(); err != nil {
			t.Error(err)
		}
		if _, err := dir.Open("filelink"); err == nil {
			t.Error("a link was opened")
		}
		if _, err := dir.Open("nothing"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("nothing: %v", err)
		}
	})
}

func TestRealPath(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, view FS, base string, _ Dir) {
		t.Helper()
		real, err := view.RealPath(filepath.Join(base, "directorylink/file"))
		if want := filepath.Join(base, "d/file"); real != want || err != nil {
			t.Errorf("got %q, %v, want %q", real, err, want)
		}
		if _, err := view.RealPath(filepath.Join(base, "deadlink")); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("a link to nothing: %v", err)
		}
	})
}

func TestSame(t *testing.T) {
	t.Parallel()
	a, b := Info{ID: FileID{1, 2}}, Info{ID: FileID{1, 3}}
	if !a.Same(a) || a.Same(b) || a.Same(Info{}) || (Info{}).Same(Info{}) {
		t.Error("files are told apart by their numbers, and those without any are not the same")
	}
}
