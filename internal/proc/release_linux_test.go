package proc

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/grapnelhq/grapnel/internal/proc/sandbox"
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
		sandbox.Policy{Limits: sandbox.Limits{Files: 77, Tasks: sandbox.NoLimit}}, sandbox.Program{Dir: dir, Script: true})
	if err != nil {
		t.Fatal(err)
	}
	defer confinement.Close()
	g := &cage{tier: sandbox.T1, confinement: confinement}
	started := make(chan launched)
	onOwnThread(onMainThread, func() {
		if err := g.confinement.Apply(); err != nil {
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

// TestGroupTakesPtrace: where a program cannot be held (a debugger follows the host's
// children, or ptrace is switched off) it would run before it is in its control group,
// and is not started at all.
func TestGroupTakesPtrace(t *testing.T) {
	t.Parallel()

	if err := sandbox.Probe().Check(sandbox.Policy{}); err != nil {
		t.Skip(err)
	}
	confinement, err := sandbox.Prepare(sandbox.Policy{Limits: sandbox.Limits{Tasks: sandbox.NoLimit}}, sandbox.Program{Dir: t.TempDir(), Script: true})
	if err != nil {
		t.Fatal(err)
	}
	defer confinement.Close()
	for _, group := range []*sandbox.Group{nil, {}} {
		g := &cage{confinement: confinement, group: group}
		done := make(chan error)
		onOwnThread(onMainThread, func() {
			err := errors.Join(forbid(unix.SYS_PTRACE), g.confinement.Apply())
			if err == nil {
				var p *os.Process
				if p, err = g.spawn("/bin/true", []string{"true"}, &os.ProcAttr{Sys: sysProcAttr(g)}); err == nil {
					awaitEnd(p, func() {})
				}
			}
			done <- err
		})
		if err := <-done; (err == nil) != (group == nil) || err != nil && !errors.Is(err, unix.EPERM) {
			t.Errorf("in a group: %v; started: %v", group != nil, err)
		}
		if lacks := len(g.missing) > 0; lacks != (group == nil) {
			t.Errorf("in a group: %v; missing: %q", group != nil, g.missing)
		}
	}
}

// forbid makes a system call fail on the calling thread, with EPERM.
func forbid(number uint32) error {
	code := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: 1, K: number},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	prog := unix.SockFprog{Len: uint16(len(code)), Filter: &code[0]}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	if _, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&prog))); errno != 0 {
		return errno
	}
	return nil
}
