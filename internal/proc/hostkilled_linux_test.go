package proc_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/grapnelhq/grapnel/internal/proc"
	"github.com/grapnelhq/grapnel/internal/proc/sandbox"
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

// TestHostKilledBesideFugitive: a plugin that has cleared its death signal, its
// environment, its session and its parent dies when the next host sweeps, also
// when it keeps its directory locked, and its directory goes.
func TestHostKilledBesideFugitive(t *testing.T) {
	for _, tier := range []sandbox.Tier{sandbox.T0, sandbox.T1} {
		t.Run(tier.String(), func(t *testing.T) {
			if tier > sandbox.T0 {
				needT1(t)
			}
			b := setup(t)
			cmd, lines := startHost(t, b, tier, "fugitive")
			fugitive := numbersAfter(t, lines, "fugitive", "plugin")[0]
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			if !alive(fugitive) {
				t.Error("the fugitive died with its host")
			}
			if got := proc.SweepLeftovers(t.Context(), b.dir); got.Processes < 1 || got.Directories != 1 || alive(fugitive) {
				t.Errorf("swept %+v; the fugitive lives: %v", got, alive(fugitive))
				_ = unix.Kill(fugitive, unix.SIGKILL)
			}
		})
	}
}

// startHost starts a host of a plugin in a mode, and returns what it prints.
func startHost(t *testing.T, b *testBench, tier sandbox.Tier, mode string) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()

	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, modeArg, "host", b.dir, tier.String(), mode)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, bufio.NewScanner(out)
}

// numbersAfter reads lines until each of the words has begun one, in any order, and returns
// the numbers after them.
func numbersAfter(t *testing.T, lines *bufio.Scanner, words ...string) []int {
	t.Helper()

	numbers := make([]int, len(words))
	for left := len(words); left > 0; {
		if !lines.Scan() {
			t.Fatalf("no lines begin with %q: %v", words, lines.Err())
		}
		for i, word := range words {
			if n, _ := fmt.Sscanf(lines.Text(), word+" %d", &numbers[i]); n == 1 {
				left--
			}
		}
	}
	return numbers
}

// killHost kills a host of a plugin of some tier; the death signal must outlive
// all that a confinement does to a program.
func killHost(t *testing.T, tier sandbox.Tier) {
	t.Helper()

	b := setup(t)
	cmd, scanner := startHost(t, b, tier, "children")
	var pid int
	var mark string
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
	eventually(t, "processes that bear the mark", func() string { // a child that is being started has no environment yet
		return strings.TrimPrefix(strconv.Itoa(len(processesWith(t, mark, true))), "4")
	})
	// Other test binaries may have left processes of theirs behind meanwhile, so
	// only the least number that is swept is known.
	if got := proc.SweepLeftovers(t.Context(), b.dir); got.Directories != 0 || len(processesWith(t, mark, true)) != 4 {
		t.Errorf("swept %+v of a living host", got)
	}
	_ = cmd.Process.Kill()
	for { // until the plugin has ended
		if _, err := unix.Poll([]unix.PollFd{{Fd: int32(handle), Events: unix.POLLIN}}, -1); err != unix.EINTR {
			break
		}
	}
	_ = cmd.Wait()

	got := proc.SweepLeftovers(t.Context(), b.dir)
	// The child of the plugin's own group lives on too: nobody killed the group.
	if got.Processes < 3 || got.Directories != 1 {
		t.Errorf("swept %+v, want 3 processes at least and 1 directory", got)
	}
	if left := processesWith(t, mark, true); len(left) > 0 {
		t.Errorf("left after the sweep: %v", left)
	}
}
