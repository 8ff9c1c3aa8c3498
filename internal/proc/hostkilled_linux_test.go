package proc_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/grapnelhq/grapnel/internal/proc"
	"github.com/grapnelhq/grapnel/internal/sandbox"
)

func TestHostKilled(t *testing.T) {
	for _, tier := range []sandbox.Tier{sandbox.T0, sandbox.T1} {
		t.Run(tier.String(), func(t *testing.T) {
			if tier > sandbox.T0 {
				needT1(t)
			}
			killHost(t, tier)
		})
	}
}

// killHost kills a host of a plugin of some tier; the death signal must outlive
// all that a confinement does to a program.
func killHost(t *testing.T, tier sandbox.Tier) {
	t.Helper()

	b := setup(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, modeArg, "host", b.dir, tier.String())
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var pid int
	var mark string
	scanner := bufio.NewScanner(out)
	for scanner.Scan() && mark == "" {
		if n, _ := fmt.Sscanf(scanner.Text(), "plugin %d %s", &pid, &mark); n == 2 {
			break
		}
	}
	handle, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		t.Fatalf("plugin %d: %v", pid, err)
	}
	defer func() { _ = unix.Close(handle) }()
	if n := len(processesWith(t, mark)); n != 4 {
		t.Errorf("%d processes bear the mark, want 4", n)
	}
	// Other test binaries may have left processes of theirs behind meanwhile, so
	// only the least number that is swept is known.
	if got := proc.SweepLeftovers(t.Context(), b.dir); got.Folders != 0 || len(processesWith(t, mark)) != 4 {
		t.Errorf("swept %+v of a living host", got)
	}
	began := time.Now()
	_ = cmd.Process.Kill()
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(handle), Events: unix.POLLIN}}, 5000)
		if n > 0 || err != unix.EINTR {
			break
		}
	}
	if took := time.Since(began); took > 500*time.Millisecond+raceSlack {
		t.Errorf("plugin lived for %v after its host", took)
	}
	_ = cmd.Wait()

	got := proc.SweepLeftovers(t.Context(), b.dir)
	// The child of the plugin's own group lives on too: nobody killed the group.
	if got.Processes < 3 || got.Folders != 1 {
		t.Errorf("swept %+v, want 3 processes at least and 1 folder", got)
	}
	if left := processesWith(t, mark); len(left) > 0 {
		t.Errorf("left after the sweep: %v", left)
	}
}
