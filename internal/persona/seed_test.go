package persona_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/internal/persona"
)

// names are the last elements of paths in a folder.
func names(t testing.TB, dir string, paths []string) []string {
	t.Helper()
	list := []string{}
	for _, p := range paths {
		if filepath.Dir(p) != dir {
			t.Errorf("%s is not in %s", p, dir)
		}
		list = append(list, filepath.Base(p))
	}
	return list
}

func TestSeed(t *testing.T) {
	t.Parallel()

	dir := filepath.Join(t.TempDir(), "a", "home")
	created, kept, err := persona.Seed(dir)
	if err != nil || len(kept) != 0 {
		t.Fatalf("Seed = %v, %v, %v", created, kept, err)
	}
	if diff := cmp.Diff(names(t, dir, created), []string{"SOUL.md", "IDENTITY.md"}); diff != "" {
		t.Errorf("created (-got +want):\n%s", diff)
	}
	f := persona.Load(dir)
	if diff := cmp.Diff(codes(&f), []string{}); diff != "" {
		t.Errorf("diagnostics (-got +want):\n%s", diff)
	}
	if f.User.Row.Status != persona.StatusMissing {
		t.Errorf("USER.md is %s", f.User.Row.Status)
	}
	for _, file := range []persona.File{f.Soul, f.Identity} {
		if file.Row.Chars < 200 || file.Row.Chars > 2000 || !strings.HasSuffix(file.Text, "\n") {
			t.Errorf("the seed of %s is odd:\n%s", file.Row.Path, file.Text)
		}
	}
	if runtime.GOOS == "windows" {
		return
	}
	for path, want := range map[string]os.FileMode{dir: 0o700, filepath.Dir(dir): 0o700, created[0]: 0o600, created[1]: 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s has mode %v, want %v (%v)", path, info.Mode(), want, err)
		}
	}
}

// TestSeedTwice: what is there stays as it is, whatever it is.
func TestSeedTwice(t *testing.T) {
	t.Parallel()

	dir := newHome(t, map[string]string{"SOUL.md": ""})
	must(t, os.Symlink("nowhere.md", filepath.Join(dir, "IDENTITY.md")))
	created, kept, err := persona.Seed(dir)
	if err != nil || len(created) != 0 {
		t.Fatalf("Seed = %v, %v, %v", created, kept, err)
	}
	if diff := cmp.Diff(names(t, dir, kept), []string{"SOUL.md", "IDENTITY.md"}); diff != "" {
		t.Errorf("kept (-got +want):\n%s", diff)
	}
	entries, err := os.ReadDir(dir)
	must(t, err)
	if len(entries) != 2 {
		t.Errorf("the folder holds %v", entries)
	}
	info, err := os.Stat(filepath.Join(dir, "SOUL.md"))
	must(t, err)
	if info.Size() != 0 {
		t.Errorf("the empty SOUL.md has %d bytes now", info.Size())
	}
}

// TestSeedFails: a place where there can be no folder, and none at all.
func TestSeedFails(t *testing.T) {
	t.Parallel()

	dir := newHome(t, map[string]string{"file": "x"})
	for _, place := range []string{"", filepath.Join(dir, "file"), filepath.Join(dir, "file", "below")} {
		if created, kept, err := persona.Seed(place); err == nil || created != nil || kept != nil || !strings.HasPrefix(err.Error(), "persona directory: ") {
			t.Errorf("Seed(%q) = %v, %v, %v", place, created, kept, err)
		}
	}
}

// TestSeedAtOnce: each file is created by one of many.
func TestSeedAtOnce(t *testing.T) {
	t.Parallel()

	dir := filepath.Join(t.TempDir(), "home")
	var created, kept atomic.Int64
	var group sync.WaitGroup
	for range 16 {
		group.Go(func() {
			c, k, err := persona.Seed(dir)
			if err != nil {
				t.Error(err)
			}
			created.Add(int64(len(c)))
			kept.Add(int64(len(k)))
		})
	}
	group.Wait()
	if created.Load() != 2 || kept.Load() != 2*15 {
		t.Errorf("created %d and kept %d files", created.Load(), kept.Load())
	}
}
