package proc

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// runtimeDir makes a short private folder for private folders.
func runtimeDir(t *testing.T) string {
	t.Helper()

	dir, err := os.MkdirTemp("", "gt") //nolint:usetesting // a socket needs a short path
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

func TestFolder(t *testing.T) {
	t.Parallel()

	f, err := newFolder(runtimeDir(t))
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(f.path)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("folder: %v, %v", info, err)
	}
	if lock, err := lockFolder(f.path); err == nil {
		closeQuietly(lock)
		t.Error("a folder in use can be locked by others")
	}
	for range 2 {
		if err := f.remove(); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(f.path); err == nil {
		t.Error("the folder is still there")
	}
}

func TestRemoveTree(t *testing.T) {
	t.Parallel()

	dir, outside := filepath.Join(runtimeDir(t), "d"), runtimeDir(t)
	inner := filepath.Join(dir, "a", "b")
	if err := os.MkdirAll(inner, 0o700); err != nil {
		t.Fatal(err)
	}
	kept := filepath.Join(outside, "kept")
	for _, path := range []string{kept, filepath.Join(inner, "file")} {
		if err := os.WriteFile(path, nil, 0o400); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(outside, filepath.Join(inner, "link")); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{inner, filepath.Dir(inner), dir} {
		if err := os.Chmod(path, 0); err != nil {
			t.Fatal(err)
		}
	}
	if err := removeTree(dir); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("the folder is still there")
	}
	if _, err := os.Stat(kept); err != nil {
		t.Errorf("a link was followed: %v", err)
	}
}

func TestUnfitRuntimeFolders(t *testing.T) {
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
		{"file", file, "is no folder"},
		{"open to all", open, "may be written by everybody"},
		{"long", long, "is too long"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			got := unfit(tt.base)
			if (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
				t.Errorf("unfit(%q) = %q, want %q", tt.base, got, tt.want)
			}
		})
	}
}

func TestStandardRuntimeFolders(t *testing.T) {
	good := runtimeDir(t)
	t.Setenv("XDG_RUNTIME_DIR", good)
	if got, err := chooseBase(""); err != nil || got != good {
		t.Errorf("chooseBase = %q, %v, want %q", got, err, good)
	}
	t.Setenv("XDG_RUNTIME_DIR", filepath.Join(good, "absent"))
	long := filepath.Join(good, strings.Repeat("x", 80))
	if err := os.Mkdir(long, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", long)
	if got, err := chooseBase(""); err != nil || got != "/tmp" {
		t.Errorf("chooseBase = %q, %v, want the short one", got, err)
	}
}

func TestSweepFolders(t *testing.T) {
	t.Parallel()

	dir := runtimeDir(t)
	used, err := newFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = used.remove() })
	for name, mode := range map[string]os.FileMode{"grapnel-1": 0o700, "grapnel-2": 0o755, "other": 0o700} {
		if err := os.MkdirAll(filepath.Join(dir, name, "inner"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(filepath.Join(dir, name), mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(dir, "other"), filepath.Join(dir, "grapnel-3")); err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	if got := sweepFolders(t.Context(), dir, now); got != 0 {
		t.Errorf("removed %d young folders", got)
	}
	if got := sweepFolders(t.Context(), dir, now.Add(2*staleAge)); got != 1 {
		t.Errorf("removed %d folders, want 1", got)
	}
	for _, name := range []string{"grapnel-2", "grapnel-3", "other/inner", filepath.Base(used.path)} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
}
