package proc

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/grapnelhq/grapnel/internal/sandbox"
)

// TestHeldUntilReleased looks at a confined program between its start and its
// first instruction.
func TestHeldUntilReleased(t *testing.T) {
	t.Parallel()

	if err := sandbox.Probe().Check(sandbox.Policy{}); err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	confinement, err := sandbox.Prepare(
		sandbox.Policy{Limits: sandbox.Limits{Files: 77, Tasks: sandbox.NoLimit}}, sandbox.Program{Folder: dir, Script: true})
	if err != nil {
		t.Fatal(err)
	}
	defer confinement.Close()
	g := &cage{tier: sandbox.T1, confinement: confinement}
	started := make(chan launched)
	onOwnThread(onMainThread, func() {
		if err := g.enter(); err != nil {
			started <- launched{err: err}
			return
		}
		p, err := g.spawn("/bin/sh", []string{"sh", "-c", "ulimit -n > limit"}, &os.ProcAttr{Dir: dir, Sys: sysProcAttr(g)})
		started <- launched{process: p, thread: threadID(), err: err}
	})
	s := <-started
	if s.err != nil {
		t.Fatal(s.err)
	}
	if len(g.missing) > 0 {
		t.Skip(g.missing)
	}
	if err := unix.Waitid(unix.P_PID, s.process.Pid, nil, unix.WSTOPPED|unix.WNOWAIT, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "limit")); err == nil {
		t.Error("the program runs before its release")
	}
	if err := g.release(s.process.Pid, s.thread); err != nil {
		t.Fatal(err)
	}
	if err := unix.Tgkill(unix.Getpid(), s.thread, 0); err == nil {
		t.Error("the thread that started the program is left")
	}
	if state := awaitEnd(s.process, func() {}); !state.Success() {
		t.Error(state)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "limit")); err != nil || string(text) != "77\n" {
		t.Errorf("the program's limit is %q, %v", text, err)
	}
}
