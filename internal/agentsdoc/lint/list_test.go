package lint

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/internal/agentsdoc/agentsdoctest"
)

// TestUnreadable: directories and files that may not be read are errors, and the rest
// is looked at.
func TestUnreadable(t *testing.T) {
	t.Parallel()

	if runtime.GOOS == "windows" {
		t.Skip("this system has no such permissions")
	}
	base := build(t, files{".git/": "", "AGENTS.md": "R\n", "a/AGENTS.md": "A\n", "b/AGENTS.md": "B\n"})
	open(t, base)
	for _, path := range []string{filepath.Join(base, "a"), filepath.Join(base, "b", "AGENTS.md")} {
		if err := os.Chmod(path, 0); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.Chmod(path, 0o700) }) // so that it can be removed
	}
	var r Report
	agentsdoctest.AsOrdinary(t, base, func() { r = mustRun(t, base, noGlobals(nil)) })
	if diff := cmp.Diff(outline(&r, base), []string{"2 files, 2 directories, 0 over", "error permission a", "error permission b/AGENTS.md"}); diff != "" {
		t.Errorf("report (-got +want):\n%s", diff)
	}
}

// open lets everybody look at a tree.
func open(t *testing.T, base string) {
	t.Helper()
	err := filepath.WalkDir(base, func(path string, _ fs.DirEntry, err error) error {
		return errors.Join(err, os.Chmod(path, 0o755))
	})
	if err != nil {
		t.Fatal(err)
	}
}
