package proc

import (
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestSweepByTag: a process with the tag of a dead host is killed, although its
// environment says nothing; that of a living host, of one in another namespace,
// and somebody else's limit are spared.
func TestSweepByTag(t *testing.T) {
	asUsers(t, func(t *testing.T) {
		random := "/" + strings.Repeat("0", 32)
		for _, tt := range []struct {
			name string
			tag  tag
			dies bool
		}{
			{"dead host", tagFor(identity(1<<30, 1, pidNamespace("self")) + random), true},
			{"this host", tagFor(hostIdentity() + random), false},
			{"host elsewhere", tagFor(identity(1<<30, 1, "1") + random), false},
			{"another limit", tag{Cur: 100, Max: 1000}, false},
			{"no locks", tag{}, false},
			{"none", tag{Cur: unix.RLIM_INFINITY, Max: unix.RLIM_INFINITY}, false},
		} {
			cmd := exec.CommandContext(t.Context(), "/bin/sleep", "600")
			cmd.Env = []string{"A=B"}
			if err := cmd.Start(); err != nil {
				t.Skip(err)
			}
			setTag(cmd.Process.Pid, tt.tag)
			if got := readTag(cmd.Process.Pid); got != tt.tag {
				t.Errorf("%s: tag %x, want %x", tt.name, got, tt.tag)
			}
			id := procID{pid: cmd.Process.Pid}
			if p, ok := readProcess(id.pid); ok {
				id = p.id
			}
			sweepProcesses(t.Context())
			if hasEnded(id) != tt.dies {
				t.Errorf("%s: it has ended: %v", tt.name, !tt.dies)
			}
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	})
}
