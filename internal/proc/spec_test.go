package proc

import (
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/phases"
)

// absolute makes a path absolute on every system.
func absolute(path string) string {
	if runtime.GOOS == "windows" {
		return `C:` + path
	}
	return path
}

func TestSpecValidate(t *testing.T) {
	t.Parallel()

	good := strings.Repeat("0a", 32)
	tests := []struct {
		name    string
		edit    func(*Spec)
		message string
	}{
		{"good", func(*Spec) {}, ""},
		{"no name", func(s *Spec) { s.Name = "" }, "name"},
		{"name with slash", func(s *Spec) { s.Name = "../x" }, "name"},
		{"relative path", func(s *Spec) { s.Path = "x" }, "not absolute"},
		{"checksum", func(s *Spec) { s.SHA256 = "abc" }, "64 hex digits"},
		{"pin without checksum", func(s *Spec) { s.Pins = map[string]string{absolute("/x"): ""} }, "pin"},
		{"relative pin", func(s *Spec) { s.Pins = map[string]string{"x": good} }, "pin"},
		{"good pins", func(s *Spec) { s.SHA256, s.Pins = good, map[string]string{absolute("/x"): good} }, ""},
		{"variable name", func(s *Spec) { s.Env.Set = map[string]string{"A=B": ""} }, "no valid name"},
		{"reserved variable", func(s *Spec) { s.Env.Pass = []string{"GRAPNEL_MARK"} }, "set by Grapnel"},
		{"reserved by go-plugin", func(s *Spec) { s.Env.Set = map[string]string{"PLUGIN_CLIENT_CERT": ""} }, "set by Grapnel"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			s := Spec{Name: "p", Path: absolute("/bin/p")}
			tt.edit(&s)
			got, err := s.withDefaults()
			if tt.message == "" {
				if err != nil || got.Grace != DefaultGrace || got.LogRate != DefaultLogRate || got.Now == nil || got.Random == nil || got.Log == nil {
					t.Errorf("withDefaults = %+v, %v", got, err)
				}
				return
			}
			if phases.CodeOf(err) != phases.CauseExecFailed || !strings.Contains(err.Error(), tt.message) {
				t.Errorf("error %v does not contain %q", err, tt.message)
			}
		})
	}
}

func TestIsResource(t *testing.T) {
	t.Parallel()

	for _, errno := range []syscall.Errno{syscall.ENOEXEC, syscall.EACCES, syscall.ENOENT} {
		if err := execError("p", "", errno); IsResource(err) || err.Code != phases.CauseExecFailed {
			t.Errorf("%v is a failure of the host: %v", errno, err)
		}
	}
	for _, err := range []error{
		execError("p", "", syscall.EMFILE), resourceOr(phases.CauseInternal, syscall.EAGAIN, "x: %w"), fmt.Errorf("y: %w", syscall.ENOMEM),
	} {
		if !IsResource(err) {
			t.Errorf("not a failure of the host: %v", err)
		}
	}
	if got := resourceOr(phases.CauseInternal, syscall.EMFILE, "x: %w"); got.Code != phases.CauseUnavailable || !got.Retryable {
		t.Errorf("resourceOr = %+v", got)
	}
	if got := resourceOr(phases.CauseInternal, fs.ErrExist, "x: %w"); got.Code != phases.CauseInternal || !errors.Is(got, fs.ErrExist) {
		t.Errorf("resourceOr = %+v", got)
	}
}

func TestExit(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name string
		exit Exit
		code phases.Cause
		want string
	}{
		{"status", Exit{Code: 3}, phases.CauseCrash, "plugin p exited with status 3"},
		{"signal", Exit{Code: -1, Signal: syscall.SIGKILL}, phases.CauseCrash, "plugin p killed by signal 9 (killed)"},
		{"memory", Exit{Code: -1, Signal: syscall.SIGKILL, OOM: true}, phases.CauseOOM, "plugin p killed, probably for memory"},
		{"memory near its limit", Exit{Code: -1, OOM: true, Held: 99 << 20, Limit: 100 << 20}, phases.CauseOOM, "plugin p killed, probably for memory: it held 99 MiB (its limit is 100 MiB)"},
		{"memory over its limit", Exit{Code: 2, OOM: true, Held: 3<<20 + 1<<19, Limit: 2 << 20}, phases.CauseOOM, "plugin p ended for memory: it held 3.5 MiB (its limit is 2 MiB)"},
		{"last lines", Exit{Stderr: []string{"a", "b", "c", "d"}}, phases.CauseCrash, `plugin p exited with status 0; stderr: b | c | d`},
		{
			"panic",
			Exit{Code: 2, Stderr: []string{"a", "panic: x", "goroutine 1", "main.go:1", "exit"}},
			phases.CauseCrash, `plugin p exited with status 2; stderr: panic: x | goroutine 1 | main.go:1`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			err := tt.exit.Err("p")
			if got := strings.TrimSuffix(err.Message+"; "+err.Detail, "; "); err.Code != tt.code || got != tt.want || !err.Retryable {
				t.Errorf("Err = %+v, want %q: %s", err, tt.code, tt.want)
			}
		})
	}
	if got := exitOf(nil, time.Time{}); got.Code != -1 {
		t.Errorf("exitOf(nil) = %+v", got)
	}
}
