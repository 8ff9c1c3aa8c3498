package proc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// longTests is the variable that switches the long rows on: whole floods, deep trees,
// many rounds of a race.
const longTests = "GRAPNEL_LONG"

// long reports whether the long rows run.
func long() bool { return os.Getenv(longTests) == "1" }

// scaled is how much of something a test makes: a tenth unless the long rows run.
func scaled(n int) int {
	if long() {
		return n
	}
	return n / 10
}

// asUsers runs a test as the user of this process and, if that is root, once
// more as nobody, in a process of that user.
func asUsers(t *testing.T, run func(t *testing.T)) {
	t.Helper()

	t.Run(fmt.Sprintf("user %d", os.Geteuid()), run)
	t.Run("nobody", func(t *testing.T) {
		if os.Geteuid() != 0 {
			t.Skip("only root can become another user")
		}
		dir := runtimeDir(t)
		self, err := os.ReadFile("/proc/self/exe")
		if err != nil {
			t.Fatal(err)
		}
		program := filepath.Join(dir, "tests")
		if err := errors.Join(os.WriteFile(program, self, 0o755), os.Chmod(dir, 0o755)); err != nil {
			t.Fatal(err)
		}
		name, _, _ := strings.Cut(t.Name(), "/")
		cmd := exec.CommandContext(t.Context(), program, "-test.run", "^"+name+"$")
		cmd.Dir = "/"
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		if out, err := cmd.CombinedOutput(); err != nil || bytes.Contains(out, []byte("no tests to run")) {
			t.Fatalf("%v\n%s", err, out)
		}
	})
}

// makeDir makes a directory with all above it.
func makeDir(t *testing.T, path string) {
	t.Helper()
	if err := os.MkdirAll(path, 0o700); err != nil {
		t.Fatal(err)
	}
}

// names lists a directory.
func names(t *testing.T, dir string) []string {
	t.Helper()

	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

// outside is a tree that nothing may change.
type outside struct {
	path string
	want []string
}

// makeOutside makes directories and files of several modes.
func makeOutside(t testing.TB) *outside {
	t.Helper()

	dir, err := os.MkdirTemp("", "go") //nolint:usetesting // it may belong to another user than the test's directory
	if err != nil {
		t.Fatal(err)
	}
	o := &outside{path: dir}
	for _, name := range []string{"a/b/c", "d", "file"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
		for _, mode := range []os.FileMode{0o644, 0o600, 0o400} {
			file := filepath.Join(dir, name, fmt.Sprintf("%o", mode))
			if err := errors.Join(os.WriteFile(file, []byte(name), mode), os.Chmod(file, mode)); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Chmod(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	o.want = o.now()
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return o
}

// now describes the tree.
func (o *outside) now() []string {
	var list []string
	_ = filepath.WalkDir(o.path, func(path string, d fs.DirEntry, err error) error {
		line := path
		if info, e := d.Info(); err == nil && e == nil {
			line += " " + info.Mode().String()
		}
		if d.Type().IsRegular() {
			data, err := os.ReadFile(path)
			line += fmt.Sprint(" ", string(data), err)
		}
		list = append(list, line)
		return nil
	})
	return list
}

// check fails if anything has changed.
func (o *outside) check(t testing.TB) {
	t.Helper()

	if got := o.now(); !slices.Equal(got, o.want) {
		t.Fatalf("what is outside has changed:\n%s\nwas\n%s", strings.Join(got, "\n"), strings.Join(o.want, "\n"))
	}
}

// removed removes a directory and fails if it is still there.
func removed(t testing.TB, f *privateDir) {
	t.Helper()

	if err := f.remove(context.Background()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(f.path); err == nil {
		t.Fatalf("%s is still there", f.path)
	}
}

// private makes a private directory.
func private(t *testing.T) *privateDir {
	t.Helper()

	return privateIn(t, runtimeDir(t))
}

func privateIn(t *testing.T, base string) *privateDir {
	t.Helper()

	f, err := newPrivateDir(base)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// makeDeep makes directories in one another, more than a path can name.
func makeDeep(t *testing.T, dir string, levels int) {
	t.Helper()

	fd, err := unix.Open(dir, unix.O_PATH, 0)
	for range levels {
		if err != nil {
			t.Fatal(err)
		}
		err = unix.Mkdirat(fd, "d", 0o700)
		next, openErr := unix.Openat(fd, "d", unix.O_PATH, 0)
		_ = unix.Close(fd)
		fd, err = next, errors.Join(err, openErr)
	}
	_ = unix.Close(fd)
}

func TestRemoveDeepTree(t *testing.T) {
	asUsers(t, func(t *testing.T) {
		f := privateIn(t, fastDir(t))
		makeDeep(t, f.path, scaled(100_000))
		removed(t, f)
	})
}

// TestRemoveMovedAway: what stands in the directory's place is removed, and nothing that
// it leads to.
func TestRemoveMovedAway(t *testing.T) {
	asUsers(t, func(t *testing.T) {
		o := makeOutside(t)
		for name, place := range map[string]func(path string) error{
			"link":      func(path string) error { return os.Symlink(o.path, path) },
			"file":      func(path string) error { return os.WriteFile(path, nil, 0) },
			"directory": func(path string) error { return os.Mkdir(path, 0) },
			"nothing":   func(string) error { return nil },
		} {
			f := private(t)
			makeDir(t, filepath.Join(f.path, "inner"))
			if err := errors.Join(os.Rename(f.path, f.path+".away"), place(f.path)); err != nil {
				t.Fatal(err)
			}
			removed(t, f)
			if left := names(t, f.path+".away"); len(left) > 0 {
				t.Errorf("%s: left %q", name, left)
			}
		}
		o.check(t)
	})
}

// TestOpenDirFollowsNoLink: a directory that was swapped for a link before it is opened is not entered.
func TestOpenDirFollowsNoLink(t *testing.T) {
	t.Parallel()

	f := private(t)
	if err := os.Symlink(".", filepath.Join(f.path, "link")); err != nil {
		t.Fatal(err)
	}
	if fd, err := openDir(int(f.lock.Fd()), "link", unix.O_RDONLY); err == nil {
		_ = unix.Close(fd)
		t.Error("a link was followed")
	}
	removed(t, f)
}

// TestGiveUp: what cannot be removed keeps no descriptor, and is the next sweep's.
func TestGiveUp(t *testing.T) {
	t.Parallel()

	base := runtimeDir(t)
	f := privateIn(t, base)
	makeDir(t, filepath.Join(f.path, "inner"))
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := f.remove(over); !errors.Is(err, context.Canceled) {
		t.Fatalf("removed without time: %v", err)
	}
	if n := SweepDirectories(t.Context(), base); n != 0 {
		t.Errorf("%d directories swept that are to be tried again", n)
	}
	f.giveUp()
	f.giveUp()
	// A process that another test is starting has the lock's descriptor until its exec.
	n := SweepDirectories(t.Context(), base)
	for tick := time.Tick(time.Millisecond); n == 0 && t.Context().Err() == nil; <-tick {
		n = SweepDirectories(t.Context(), base)
	}
	if n != 1 || len(names(t, base)) != 0 {
		t.Errorf("%d directories swept, left %q", n, names(t, base))
	}
}

// TestRemoveClosedDirectories: modes that keep out their owner.
func TestRemoveClosedDirectories(t *testing.T) {
	asUsers(t, func(t *testing.T) {
		out := makeOutside(t)
		f := private(t)
		for _, mode := range []os.FileMode{0, 0o100, 0o200, 0o300, 0o400, 0o500, 0o600, 0o777} {
			dir := filepath.Join(f.path, fmt.Sprintf("%o", mode), "a", "b")
			makeDir(t, dir)
			if err := os.WriteFile(dir+"/\n", nil, 0); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(out.path, dir+"/link"); err != nil {
				t.Fatal(err)
			}
			if err := os.Link(out.path+"/d/644", dir+"/hard"); err != nil {
				t.Fatal(err)
			}
			for _, dir := range []string{dir, filepath.Dir(dir), filepath.Dir(filepath.Dir(dir))} {
				if err := os.Chmod(dir, mode); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := os.Chmod(f.path, 0); err != nil {
			t.Fatal(err)
		}
		removed(t, f)
		out.check(t)
	})
}

// TestRemoveDoesNotEnterMounts: a file system mounted in a private directory, be it
// the same as that of the directory, is not entered. What else is there goes.
func TestRemoveDoesNotEnterMounts(t *testing.T) {
	out := makeOutside(t)
	f := private(t)
	for _, dir := range []string{"bind", "a/b/bind", "tmpfs"} {
		makeDir(t, filepath.Join(f.path, dir))
	}
	makeDeep(t, filepath.Join(f.path, "a"), 100)
	unmount := func() {
		for _, dir := range []string{"bind", "a/b/bind", "tmpfs"} {
			_ = unix.Unmount(filepath.Join(f.path, dir), unix.MNT_DETACH)
		}
	}
	defer unmount()
	for _, err := range []error{
		unix.Mount(out.path, filepath.Join(f.path, "bind"), "", unix.MS_BIND, ""),
		unix.Mount(out.path, filepath.Join(f.path, "a/b/bind"), "", unix.MS_BIND, ""),
		unix.Mount("tmpfs", filepath.Join(f.path, "tmpfs"), "tmpfs", 0, "size=1m"),
	} {
		if err != nil {
			t.Skipf("nothing can be mounted: %v", err)
		}
	}
	if err := os.WriteFile(filepath.Join(f.path, "tmpfs/file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := f.remove(t.Context()); !errors.Is(err, unix.EBUSY) {
		t.Errorf("error %v", err)
	}
	out.check(t)
	if _, err := os.Stat(filepath.Join(f.path, "tmpfs/file")); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(filepath.Join(f.path, "a/d")); err == nil {
		t.Error("what is beside a mount point is still there")
	}
	unmount() // those that were moved with their directory are left to the next lines
	for _, name := range names(t, f.path) {
		_ = unix.Unmount(filepath.Join(f.path, name, "bind"), unix.MNT_DETACH)
	}
	removed(t, f)
	out.check(t)
}

// TestRemoveInTime: a removal whose time is up leaves the rest to the next one.
func TestRemoveInTime(t *testing.T) {
	t.Parallel()

	f := private(t)
	if info, err := os.Stat(f.path); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("directory: %v, %v", info, err)
	}
	makeDeep(t, f.path, 100)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := f.remove(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if lock, err := lockDir(f.path); err == nil {
		closeQuietly(lock)
		t.Error("others may take a directory that its host still removes")
	}
	removed(t, f)
}

// racer makes and swaps what is in a directory as a plugin's surviving
// descendant would, as fast as it can, until ctx ends.
func racer(ctx context.Context, dir, target string) {
	d, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	defer func() { _ = unix.Close(d) }()
	for ctx.Err() == nil {
		_ = unix.Mkdirat(d, "sub", 0o700)
		_ = unix.Symlinkat(target, d, "link")
		sub, err := unix.Openat(d, "sub", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err != nil {
			continue
		}
		_ = unix.Mkdirat(sub, "inner", 0)
		_ = unix.Symlinkat(target, sub, "link")
		for i := range 8 {
			_ = unix.Fchmod(sub, uint32(i)%2*0o700)
			_ = unix.Renameat2(d, "sub", d, "link", unix.RENAME_EXCHANGE)
			_ = unix.Renameat2(sub, "inner", sub, "link", unix.RENAME_EXCHANGE)
		}
		_ = unix.Close(sub)
	}
}
