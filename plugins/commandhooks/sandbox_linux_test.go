package commandhooks_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/internal/proc/sandbox"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/plugins/commandhooks"
	"github.com/grapnelhq/grapnel/runtime"
	"github.com/grapnelhq/grapnel/sdk/serve"
)

// TestMain makes the test binary also the plugin that these tests start.
func TestMain(m *testing.M) {
	serve.Builtins(commandhooks.New)
	os.Exit(m.Run())
}

// reaching is a hostile script: it denies with what came of its attempts, and leaves a child in a session of its own.
const reaching = `#!/bin/bash
try() { if "$@" 2>/dev/null; then echo -n "$1 done " >&2; else echo -n "$1 refused " >&2; fi; }
read_it() { cat %[1]q/secret >/dev/null; }
write_it() { : >%[1]q/beside; }
connect_it() { exec 3<>/dev/tcp/127.0.0.1/%[2]s; }
leave_it() { setsid /bin/sh -c 'echo $$ >%[1]s/may/child; exec sleep 1000' </dev/null >/dev/null 2>&1 & }
try read_it; try write_it; try connect_it; leave_it
until test -s %[1]s/may/child; do sleep 0.01; done
exit 2
`

// TestSandbox: what the plugin is not granted, a hostile script does not get; and nothing that it has started lives longer
// than the plugin. Without a sandbox it gets everything.
func TestSandbox(t *testing.T) {
	t.Parallel()

	for _, program := range []string{"bash", "setsid", "sleep"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip(err)
		}
	}
	for _, test := range []struct {
		name, want string
		tier       sandbox.Tier
	}{{"T0", "done", sandbox.T0}, {"T1", "refused", sandbox.T1}, {"T2", "refused", sandbox.T2}} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()

			if err := sandbox.Probe().Reach(test.tier, sandbox.Policy{}, ""); err != nil {
				t.Skip(err)
			}
			dir := t.TempDir()
			l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close() //nolint:errcheck // nobody is served
			_, port, err := net.SplitHostPort(l.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			in := func(name string) string { return filepath.Join(dir, name) }
			file := fmt.Sprintf(`{"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": %q}]}]}}`, in("may/hook.sh"))
			if err := errors.Join(
				os.MkdirAll(in("may/.claude"), 0o700), os.WriteFile(in("secret"), []byte("a secret"), 0o600), os.WriteFile(in("may/.claude/settings.json"), []byte(file), 0o600),
				os.WriteFile(in("may/hook.sh"), fmt.Appendf(nil, reaching, dir, port), 0o700),
			); err != nil {
				t.Fatal(err)
			}
			eng, end := confined(t, test.name, in("may"))
			turn, err := eng.BeginTurn(t.Context(), phases.Context{WorkspaceID: "w", ThreadID: "t", TurnID: "1", SessionID: "s", Dir: in("may")})
			if err != nil {
				t.Fatal(err)
			}
			out, err := turn.Dispatch(t.Context(), &phases.ToolPreCallInput{Tool: "Bash", Arguments: json.RawMessage(`{"command":"ls"}`)})
			want := fmt.Sprintf("read_it %[1]s write_it %[1]s connect_it %[1]s", test.want)
			if err != nil || out.Decision == nil || len(out.Decision.Reasons) != 1 || out.Decision.Reasons[0].Reason != want {
				t.Fatalf("%v: %+v, %+v, want %q", err, out.Decision, out.Runs, want)
			}
			text, err := os.ReadFile(in("may/child"))
			child := strings.TrimSpace(string(text))
			if _, number := strconv.Atoi(child); err != nil || number != nil || !lives(child) {
				t.Fatalf("the child %q: %v", child, err)
			}
			end()
			for until := time.Now().Add(time.Minute); lives(child); <-time.After(20 * time.Millisecond) {
				if time.Now().After(until) {
					t.Fatalf("the child %s lives on", child)
				}
			}
		})
	}
}

// lives reports whether a process runs: one that has ended and waits for its parent does not.
func lives(pid string) bool {
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	return err == nil && !strings.Contains(string(stat), ") Z ")
}

// confined is an engine with the plugin in a tier, and what the script's programs need granted.
func confined(t *testing.T, tier, project string) (eng *runtime.Engine, end func()) {
	t.Helper()
	launches, err := serve.Plugins{commandhooks.New}.Launches()
	if err != nil {
		t.Fatal(err)
	}
	grants := ""
	if tier != "T0" { // which takes none
		grants = fmt.Sprintf(", read: [/bin, /usr, /lib, /lib64, /etc/ld.so.cache, %[1]q], write: [%[1]q]", project)
	}
	text := fmt.Sprintf(`version: 1
budgets: {phases: {tool.pre_call: {time: 30s}}}
plugins:
  - name: hooks
    builtin: commandhooks
    sandbox: %[1]s
    grants: {contribute: [decision, reminder], see: [arguments]%[3]s}
    env: {pass: [PATH]}
    config: {format: claude, files: [%[2]q]}
`, tier, filepath.Join(project, ".claude", "settings.json"), grants)
	cfg, err := config.Loader{}.Parse([]byte(text), "grapnel.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if eng, err = runtime.New(t.Context(), cfg, runtime.Options{Builtins: launches}); err != nil {
		t.Fatal(err)
	}
	return eng, func() {
		if err := eng.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
		_ = launches["commandhooks"].File.Close()
	}
}
