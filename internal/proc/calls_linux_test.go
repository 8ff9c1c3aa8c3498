package proc_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/grapnelhq/grapnel/internal/proc"
	"github.com/grapnelhq/grapnel/internal/sandbox"
)

// scratch and area lie at the same address in all processes of the test binary,
// and do not move: what one of them writes into another is seen there.
var (
	scratch [8]byte
	area    [64]uint64
)

// place puts words into the area, at one of four places, and returns where.
func place(i int, words ...uint64) uintptr {
	there := area[16*i : 16*(i+1)]
	clear(there)
	copy(there, words)
	return uintptr(unsafe.Pointer(&there[0]))
}

// verdict is what tier T1 makes of a system call that takes the number of a
// process.
type verdict int

const (
	selfOnly verdict = iota // refused unless the number is 0
	refused                 // always
	inside                  // the domain's own processes only, by Landlock
	children                // own children only, by the kernel
	getter                  // anybody, and nothing but what ps shows
)

// processCall is such a call.
type processCall struct {
	name    string
	verdict verdict
	do      func(pid int) error
	// ofUser says that it concerns all processes of the user: root is left alone.
	ofUser bool
}

// number makes a call from a number and arguments.
func number(call uintptr, args ...uintptr) error {
	args = append(args, make([]uintptr, 6)...)
	_, _, errno := unix.Syscall6(call, args[0], args[1], args[2], args[3], args[4], args[5])
	return noError(errno)
}

// withHandle makes a call on the handle of a process.
func withHandle(pid int, do func(handle int) error) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return err
	}
	return errors.Join(do(fd), unix.Close(fd))
}

// changes are the calls that change another process.
func changes() []processCall {
	const (
		batch, idle, ioIdle        = 3, 5, 3 << 13
		ofProcess, ofGroup, ofUser = 1, 2, 3
	)
	return []processCall{
		{name: "prlimit64", do: func(pid int) error {
			return unix.Prlimit(pid, unix.RLIMIT_STACK, &unix.Rlimit{Cur: 5 << 20, Max: unix.RLIM_INFINITY}, nil)
		}},
		{name: "sched_setscheduler", do: func(pid int) error {
			return number(unix.SYS_SCHED_SETSCHEDULER, uintptr(pid), batch, place(0))
		}},
		{name: "sched_setparam", do: func(pid int) error {
			return number(unix.SYS_SCHED_SETPARAM, uintptr(pid), place(0))
		}},
		{name: "sched_setattr", do: func(pid int) error {
			return unix.SchedSetAttr(pid, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: batch, Nice: 19}, 0)
		}},
		{name: "sched_setaffinity", do: func(pid int) error {
			return number(unix.SYS_SCHED_SETAFFINITY, uintptr(pid), 16, place(0, 1))
		}},
		{name: "setpriority", do: func(pid int) error { return unix.Setpriority(unix.PRIO_PROCESS, pid, 19) }},
		{name: "setpriority of a group", verdict: refused, do: func(pid int) error {
			group, err := unix.Getpgid(pid)
			return errors.Join(err, unix.Setpriority(unix.PRIO_PGRP, group, 6))
		}},
		{name: "setpriority of the user", verdict: refused, ofUser: true, do: func(int) error { return unix.Setpriority(unix.PRIO_USER, os.Getuid(), 7) }},
		{name: "ioprio_set", do: func(pid int) error { return number(unix.SYS_IOPRIO_SET, ofProcess, uintptr(pid), ioIdle) }},
		{name: "ioprio_set of a group", verdict: refused, do: func(pid int) error {
			group, err := unix.Getpgid(pid)
			return errors.Join(err, number(unix.SYS_IOPRIO_SET, ofGroup, uintptr(group), ioIdle))
		}},
		{name: "ioprio_set of the user", verdict: refused, ofUser: true, do: func(int) error {
			return number(unix.SYS_IOPRIO_SET, ofUser, uintptr(os.Getuid()), ioIdle)
		}},
		{name: "setpgid", verdict: children, do: func(pid int) error { return unix.Setpgid(pid, pid) }},
		{name: "waitid", verdict: children, do: func(pid int) error {
			return unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
		}},
		{name: "wait4", verdict: children, do: func(pid int) error { _, err := unix.Wait4(pid, nil, unix.WNOHANG, nil); return err }},
	}
}

// intrusions are the calls that signal, trace, read or write another process.
func intrusions() []processCall {
	here := uintptr(unsafe.Pointer(&scratch))
	return []processCall{
		{name: "kill", verdict: inside, do: func(pid int) error { return unix.Kill(pid, 0) }},
		{name: "kill of a group", verdict: inside, do: func(pid int) error {
			group, err := unix.Getpgid(pid)
			return errors.Join(err, unix.Kill(-group, 0))
		}},
		{name: "tkill", verdict: inside, do: func(pid int) error { return number(unix.SYS_TKILL, uintptr(pid), 0) }},
		{name: "tgkill", verdict: inside, do: func(pid int) error { return unix.Tgkill(pid, pid, 0) }},
		{name: "rt_sigqueueinfo", verdict: inside, do: func(pid int) error {
			return number(unix.SYS_RT_SIGQUEUEINFO, uintptr(pid), 0, place(0, 0, 1<<32-1))
		}},
		{name: "rt_tgsigqueueinfo", verdict: inside, do: func(pid int) error {
			return number(unix.SYS_RT_TGSIGQUEUEINFO, uintptr(pid), uintptr(pid), 0, place(0, 0, 1<<32-1))
		}},
		{name: "pidfd_send_signal", verdict: inside, do: func(pid int) error {
			return withHandle(pid, func(handle int) error { return unix.PidfdSendSignal(handle, 0, nil, 0) })
		}},
		{name: "pidfd_getfd", verdict: inside, do: func(pid int) error {
			return withHandle(pid, func(handle int) error {
				fd, err := unix.PidfdGetfd(handle, 0, 0)
				_ = unix.Close(fd)
				return err
			})
		}},
		{name: "process_vm_readv", verdict: inside, do: readMemory},
		{name: "process_vm_writev", verdict: inside, do: func(pid int) error {
			data := [8]byte{1}
			_, err := unix.ProcessVMWritev(pid, []unix.Iovec{{Base: &data[0], Len: 8}}, []unix.RemoteIovec{{Base: here, Len: 8}}, 0)
			return err
		}},
		{name: "kcmp", verdict: inside, do: func(pid int) error { return number(unix.SYS_KCMP, uintptr(os.Getpid()), uintptr(pid), 1) }},
		{name: "get_robust_list", verdict: inside, do: func(pid int) error {
			return number(unix.SYS_GET_ROBUST_LIST, uintptr(pid), place(0), place(1))
		}},
		{name: "move_pages", verdict: inside, do: func(pid int) error {
			return number(unix.SYS_MOVE_PAGES, uintptr(pid), 1, place(0, uint64(here)), place(1), place(2))
		}},
		{name: "migrate_pages", verdict: inside, do: func(pid int) error {
			return number(unix.SYS_MIGRATE_PAGES, uintptr(pid), 64, place(0, 1), place(1, 1))
		}},
		{name: "prctl(PR_SCHED_CORE)", verdict: inside, do: func(pid int) error {
			return unix.Prctl(unix.PR_SCHED_CORE, unix.PR_SCHED_CORE_GET, uintptr(pid), 0, place(0))
		}},
		{name: "ptrace", verdict: inside, do: trace},
	}
}

// readMemory reads from another process or thread of the test binary.
func readMemory(id int) error {
	var data [8]byte
	here := uintptr(unsafe.Pointer(&scratch))
	_, err := unix.ProcessVMReadv(id, []unix.Iovec{{Base: &data[0], Len: 8}}, []unix.RemoteIovec{{Base: here, Len: 8}}, 0)
	return err
}

// trace seizes a process and lets go of it.
func trace(pid int) error {
	if err := unix.PtraceSeize(pid); err != nil {
		return err
	}
	_ = unix.PtraceInterrupt(pid)
	_, err := unix.Wait4(pid, nil, unix.WALL, nil)
	return errors.Join(err, unix.PtraceDetach(pid))
}

// getters are the calls that read what ps shows.
func getters() []processCall {
	there := place(3)
	list := []processCall{
		{name: "getpriority", do: func(pid int) error { _, err := unix.Getpriority(unix.PRIO_PROCESS, pid); return err }},
		{name: "ioprio_get", do: func(pid int) error { return number(unix.SYS_IOPRIO_GET, 1, uintptr(pid)) }},
		{name: "sched_getscheduler", do: func(pid int) error { return number(unix.SYS_SCHED_GETSCHEDULER, uintptr(pid)) }},
		{name: "sched_getparam", do: func(pid int) error { return number(unix.SYS_SCHED_GETPARAM, uintptr(pid), there) }},
		{name: "sched_getattr", do: func(pid int) error { return number(unix.SYS_SCHED_GETATTR, uintptr(pid), there, 48, 0) }},
		{name: "sched_rr_get_interval", do: func(pid int) error { return number(unix.SYS_SCHED_RR_GET_INTERVAL, uintptr(pid), there) }},
		{name: "sched_getaffinity", do: func(pid int) error { return number(unix.SYS_SCHED_GETAFFINITY, uintptr(pid), 64, there) }},
		{name: "getpgid", do: func(pid int) error { _, err := unix.Getpgid(pid); return err }},
		{name: "getsid", do: func(pid int) error { _, err := unix.Getsid(pid); return err }},
		{name: "capget", do: func(pid int) error {
			return number(unix.SYS_CAPGET, place(0, unix.LINUX_CAPABILITY_VERSION_3|uint64(pid)<<32), there)
		}},
		{name: "clock_gettime of the process", do: func(pid int) error { return number(unix.SYS_CLOCK_GETTIME, uintptr(^pid<<3|2), there) }},
		{name: "pidfd_open", do: func(pid int) error { return withHandle(pid, func(int) error { return nil }) }},
	}
	for i := range list {
		list[i].verdict = getter
	}
	return list
}

// processCalls are all calls that take the number of a process.
func processCalls() []processCall {
	return append(append(changes(), intrusions()...), getters()...)
}

// callAll makes each call on the host, on another plugin, on a child of its own
// and on itself, and says what came of it.
func callAll(_, log *os.File) {
	runtime.LockOSThread() // one thread traces
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	child := exec.CommandContext(context.Background(), self, modeArg, "sleeper")
	up, err := child.StdoutPipe()
	if err == nil {
		err = child.Start()
	}
	if err == nil {
		_, err = up.Read(make([]byte, 1)) // its memory is there
	}
	if err != nil {
		panic(err)
	}
	other, err := strconv.Atoi(os.Args[3])
	if err != nil {
		panic(err)
	}
	for _, c := range processCalls() {
		if c.ofUser && os.Getuid() == 0 {
			continue
		}
		for _, to := range []struct {
			name string
			pid  int
		}{{"host", os.Getppid()}, {"plugin", other}, {"child", child.Process.Pid}, {"itself", 0}} {
			_, _ = fmt.Fprintf(log, "call %s|%s|%s\n", c.name, to.name, outcome(c.do(to.pid)))
		}
	}
	_ = child.Process.Kill()
	_ = child.Wait()
}

// state is all of a process that other processes can change by those calls.
func state(pid int) string {
	var limit unix.Rlimit
	_ = unix.Prlimit(pid, unix.RLIMIT_STACK, nil, &limit)
	nice, _ := unix.Getpriority(unix.PRIO_PROCESS, pid)
	attr, _ := unix.SchedGetAttr(pid, 0)
	var cpus unix.CPUSet
	_ = unix.SchedGetaffinity(pid, &cpus)
	io, _, _ := unix.Syscall(unix.SYS_IOPRIO_GET, 1, uintptr(pid), 0)
	return fmt.Sprint(limit, nice, *attr, cpus.Count(), io, scratch)
}

// callsHost is a host of two plugins, of which one makes all calls.
func callsHost() {
	tier, err := sandbox.ParseTier(os.Args[4])
	if err != nil {
		panic(err)
	}
	lines := make(chan string, 1000)
	start := func(mode string, args ...string) *proc.Process {
		s := specFor(mode, args...)
		s.RuntimeDir, s.LogRate = os.Args[3], 1000
		s.Log = func(l proc.LogLine) { lines <- l.Message }
		s.Sandbox = proc.Sandbox{Tier: tier, Groups: os.Args[5], Policy: sandbox.Policy{Read: []string{"/"}, Limits: sandbox.Limits{Tasks: sandbox.NoLimit}}}
		p, err := proc.Start(context.Background(), s)
		if err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
		return p
	}
	other := start("serve")
	attacker := start("calls", strconv.Itoa(other.PID()))
	before := state(0) + state(other.PID())
	_ = syscall.Kill(attacker.PID(), syscall.SIGUSR1)
	for line := ""; line != "done"; {
		select {
		case line = <-lines:
			if strings.HasPrefix(line, "call ") {
				fmt.Println(line)
			}
		case <-attacker.Done():
			fmt.Println("error: the plugin has ended:", attacker.Exit())
			line = "done"
		}
	}
	fmt.Println("unchanged", state(0)+state(other.PID()) == before)
	for _, p := range []*proc.Process{attacker, other} {
		if err := p.Stop(context.Background()); err != nil {
			fmt.Println("error", err)
		}
	}
}

// callsAs runs callsHost as a user and returns the outcomes by call and target,
// and whether host and other plugin are as they were.
func callsAs(t *testing.T, uid uint32, tier sandbox.Tier, groups string) (outcomes map[string]string, unchanged bool) {
	t.Helper()

	dir := hostDirectory(t, int(uid))
	cmd := exec.CommandContext(t.Context(), filepath.Join(dir, "tests"), modeArg, "calls-host", dir+"/run", tier.String(), groups)
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if os.Getuid() == 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uid, Gid: uid}
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	outcomes = map[string]string{}
	for scanner := bufio.NewScanner(strings.NewReader(string(out))); scanner.Scan(); {
		line, called := strings.CutPrefix(scanner.Text(), "call ")
		switch i := strings.LastIndexByte(line, '|'); {
		case called && i > 0:
			outcomes[line[:i]] = line[i+1:]
		case line == "unchanged true":
			unchanged = true
		case line != "unchanged false":
			t.Log(line)
		}
	}
	return outcomes, unchanged
}

// holds reports whether the outcome of a call on a target is what it must be in
// T1, given the one without the sandbox.
func (v verdict) holds(target, without, with string) bool {
	other := target == "host" || target == "plugin"
	switch {
	case v == children:
		return with == without && (with != "ok" || !other)
	case without != "ok": // not there, or not for this user
		return with != "ok"
	case v == refused, v == selfOnly && target != "itself", v == inside && other:
		return with == "EPERM"
	case v == inside && target == "itself": // 0 means something else, or nothing
		return true
	}
	return with == "ok"
}

// TestProcessCalls makes every system call that takes the number of a process,
// and looks at what it has done to the host and to another plugin.
func TestProcessCalls(t *testing.T) {
	needT1(t)
	users := map[string]uint32{"nobody": nobody, "root": 0}
	if os.Getuid() != 0 {
		users = map[string]uint32{"this user": uint32(os.Getuid())}
	}
	for name, uid := range users {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			free, unchanged := callsAs(t, uid, sandbox.T0, "")
			if unchanged {
				t.Error("without the sandbox, nothing was changed: the calls are none")
			}
			t.Run("T1", func(t *testing.T) { checkCalls(t, uid, sandbox.T1, "", free) })
			t.Run("T2", func(t *testing.T) {
				base, _ := groups(t)
				if uid != 0 {
					t.Skip("the control group is not delegated to this user")
				}
				checkCalls(t, uid, sandbox.T2, base, free)
			})
		})
	}
}

// checkCalls compares the outcomes in a tier with the verdicts.
func checkCalls(t *testing.T, uid uint32, tier sandbox.Tier, groups string, free map[string]string) {
	t.Helper()

	got, unchanged := callsAs(t, uid, tier, groups)
	if !unchanged {
		t.Error("the host, or the other plugin, is not what it was")
	}
	if len(got) != len(free) || len(got) < 4*(len(processCalls())-2) {
		t.Errorf("%d outcomes, %d without the sandbox, of %d calls", len(got), len(free), len(processCalls()))
	}
	for _, c := range processCalls() {
		for _, target := range []string{"host", "plugin", "child", "itself"} {
			key := c.name + "|" + target
			if without, with := free[key], got[key]; !c.verdict.holds(target, without, with) {
				t.Errorf("%s: %s, without the sandbox %s", key, with, without)
			}
		}
	}
}
