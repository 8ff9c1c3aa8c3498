package chain

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/internal/agentsdoc/fsview"
)

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
