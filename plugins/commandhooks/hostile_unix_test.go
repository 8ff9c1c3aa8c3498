//go:build unix

package commandhooks

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/phases"
)

// guard is the plugin with one script before tool calls of Claude Code.
func guard(t *testing.T, script string) *project {
	t.Helper()
	return newProject(t, "claude", one(t, "claude", "PreToolUse", script, nil), nil)
}

// TestHostileScripts: each ends, within bounds, and as a failure where it did not do its work.
func TestHostileScripts(t *testing.T) {
	t.Parallel()

	big := bash(strings.Repeat("x", 1<<20))
	for _, tt := range []struct {
		name, script string
		in           phases.Input
		want         string
	}{
		{"never reads", `exit 0`, big, ""},
		{"reads it all", `test "$(wc -c)" -gt 1000000 && echo big >&2 && exit 2`, big, "deny big"},
		{"endless output that ignores signals", `trap '' TERM PIPE; while :; do head -c 100000 /dev/zero || :; done`, bash("ls"), "failure output_too_long"},
		{"100 MB", `head -c 100000000 /dev/zero; exit 0`, bash("ls"), "failure output_too_long"},
		{"100 MB of errors", `head -c 100000000 /dev/zero >&2; exit 2`, bash("ls"), ""},
		{"closes its output", `exec 1>&- 2>&-; exit 0`, bash("ls"), ""},
		{"children hold its output", `for i in 1 2 3 4 5 6 7 8; do (sleep 60 & sleep 60) & done; echo no >&2; exit 2`, bash("ls"), "deny no"},
		{"not UTF-8", `printf '\377\376 no' >&2; exit 2`, bash("ls"), "deny \ufffd no"},
		{"a NUL", `printf 'n\000o' >&2; exit 2`, bash("ls"), "deny n\ufffdo"},
		{"deep JSON", `printf '{"a":'; head -c 20000 /dev/zero | tr '\0' '['`, bash("ls"), "failure invalid_output"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			cs, err := guard(t, tt.script).dispatch(t.Context(), t, tt.in)
			got := shown(cs, err)
			if tt.name == "100 MB of errors" {
				if len(cs) != 1 || len(got) > 4*maxText {
					t.Errorf("%d contributions, %d bytes, %v", len(cs), len(got), err)
				}
				return
			}
			if got != tt.want {
				t.Errorf("got  %.200s\nwant %s", got, tt.want)
			}
		})
	}
}

// TestTimeout: at the deadline a script, and its children, are gone, whatever signals they ignore.
func TestTimeout(t *testing.T) {
	t.Parallel()

	pids := filepath.Join(t.TempDir(), "pids")
	p := guard(t, `trap '' TERM; (trap '' TERM; echo $BASHPID >>`+pids+`; while :; do sleep 1000; done) & echo $$ >>`+pids+`; while :; do sleep 1000; done`)
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, func() {
		for ctx.Err() == nil {
			if data, _ := os.ReadFile(pids); strings.Count(string(data), "\n") == 2 {
				cancel()
			}
		}
	})
	if _, err := p.dispatch(ctx, t, bash("ls")); err == nil {
		t.Error("no error")
	}
	data, err := os.ReadFile(pids)
	if err != nil {
		t.Fatal(err)
	}
	for pid := range strings.FieldsSeq(string(data)) {
		for alive(pid) { // a killed process ends when the system gets to it
			if t.Context().Err() != nil {
				t.Fatalf("process %s is alive", pid)
			}
			<-time.After(time.Millisecond) // not to be a load of its own
		}
	}
}

// alive reports whether there is a process that is more than its exit code.
func alive(pid string) bool {
	status, err := os.ReadFile(filepath.Join("/proc", pid, "status"))
	return err == nil && !strings.Contains(string(status), "State:\tZ")
}

// TestPayloadIsNoCommand: nothing of a call reaches a shell.
func TestPayloadIsNoCommand(t *testing.T) {
	t.Parallel()

	trace := filepath.Join(t.TempDir(), "trace")
	evil := "$(touch " + trace + ")`touch " + trace + "`'; touch " + trace + " #"
	if got := guard(t, `cmd=$(sed 's/.*"command":"//'); echo "saw $cmd" >&2; exit 2`).shown(t, bash(evil)); !strings.HasPrefix(got, "deny saw $(touch") {
		t.Errorf("got %s", got)
	}
	if _, err := os.Stat(trace); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the payload was run: %v", err)
	}
}

// TestBackgroundWorkLives: a script may start something that outlives it, as long as it does not hold its output.
func TestBackgroundWorkLives(t *testing.T) {
	t.Parallel()

	done := filepath.Join(t.TempDir(), "done")
	if got := guard(t, `(sleep 0.5; echo ok >`+done+`) >/dev/null 2>&1 </dev/null & exit 0`).shown(t, bash("ls")); got != "" {
		t.Fatalf("got %s", got)
	}
	for t.Context().Err() == nil {
		if data, _ := os.ReadFile(done); len(data) > 0 {
			return
		}
		<-time.After(10 * time.Millisecond) // not to be a load of its own
	}
}
