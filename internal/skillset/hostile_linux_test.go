//go:build linux

package skillset

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// TestNothingBlocks puts what is no file in the place of a file and of a directory.
func TestNothingBlocks(t *testing.T) {
	t.Parallel()
	makers := map[string]func(path string) error{
		"fifo": func(path string) error { return unix.Mkfifo(path, 0o644) },
		"link to a fifo": func(path string) error {
			if err := unix.Mkfifo(path+".fifo", 0o644); err != nil {
				return err
			}
			return os.Symlink(filepath.Base(path)+".fifo", path)
		},
	}
	for kind, create := range makers {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			base := build(t, files{"s/a/": "", "s/fine/SKILL.md": skillText("fine", ""), "s/fine/refs/": ""})
			for _, name := range []string{"s/a/SKILL.md", "u", "s/fine/refs/x"} {
				if err := create(filepath.Join(base, name)); err != nil {
					t.Skipf("cannot make one here: %v", err)
				}
			}
			s := returns(t, func() *Set { return Resolve(base, project("s", "u")) })
			if diff := cmp.Diff(codes(s), []Code{CodeNotRegular, CodeNotRegular}); diff != "" || len(s.Skills) != 1 {
				t.Errorf("%q (-got +want)\n%s", told(s, base), diff)
			}
			err := returns(t, func() error { _, err := ReadFile(s.Find("fine"), "refs/x"); return err })
			if failed, ok := errors.AsType[*FileError](err); !ok || failed.Code != CodeNotRegular {
				t.Errorf("ReadFile: %v", err)
			}
		})
	}
}

// TestFileBecomesFifo: the file was seen, and is a fifo when it is opened.
func TestFileBecomesFifo(t *testing.T) {
	t.Parallel()
	base := build(t, files{"s/a/SKILL.md": skillText("a", "")})
	path := filepath.Join(base, "s/a/SKILL.md")
	if err := unix.Mkfifo(path+".fifo", 0o644); err != nil {
		t.Fatal(err)
	}
	o := project("s")
	o.opening = func(name string) {
		if name != skillFile {
			return
		}
		if err := os.Rename(path+".fifo", path); err != nil {
			t.Error(err)
		}
	}
	s := returns(t, func() *Set { return Resolve(base, o) })
	if diff := cmp.Diff(codes(s), []Code{CodeReadError}); diff != "" || len(s.Skills) != 0 {
		t.Errorf("(-got +want)\n%s", diff)
	}
}

// TestDirectoryBecomesLink: the directory was seen, and is a link to elsewhere when it
// is opened.
func TestDirectoryBecomesLink(t *testing.T) {
	t.Parallel()
	base := build(t, files{"repo/.git/": "", "repo/s/a/SKILL.md": skillText("a", ""), "out/a/SKILL.md": skillText("a", "secret")})
	o := project("s")
	o.opening = func(name string) {
		if name != "s" {
			return
		}
		if err := os.RemoveAll(filepath.Join(base, "repo/s")); err != nil {
			t.Error(err)
		}
		if err := os.Symlink("../out", filepath.Join(base, "repo/s")); err != nil {
			t.Error(err)
		}
	}
	s := Resolve(filepath.Join(base, "repo"), o)
	if diff := cmp.Diff(codes(s), []Code{CodeSymlinkEscape}); diff != "" || len(s.Skills) != 0 {
		t.Errorf("%q (-got +want)\n%s", told(s, base), diff)
	}
}

func TestDescriptorsAreClosed(t *testing.T) {
	// Not parallel: it counts the descriptors of the process.
	base := build(t, files{
		".git/": "", "s/a/SKILL.md": skillText("a", ""), "s/b/SKILL.md": "damaged", "s/c": "-> ../../x", "s/d/SKILL.md/": "", "u/x/SKILL.md": skillText("x", ""),
	})
	count := func() int {
		list, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Skipf("no /proc: %v", err)
		}
		return len(list)
	}
	before := count()
	for range 20 {
		s := Resolve(base, project("s", filepath.Join(base, "u"), filepath.Join(base, "s/a/SKILL.md")))
		for _, name := range []string{"SKILL.md", "absent", "..", "/"} {
			_, _ = ReadFile(s.Find("a"), name) // only its descriptors matter
		}
		s.Fresh()
	}
	if after := count(); after > before {
		t.Errorf("%d descriptors before, %d after", before, after)
	}
}
