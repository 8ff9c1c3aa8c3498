//go:build unix

package persona_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/internal/persona"
)

// TestLoadHostile: what may lie in the place of a file. Each case would hang the
// test if it were waited for.
func TestLoadHostile(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name   string
		make   func(t *testing.T, path string)
		status string
		text   string
		detail string // a part of the message
	}{
		{name: "fifo", make: func(t *testing.T, path string) { must(t, syscall.Mkfifo(path, 0o600)) }, status: "file_not_regular", detail: "not a regular file"},
		{name: "folder", make: func(t *testing.T, path string) { must(t, os.Mkdir(path, 0o700)) }, status: "file_not_regular"},
		{name: "device without end", make: link("/dev/zero"), status: "file_not_regular"},
		{name: "loop of links", make: func(t *testing.T, path string) { must(t, os.Symlink(path, path)) }, status: "file_read_error", detail: "links"},
		{name: "link to nothing", make: link("not-there.md"), status: "file_read_error", detail: "a link to a file that is not there"},
		{name: "link to a file", make: func(t *testing.T, path string) {
			must(t, os.WriteFile(path+".kept", []byte("dotfile"), 0o600))
			must(t, os.Symlink(filepath.Base(path)+".kept", path))
		}, status: "loaded", text: "dotfile"},
		{name: "error while reading", make: link("/proc/self/mem"), status: "file_read_error", detail: "input/output error"},
		{name: "unreadable", make: unreadable, status: "file_read_error", detail: "permission denied"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			dir := newHome(t, map[string]string{"IDENTITY.md": "i", "USER.md": "u"})
			tt.make(t, filepath.Join(dir, "SOUL.md"))
			f := persona.Load(dir)
			if f.Soul.Row.Status != tt.status || f.Soul.Text != tt.text {
				t.Errorf("soul = %+v, want status %s, text %q", f.Soul, tt.status, tt.text)
			}
			if f.Identity.Text != "i" || f.User.Text != "u" {
				t.Errorf("the other files were not read: %+v", f)
			}
			want := []string{}
			if tt.status != persona.StatusLoaded {
				want = append(want, tt.status+" soul_core")
			}
			if diff := cmp.Diff(codes(&f), want); diff != "" {
				t.Errorf("diagnostics (-got +want):\n%s", diff)
			}
			for _, d := range f.Soul.Diagnostics {
				if !strings.HasPrefix(d.Message, "SOUL.md") || !strings.Contains(d.Message, tt.detail) || strings.Contains(d.Message, dir) {
					t.Errorf("message %q, want SOUL.md and %q, and no path", d.Message, tt.detail)
				}
			}
		})
	}
}

// link makes a link to a target.
func link(target string) func(*testing.T, string) {
	return func(t *testing.T, path string) {
		t.Helper()
		if filepath.IsAbs(target) {
			if _, err := os.Stat(target); err != nil {
				t.Skipf("there is no %s here: %v", target, err)
			}
		}
		must(t, os.Symlink(target, path))
	}
}

func unreadable(t *testing.T, path string) {
	t.Helper()
	if os.Geteuid() == 0 {
		t.Skip("the administrator may read everything")
	}
	must(t, os.WriteFile(path, []byte("secret"), 0))
}

// TestLoadIsNotADirectory: a persona directory that is a file has no files, and that is not the
// same as their being absent.
func TestLoadIsNotADirectory(t *testing.T) {
	t.Parallel()

	dir := newHome(t, map[string]string{"file": ""})
	f := persona.Load(filepath.Join(dir, "file"))
	if f.Soul.Row.Status != persona.CodeReadError || f.User.Row.Status != persona.CodeReadError {
		t.Errorf("rows = %+v", rows(&f))
	}
}
