package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestPlantedDataDirectory: serve takes neither a token nor a database from a data directory
// that another user has made, or could change.
func TestPlantedDataDirectory(t *testing.T) {
	t.Parallel()
	needRoot(t)

	open := func(t *testing.T) (home, data string) {
		t.Helper()
		home = openDir(t)
		share := filepath.Join(home, ".local", "share")
		if err := os.MkdirAll(share, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(share, 0o777|fs.ModeSticky); err != nil {
			t.Fatal(err)
		}
		return home, filepath.Join(share, "grapnel")
	}
	refused := func(t *testing.T, home, names string, args ...string) {
		t.Helper()
		code, _, errs := grapnelIn(t, home, append([]string{"serve"}, args...)...)
		if code != exitUsage && code != exitUnable || !strings.Contains(errs, names) || strings.Count(errs, "grapnel: ") != 1 {
			t.Errorf("%v: %d %s", args, code, errs)
		}
	}
	chown := func(t *testing.T, path string) {
		t.Helper()
		if err := os.Lchown(path, nobody, nobody); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("the directory", func(t *testing.T) {
		t.Parallel()

		home, data := open(t)
		if got := asOther(t, "plant", data, madeSecret, "grapnel.db").end(t); got != "ready\n" {
			t.Fatal(got)
		}
		refused(t, home, data, "--socket", filepath.Join(home, "g.sock"))
		refused(t, home, data, "--listen", "127.0.0.1:0")
		store := "sqlite:" + filepath.Join(home, "own.db")
		refused(t, home, data, "--socket", filepath.Join(home, "g.sock"), "--store", store, "--persona", home)
		refused(t, home, data, "--listen", "127.0.0.1:0", "--store", "sqlite:"+filepath.Join(data, "x.db"), "--persona", home)
		if list, err := os.ReadDir(data); err != nil || len(list) != 2 {
			t.Errorf("the directory was used: %v, %v", list, err)
		}
	})
	t.Run("the files", func(t *testing.T) {
		t.Parallel()

		for _, name := range []string{madeSecret, madeTokens, "grapnel.db"} {
			home, data := open(t)
			if err := os.Mkdir(data, 0o700); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(data, name)
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			chown(t, path)
			refused(t, home, path, "--socket", filepath.Join(home, "g.sock"))
		}
	})
	t.Run("nothing", func(t *testing.T) {
		t.Parallel()

		home, data := open(t) // a sticky directory is no obstacle
		s := serveIn(t, home, "--socket", filepath.Join(home, "g.sock"))
		s.end(t, syscall.SIGTERM)
		if info, err := os.Stat(data); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("the directory that it made: %v, %v", info, err)
		}
	})
}
