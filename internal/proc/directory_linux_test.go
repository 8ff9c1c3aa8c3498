package proc

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// runtimeDir makes a short private directory for private directories.
func runtimeDir(t *testing.T) string {
	t.Helper()

	return runtimeDirIn(t, "")
}

// fastDir is runtimeDir in memory, where the system has that.
func fastDir(t *testing.T) string {
	t.Helper()

	if _, err := os.Stat("/dev/shm"); err != nil {
		return runtimeDir(t)
	}
	return runtimeDirIn(t, "/dev/shm")
}

func runtimeDirIn(t *testing.T, base string) string {
	t.Helper()

	dir, err := os.MkdirTemp(base, "gt") //nolint:usetesting // a socket needs a short path
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func TestUnfitRuntimeDirectories(t *testing.T) {
	t.Parallel()

	dir := runtimeDir(t)
	file := filepath.Join(dir, "file")
	open := filepath.Join(dir, "open")
	sticky := filepath.Join(dir, "sticky")
	long := filepath.Join(dir, strings.Repeat("x", maxSocketPath))
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, mode := range map[string]os.FileMode{open: 0o777, sticky: 0o777 | os.ModeSticky, long: 0o700} {
		if err := os.Mkdir(path, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	tests := []struct{ name, base, want string }{
		{"private", dir, ""},
		{"sticky", sticky, ""},
		{"relative", ".", "is not absolute"},
		{"absent", filepath.Join(dir, "no"), "no such file"},
		{"file", file, "is not a directory"},
		{"open to all", open, "may be written by everybody"},
		{"long", long, "is too long"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			got := unusable(tt.base)
			if (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
				t.Errorf("unusable(%q) = %q, want %q", tt.base, got, tt.want)
			}
		})
	}
}

func TestStandardRuntimeDirectories(t *testing.T) {
	good := runtimeDir(t)
	t.Setenv("XDG_RUNTIME_DIR", good)
	chosen := func(want string) {
		t.Helper()
		f, err := newPrivateDir("")
		if err != nil || filepath.Dir(f.path) != want {
			t.Fatalf("newPrivateDir: %+v, %v, want one in %s", f, err, want)
		}
		if err := f.remove(t.Context()); err != nil {
			t.Error(err)
		}
	}
	chosen(good)
	t.Setenv("XDG_RUNTIME_DIR", "/proc") // nobody can write there
	chosen(os.TempDir())
	if _, err := newPrivateDir("/proc"); err == nil || !strings.Contains(err.Error(), "TMPDIR") {
		t.Errorf("newPrivateDir: %v, want the remedy", err)
	}
	t.Setenv("XDG_RUNTIME_DIR", filepath.Join(good, "absent"))
	long := filepath.Join(good, strings.Repeat("x", 80))
	if err := os.Mkdir(long, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", long)
	chosen("/tmp")
}

// TestSweepDirectories: neither the mode nor the time that a plugin gave its directory
// keeps it from the sweep; what is locked, or is no private directory, stays.
func TestSweepDirectories(t *testing.T) {
	asUsers(t, func(t *testing.T) {
		dir := runtimeDir(t)
		used, err := newPrivateDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = used.remove(context.Background()) }()
		stale := map[string]os.FileMode{dirName(): 0o700, dirName(): 0, dirName(): 0o777, dirName(): 0o500}
		kept := []string{"other", "grapnel-1", "grapnel-notes", dirName() + "0", strings.ToUpper(dirName())}
		link := dirName()
		if err := os.Symlink(filepath.Join(dir, "other"), filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
		for _, name := range kept {
			makeDir(t, filepath.Join(dir, name, "inner"))
		}
		future := time.Now().Add(1000 * time.Hour)
		for name, mode := range stale {
			makeDir(t, filepath.Join(dir, name, "inner"))
			for _, err := range []error{os.Chtimes(filepath.Join(dir, name), future, future), os.Chmod(filepath.Join(dir, name), mode)} {
				if err != nil {
					t.Fatal(err)
				}
			}
		}
		if got := SweepDirectories(t.Context(), dir); got != len(stale) {
			t.Errorf("removed %d directories, want %d", got, len(stale))
		}
		kept = append(kept, link, filepath.Base(used.path))
		if got := names(t, dir); len(got) != len(kept) {
			t.Errorf("left are %q, want %q", got, kept)
		}
	})
}

// TestSweepWhileDirectoriesAreMade: a sweep may find a directory that is not yet
// locked. Its maker then makes another one, and never works in one that is gone.
func TestSweepWhileDirectoriesAreMade(t *testing.T) {
	t.Parallel()

	dir := fastDir(t)
	ctx, cancel := context.WithCancel(t.Context())
	var sweeps sync.WaitGroup
	for range 2 {
		sweeps.Go(func() {
			for ctx.Err() == nil {
				SweepDirectories(ctx, dir)
			}
		})
	}
	for range 1000 {
		f, err := newPrivateDir(dir)
		if err != nil {
			t.Error(err)
			break
		}
		if err := os.WriteFile(filepath.Join(f.path, "file"), nil, 0o600); err != nil {
			t.Errorf("a directory in use was swept: %v", err)
		}
		if err := f.remove(t.Context()); err != nil {
			t.Error(err)
		}
	}
	cancel()
	sweeps.Wait()
}

// TestSweepSparesWhatOthersMayMove: in a directory that everybody may write,
// anybody could give this user's directories the name of a private one.
func TestSweepSparesWhatOthersMayMove(t *testing.T) {
	t.Parallel()

	dir := runtimeDir(t)
	kept := filepath.Join(dir, dirName())
	makeDir(t, kept)
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if got := SweepDirectories(t.Context(), dir); got != 0 {
		t.Errorf("removed %d directories", got)
	}
}
