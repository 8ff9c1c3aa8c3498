package proc

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// maxSocketPath is the size of sun_path less its final zero.
const maxSocketPath = 107

// shortTemp is for sockets if the temporary directory has too long a path.
const shortTemp = "/tmp"

func canExecHandle() bool {
	_, err := os.Stat("/proc/self/fd")
	return err == nil
}

func requiredEnv() []string { return nil }

// identify is false for a file system that does not say what its files are.
func identify(info os.FileInfo) (fileID, bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return fileID{}, false
	}
	return fileID{
		device: uint64(st.Dev), inode: st.Ino, size: uint64(st.Size), //nolint:gosec,unconvert // sizes are not negative; Dev has other types elsewhere
		modified: st.Mtim.Nano(), changed: st.Ctim.Nano(),
	}, true
}

// sysProcAttr gives the child its own process group, out of reach of a terminal's keys, and has it killed when
// the thread that started it ends (not so for set-user-ID programs). A confined one is held until release.
func sysProcAttr(g *cage) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if g.confinement != nil {
		attr.Ptrace = true
		if !g.confinement.DeathSignal() {
			attr.Pdeathsig = 0
		}
	}
	return attr
}

// withoutStrays adds nil entries, which close the host's own descriptors in the child. Go opens files
// close-on-exec; C libraries, and whoever started the host, may not have.
func withoutStrays(files []*os.File) []*os.File {
	dir, err := os.Open("/proc/self/fd")
	if err != nil {
		return files
	}
	defer closeQuietly(dir)
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return files
	}
	last := 0
	for _, name := range names {
		fd, err := strconv.Atoi(name)
		if err != nil || fd < len(files) || fd <= last {
			continue
		}
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil && flags&unix.FD_CLOEXEC == 0 {
			last = fd
		}
	}
	if last == 0 {
		return files
	}
	return append(files, make([]*os.File, last+1-len(files))...)
}

func signalGroup(pid int, sig syscall.Signal) { _ = unix.Kill(-pid, sig) }

// awaitEnd waits for the end of a child. It calls last before the reaping, while the number still means its group.
func awaitEnd(p *os.Process, last func()) *os.ProcessState {
	for errors.Is(unix.Waitid(unix.P_PID, p.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil), unix.EINTR) {
	}
	last()
	state, err := p.Wait()
	if err != nil {
		return nil
	}
	return state
}

// onMainThread reports whether the calling thread is the process's first, whose end would not be noticed.
func onMainThread() bool { return threadID() == unix.Getpid() }
func threadID() int      { return unix.Gettid() }

// limitCore forbids core dumps to a new process. 1, unlike 0, also stops dumps that the system pipes to a program.
func limitCore(pid int) {
	_ = unix.Prlimit(pid, unix.RLIMIT_CORE, &unix.Rlimit{Cur: 1, Max: 1}, nil)
}

func ownPeak() int64 {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return u.Maxrss * 1024
}

// peakOf returns the peak memory of an ended process or of one that it waited for.
func peakOf(state *os.ProcessState) int64 {
	if state == nil {
		return 0
	}
	if u, ok := state.SysUsage().(*syscall.Rusage); ok {
		return u.Maxrss * 1024
	}
	return 0
}

// oomKills counts the system's memory kills since its start; 0 if it does not say.
func oomKills() int {
	data, err := os.ReadFile("/proc/vmstat")
	if err != nil {
		return 0
	}
	_, rest, _ := bytes.Cut(data, []byte("\noom_kill "))
	line, _, _ := bytes.Cut(rest, []byte{'\n'})
	n, err := strconv.Atoi(string(line))
	if err != nil {
		return 0
	}
	return n
}

// spawn starts a program from a thread that enter has restricted. A confined program is stopped before its
// first instruction until release, because the thread, which it could trace, must have ended first.
func (g *cage) spawn(path string, argv []string, attr *os.ProcAttr) (*os.Process, error) {
	p, err := os.StartProcess(path, argv, attr)
	if g.confinement == nil {
		return p, err
	}
	if errors.Is(err, unix.EPERM) {
		if g.group != nil {
			return nil, fmt.Errorf("ptrace is forbidden here, without which the program would run before it is in its control group: write sandbox: T1: %w", err)
		}
		// A debugger that follows the host's children holds this one too.
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

// hold ends the tracing of a process before its first instruction and leaves it stopped, unless it was killed.
func hold(pid int) {
	const stopped = unix.WSTOPPED | unix.WEXITED | unix.WNOWAIT
	for errors.Is(unix.Waitid(unix.P_PID, pid, nil, stopped, nil), unix.EINTR) {
	}
	_ = unix.Kill(pid, unix.SIGSTOP)
	_ = unix.PtraceDetach(pid)
}

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

// awaitThread waits for the end of a thread. Only a failing signal shows it.
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
