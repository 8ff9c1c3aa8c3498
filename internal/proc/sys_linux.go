package proc

import (
	"bytes"
	"errors"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// maxSocketPath is the size of sun_path less its final zero.
const maxSocketPath = 107

// shortTemp is where sockets go when the temporary folder has too long a path.
const shortTemp = "/tmp"

// Missing lists the protections that this system does not give, in words for
// people. It is empty on Linux with /proc.
func Missing() []string {
	if canExecHandle() {
		return nil
	}
	return []string{
		"programs are executed by path, not by the handle that was checked (no /proc)",
		"descendants outside the process group are not found (no /proc)",
	}
}

// canExecHandle reports whether a file can be executed by its descriptor.
func canExecHandle() bool {
	_, err := os.Stat("/proc/self/fd")
	return err == nil
}

// requiredEnv lists variables without which no program works here: none.
func requiredEnv() []string { return nil }

// sysProcAttr makes the child the leader of its own process group, so that the
// keys of a terminal do not reach it, and has it killed when the thread that
// started it ends. The system forgets the latter for a set-user-ID program. If it is
// confined it is held until release.
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

// withoutStrays adds to a child's files what closes the host's own descriptors
// in it. Go opens everything so that children do not get it; C libraries, and
// whoever started the host, may not have. An entry that is nil is closed.
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

// signalGroup signals the process group that pid leads.
func signalGroup(pid int, sig syscall.Signal) { _ = unix.Kill(-pid, sig) }

// awaitEnd waits for the end of a child and returns its state. It calls last
// between the end and the reaping, while the child's number still means its
// group.
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

// onMainThread reports whether the calling thread is the process's first. The
// death signal and restrictions stick to a thread, and the first is special.
func onMainThread() bool { return threadID() == unix.Getpid() }

// threadID returns the number of the calling thread.
func threadID() int { return unix.Gettid() }

// limitCore forbids core dumps to a process that has just begun. The limit is
// 1, not 0: it stops files as 0 does, and it is the only value that also stops
// a program to which the system pipes dumps.
func limitCore(pid int) {
	_ = unix.Prlimit(pid, unix.RLIMIT_CORE, &unix.Rlimit{Cur: 1, Max: 1}, nil)
}

// ownPeak returns the most resident memory that this process has held.
func ownPeak() int64 {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return u.Maxrss * 1024
}

// peakOf returns the most resident memory that a process which has ended held,
// or one that it waited for.
func peakOf(state *os.ProcessState) int64 {
	if state == nil {
		return 0
	}
	if u, ok := state.SysUsage().(*syscall.Rusage); ok {
		return u.Maxrss * 1024
	}
	return 0
}

// oomKills counts the processes that the system has killed for memory since
// it began; 0 if it does not say.
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
