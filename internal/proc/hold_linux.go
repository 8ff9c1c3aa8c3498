package proc

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// spawn starts a program from the thread that enter has restricted. A confined
// program is stopped before its first instruction, until release: the thread is
// in its domain, where one process may trace another, and must have ended first.
func (g *cage) spawn(path string, argv []string, attr *os.ProcAttr) (*os.Process, error) {
	p, err := os.StartProcess(path, argv, attr)
	if g.confinement == nil {
		return p, err
	}
	if errors.Is(err, unix.EPERM) {
		if g.group != nil {
			return nil, fmt.Errorf("ptrace is forbidden here, without which the program would run before it is in its control group: write sandbox: T1: %w", err)
		}
		// A debugger that follows the host's children has this one too.
		attr.Sys.Ptrace = false
		g.missing = append(g.missing, "it runs for a moment before its limits are set, and beside a thread of the host that it may trace (ptrace is forbidden here)")
		p, err = os.StartProcess(path, argv, attr)
	}
	if err != nil {
		return nil, err
	}
	if attr.Sys.Ptrace {
		hold(p.Pid)
	}
	if err := g.confinement.Leave(); err != nil {
		destroy(p)
		return nil, err
	}
	return p, nil
}

// hold ends the tracing of a process that stands before its first instruction,
// and leaves it stopped. One that was killed meanwhile needs neither.
func hold(pid int) {
	const stopped = unix.WSTOPPED | unix.WEXITED | unix.WNOWAIT
	for errors.Is(unix.Waitid(unix.P_PID, pid, nil, stopped, nil), unix.EINTR) {
	}
	_ = unix.Kill(pid, unix.SIGSTOP)
	_ = unix.PtraceDetach(pid)
}

// release lets a process that spawn has started run, under its limits.
func (g *cage) release(pid, thread int) error {
	limitCore(pid)
	if g.confinement == nil {
		return nil
	}
	if err := awaitThread(thread); err != nil {
		return err
	}
	if g.group != nil {
		if err := g.group.Add(pid); err != nil {
			return err
		}
	}
	if err := g.confinement.Limit(pid, g.group); err != nil {
		return err
	}
	_ = unix.Kill(pid, unix.SIGCONT) // it may have been killed
	return nil
}

// awaitThread waits for the end of a thread whose goroutine is about to end.
// Nothing says so but that it cannot be signalled any more.
func awaitThread(thread int) error {
	const patience = 5 * time.Second
	look, limit := time.NewTicker(20*time.Microsecond), time.NewTimer(patience)
	defer look.Stop()
	defer limit.Stop()
	for !errors.Is(unix.Tgkill(unix.Getpid(), thread, 0), unix.ESRCH) {
		select {
		case <-look.C:
		case <-limit.C:
			return fmt.Errorf("the thread that started the program has not ended in %s", patience)
		}
	}
	return nil
}
