//go:build linux

package chain

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// returns fails the test if a call blocks. The time is what a machine that is busy
// with other things may need.
func returns(t *testing.T, call func() Chain) Chain {
	t.Helper()
	done := make(chan Chain, 1)
	go func() { done <- call() }()
	select {
	case c := <-done:
		return c
	case <-time.After(30 * time.Second):
		t.Fatal("it blocks")
		return Chain{}
	}
}

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
			base := build(t, files{".git/": "", "a/AGENTS.md": "one"})
			if err := create(filepath.Join(base, "AGENTS.md")); err != nil {
				t.Skipf("cannot make one here: %v", err)
			}
			for name, view := range views() {
				c := returns(t, func() Chain { return Resolve(view, filepath.Join(base, "a"), Options{}) })
				if got := c.Sources[len(c.Sources)-1]; got.Text != "one" {
					t.Errorf("%s: the other file has %q", name, got.Text)
				}
				if diff := cmp.Diff(codes(c.Diagnostics), []Code{CodeNotRegular}); diff != "" {
					t.Errorf("%s: (-got +want)\n%s", name, diff)
				}
			}
		})
	}
}

// codes lists the codes of rows.
func codes(rows []Diagnostic) []Code {
	var out []Code
	for _, d := range rows {
		out = append(out, d.Code)
	}
	return out
}

func TestFileBecomesFifo(t *testing.T) {
	t.Parallel()
	base := build(t, files{".git/": "", "AGENTS.md": "one"})
	path := filepath.Join(base, "AGENTS.md")
	for name, inner := range views() {
		view := &faultFS{FS: inner, swap: map[string]func(){"open " + path: func() {
			if err := os.Remove(path); err != nil {
				t.Error(err)
			}
			if err := unix.Mkfifo(path, 0o644); err != nil {
				t.Error(err)
			}
		}}}
		c := returns(t, func() Chain { return Resolve(view, base, Options{}) })
		if s := c.Sources[0]; s.State != StateSkipped || s.Text != "" {
			t.Errorf("%s: %+v", name, s)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("one"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestHugeFile(t *testing.T) {
	t.Parallel()
	base := build(t, files{".git/": "", "AGENTS.md": strings.Repeat("text\n", 2000), "a/AGENTS.md": ""})
	const size = 100 << 20
	for _, name := range []string{"AGENTS.md", "a/AGENTS.md"} {
		if err := os.Truncate(filepath.Join(base, name), size); err != nil {
			t.Fatal(err)
		}
	}
	view := &faultFS{FS: OS{}}
	c := Resolve(view, filepath.Join(base, "a"), Options{})
	r := Render(c, Budget{defaultTotalBytes, 16000})
	if most := 2 * (maxRead + 1); view.read > most {
		t.Errorf("%d bytes were read, want at most %d", view.read, most)
	}
	first, second := r.Sources[0], r.Sources[1]
	if first.State != StateTruncated || first.Bytes != size || first.Kept == 0 || first.Kept > 16000 {
		t.Errorf("text with a long tail: %+v", first)
	}
	if second.State != StateSkipped || second.Reason != string(CodeBinary) || second.Bytes != size {
		t.Errorf("nothing but NUL: %+v", second)
	}
	want := []Code{CodeReadCap, CodeInvalidUTF8, CodeReadCap, CodeBinary}
	if diff := cmp.Diff(codes(c.Diagnostics), want); diff != "" {
		t.Errorf("(-got +want)\n%s", diff)
	}
}

func TestFileWithoutSize(t *testing.T) {
	t.Parallel()
	// Files of /proc say that they are empty, and are not.
	dir, err := OS{}.OpenDir("/proc/self")
	if err != nil {
		t.Skipf("no /proc: %v", err)
	}
	defer func() { _ = dir.Close() }()
	c, p := new(reader).read(dir, "limits")
	if p != nil || c.info.Size != 0 || len(c.raw) < 513 {
		t.Errorf("read %d bytes, said to be %d: %+v", len(c.raw), c.info.Size, p)
	}
}
