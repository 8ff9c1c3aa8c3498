package proc_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/grapnelhq/grapnel/internal/proc"
	"github.com/grapnelhq/grapnel/internal/proc/sandbox"
)

// cloneArgs is the kernel's struct clone_args.
type cloneArgs struct {
	flags, pidfd, childTID, parentTID, exit, stack, stackSize, tls, setTID, setTIDSize, cgroup uint64
}

// cloneIntoGroup begins a child in the control group whose directory is its argument: it opens
// it as a place only, which Landlock does not judge.
func cloneIntoGroup(_, err *os.File) {
	fd, e := unix.Open(os.Args[3], unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if e == nil {
		args := cloneArgs{flags: unix.CLONE_INTO_CGROUP, exit: uint64(unix.SIGCHLD), cgroup: uint64(fd)}
		pid, _, errno := unix.RawSyscall(unix.SYS_CLONE3, uintptr(unsafe.Pointer(&args)), unsafe.Sizeof(args), 0)
		if pid == 0 && errno == 0 { // only this thread exists here
			_, _, _ = unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
		}
		e = noError(errno)
	}
	_, _ = fmt.Fprintln(err, "left", outcome(e))
}

// TestCloneIntoAnotherGroup: a plugin in T2 is in its control group from its first
// instruction, and begins nothing in another one.
func TestCloneIntoAnotherGroup(t *testing.T) {
	needT1(t)
	base, limits := groups(t)
	policy := sandbox.Policy{Read: []string{"/"}, Limits: limits}
	for _, tt := range []struct {
		sandbox proc.Sandbox
		want    string
	}{
		{proc.Sandbox{}, "left ok"},
		{proc.Sandbox{Tier: sandbox.T1, Policy: policy}, "left ENOSYS"},
		{proc.Sandbox{Tier: sandbox.T2, Policy: policy, Groups: base}, "left ENOSYS"},
	} {
		t.Run(tt.sandbox.Tier.String(), func(t *testing.T) {
			b := setup(t)
			spec := b.spec("clone-into-group", base)
			spec.Sandbox = tt.sandbox
			p := b.act(t, spec)
			if got := b.waitLine(t, "left").Message; got != tt.want {
				t.Errorf("%s, want %s", got, tt.want)
			}
			membership, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", p.PID()))
			own := strings.Contains(string(membership), strings.ReplaceAll(p.Mark(), "/", "-"))
			if err != nil || own != (tt.sandbox.Tier == sandbox.T2) {
				t.Errorf("it is in %s, %v", membership, err)
			}
		})
	}
}
