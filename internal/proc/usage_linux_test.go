package proc

import (
	"context"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestUsageForgetsTheDead: a known descendant that a table lacks, because it is older
// or could not be read, is remembered while it lives.
func TestUsageForgetsTheDead(t *testing.T) {
	t.Parallel()

	self, ok := readProcess(os.Getpid())
	if !ok {
		t.Skip("no /proc")
	}
	alive := self.id
	reused := procID{pid: self.id.pid, start: self.id.start + 1}
	dead := procID{pid: 1 << 30, start: 1}
	f := &family{known: map[procID]bool{alive: true, reused: true, dead: true}}
	if u, _ := f.usage(&table{}); u != (Usage{}) {
		t.Errorf("usage of an empty table = %+v", u)
	}
	if len(f.known) != 1 || !f.known[alive] {
		t.Errorf("known are %v, want only %v", f.known, alive)
	}
	zombie := process{id: alive, zombie: true}
	zombie.id = procID{pid: os.Getppid(), start: 1} // a family does not count this process
	f.known = map[procID]bool{zombie.id: true}
	f.usage(&table{processes: []process{zombie}})
	if len(f.known) != 0 {
		t.Errorf("known are %v, want nobody", f.known)
	}
}

// TestClearKills: descendants that could not be killed at the end of their process are
// tried again, and not forgotten when the directory can be removed.
func TestClearKills(t *testing.T) {
	t.Parallel()

	cmd := exec.CommandContext(t.Context(), "/bin/sleep", "600")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	left, ok := readProcess(cmd.Process.Pid)
	if !ok {
		t.Skip("no /proc")
	}
	private, err := newPrivateDir(runtimeDir(t))
	if err != nil {
		t.Fatal(err)
	}
	p := &Process{
		gone: make(chan struct{}), cage: &cage{}, dir: private,
		child: &child{family: &family{mark: "no mark", known: map[procID]bool{left.id: true}}},
	}
	if err := p.Clear(); err == nil || hasEnded(left.id) {
		t.Errorf("Clear before the end = %v", err)
	}
	close(p.gone)
	for end := time.Now().Add(time.Minute); ; { // on a busy machine it ends some time after the signal
		if err = p.Clear(); err == nil || time.Now().After(end) {
			break
		}
	}
	if err != nil {
		t.Error(err)
	}
	if !hasEnded(left.id) {
		t.Error("it lives on")
	}
	if _, err := os.Stat(private.path); !os.IsNotExist(err) {
		t.Errorf("the directory is left: %v", err)
	}
}

// TestKillWithoutDescriptors: that nobody could be looked for is not that nobody is
// there. It is not parallel: it leaves this process without a descriptor.
func TestKillWithoutDescriptors(t *testing.T) {
	var rich unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &rich); err != nil {
		t.Fatal(err)
	}
	poor := rich
	poor.Cur = 3
	f := &family{mark: "no mark", known: map[procID]bool{}}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &poor); err != nil {
		t.Fatal(err)
	}
	left := f.kill(ctx)
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &rich); err != nil {
		t.Fatal(err)
	}
	if left != unseen {
		t.Errorf("%d are left, want that nobody could look", left)
	}
	if left := f.kill(ctx); left != 0 {
		t.Errorf("%d are left with descriptors", left)
	}
}
