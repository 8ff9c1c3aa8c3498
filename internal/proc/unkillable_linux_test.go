package proc_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/grapnelhq/grapnel/internal/proc"
	"github.com/grapnelhq/grapnel/internal/proc/sandbox"
	"github.com/grapnelhq/grapnel/phases"
)

// unkillableModes are plugins that try to outlive their host's patience.
func unkillableModes() map[string]func() {
	return map[string]func(){
		"leave-group":       func() { signal.Ignore(syscall.SIGTERM); after(func() { serve(); block() }, leaveGroup) },
		"leave-group-early": func() { signal.Ignore(syscall.SIGTERM); leaveGroup(os.Stdout, os.Stderr); block() },
		"clone-parent":      func() { after(serve, cloneParent) },
		"fuse":              func() { after(serve, holdFUSE) },
	}
}

// leaveGroup leaves the group that the plugin leads: for its child's group, or for
// that of the host.
func leaveGroup(_, err *os.File) {
	group, e := syscall.Getpgid(os.Getppid())
	if os.Args[3] == "child" {
		self, _ := os.Executable()
		cmd := exec.CommandContext(context.Background(), self, modeArg, "sleeper")
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		e = cmd.Start()
		group = cmd.Process.Pid
		_, _ = fmt.Fprintln(err, "child", group)
	}
	_, _ = fmt.Fprintln(err, "left", errors.Join(e, syscall.Setpgid(0, group)))
}

// inTiers runs a test without a sandbox and in a control group; with GRAPNEL_LONG=1 also in T1, which kills as T0 does.
func inTiers(t *testing.T, test func(t *testing.T, how proc.Sandbox)) {
	for _, tier := range []sandbox.Tier{sandbox.T0, sandbox.T1, sandbox.T2} {
		if tier == sandbox.T1 && !proc.Long() {
			continue
		}
		t.Run(tier.String(), func(t *testing.T) {
			how := proc.Sandbox{Tier: tier, Policy: sandbox.Policy{Read: []string{"/"}}}
			if tier > sandbox.T0 {
				needT1(t)
			}
			if tier == sandbox.T2 {
				how.Groups, how.Policy.Limits = groups(t)
			}
			test(t, how)
		})
	}
}

// TestPluginLeavesItsGroup: a plugin is killed wherever it has gone, and with it
// neither the host nor anybody of the host's group.
func TestPluginLeavesItsGroup(t *testing.T) {
	t.Parallel()

	for _, to := range []string{"child", "host"} {
		t.Run("for the group of its "+to, func(t *testing.T) {
			t.Parallel()

			inTiers(t, func(t *testing.T, how proc.Sandbox) {
				b := setupParallel(t)
				bystander := exec.CommandContext(t.Context(), "/bin/sleep", "600") // in the host's group
				if err := bystander.Start(); err != nil {
					t.Fatal(err)
				}
				defer func() { _ = bystander.Process.Kill(); _ = bystander.Wait() }()
				spec := b.spec("leave-group", to)
				spec.Sandbox = how
				p := b.act(t, spec)
				if line := b.waitLine(t, "left").Message; line != "left <nil>" {
					t.Fatal(line)
				}
				stop(t, p)
				if alive(p.PID()) {
					t.Error("the plugin lives")
					_ = syscall.Kill(p.PID(), syscall.SIGKILL)
				}
				if !alive(bystander.Process.Pid) {
					t.Error("a process of the host's group was killed")
				}
			})
		})
	}
}

// TestPluginLeavesItsGroupBeforeTheHandshake: a start that fails leaves nothing.
func TestPluginLeavesItsGroupBeforeTheHandshake(t *testing.T) {
	t.Parallel()

	inTiers(t, func(t *testing.T, how proc.Sandbox) {
		b := setupParallel(t)
		spec := b.spec("leave-group-early", "child")
		spec.Sandbox = how
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		spec.Log = func(l proc.LogLine) {
			if l.Message == "left <nil>" {
				cancel()
			}
		}
		pid := 0
		spec.Spawned = func(p *proc.Process) { pid = p.PID() }
		_, err := proc.Start(ctx, spec)
		if phases.CodeOf(err) != phases.CauseCancelled {
			t.Error(phases.Whole(err))
		}
		if alive(pid) {
			t.Error("the plugin lives")
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	})
}

// cloneParent starts processes whose parent is the host and that end at once, and one
// that stays.
func cloneParent(_, err *os.File) {
	var failed error
	for i := range 101 {
		pid, _, errno := unix.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD)|unix.CLONE_PARENT, 0, 0, 0, 0, 0)
		if errno != 0 {
			failed = errno
			break
		}
		if pid == 0 { // only this thread exists here
			for i == 0 {
				_, _, _ = unix.RawSyscall6(unix.SYS_PPOLL, 0, 0, 0, 0, 0, 0)
			}
			_, _, _ = unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
		}
	}
	_, _ = fmt.Fprintln(err, "cloned", failed)
}

// TestSiblingsAreReaped: what a plugin makes a child of its host's is reaped while the
// plugin runs. The host's own children are left to it.
func TestSiblingsAreReaped(t *testing.T) {
	inTiers(t, func(t *testing.T, how proc.Sandbox) {
		b := setup(t)
		own := exec.CommandContext(t.Context(), "/bin/sh", "-c", "exit 7")
		if err := own.Start(); err != nil {
			t.Fatal(err)
		}
		spec := b.spec("clone-parent")
		spec.Sandbox = how
		p := b.act(t, spec)
		if line := b.waitLine(t, "cloned").Message; line != "cloned <nil>" {
			t.Fatal(line)
		}
		eventually(t, "zombies", func() string {
			proc.Measure([]*proc.Process{p})
			if z := zombies(t); len(z) != 1 || z[0] != own.Process.Pid {
				return fmt.Sprint(z)
			}
			return ""
		})
		exit := new(exec.ExitError)
		if err := own.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 7 {
			t.Errorf("the host's own child: %v", err)
		}
		stop(t, p)
		if z := zombies(t); len(z) > 0 {
			t.Errorf("left: %v", z)
		}
	})
}

// zombies lists children of this process that have ended and were not reaped.
func zombies(t *testing.T) (pids []int) {
	t.Helper()

	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range stats {
		pid := 0
		data, _ := os.ReadFile(path)
		if _, err := fmt.Sscan(string(data), &pid); err == nil && bytes.Contains(data, fmt.Appendf(nil, ") Z %d ", os.Getpid())) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// holdFUSE mounts a file system that never answers, in a mount namespace of its own,
// and holds it by a descriptor that opens nothing.
func holdFUSE(_, err *os.File) {
	runtime.LockOSThread()
	dir, e := os.MkdirTemp("", "f")
	device, e2 := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0)
	e = errors.Join(e, e2, unix.Unshare(unix.CLONE_NEWNS), unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""))
	e = errors.Join(e, unix.Mount("x", dir, "fuse.x", 0, fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0", device)))
	if e == nil {
		_, e = unix.Open(dir, unix.O_PATH, 0)
	}
	_, _ = fmt.Fprintln(err, "mounted", strings.ReplaceAll(fmt.Sprint(e), "\n", "; "))
}

// TestFileSystemThatNeverAnswers: looking at what a plugin has open asks no file system
// of the plugin's.
func TestFileSystemThatNeverAnswers(t *testing.T) {
	if _, err := os.Stat("/dev/fuse"); err != nil || os.Geteuid() != 0 {
		t.Skip("takes root and /dev/fuse", err)
	}
	b := setup(t)
	spec := b.spec("fuse")
	spec.Sandbox.Policy.Limits.Memory = 1 << 20 // everything is looked at
	p := b.act(t, spec)
	if line := b.waitLine(t, "mounted").Message; line != "mounted <nil>" {
		t.Skip(line)
	}
	pid, looked, stopped := p.PID(), make(chan bool, 1), make(chan error, 1)
	go func() { proc.Measure([]*proc.Process{p}); looked <- true }()
	select {
	case <-looked:
	case <-time.After(patience):
		t.Error("the look hangs")
	}
	go func() { stopped <- p.Stop(context.Background()) }()
	select {
	case err := <-stopped:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(patience):
		t.Error("Stop hangs")
		_ = syscall.Kill(pid, syscall.SIGKILL)
		t.Log(<-stopped)
	}
}

// freeze keeps a process from running, and so from dying, until the function is called
// that it returns.
func freeze(t *testing.T, pid int) (thaw func()) {
	t.Helper()

	group, err := os.MkdirTemp("/sys/fs/cgroup/freezer", "grapnel-test-") //nolint:usetesting // a control group
	if err != nil {
		t.Skip("takes root and the freezer of the first version:", err)
	}
	set := func(name, value string) {
		if err := os.WriteFile(filepath.Join(group, name), []byte(value), 0); err != nil {
			t.Error(err)
		}
	}
	set("cgroup.procs", strconv.Itoa(pid))
	set("freezer.state", "FROZEN")
	eventually(t, "not frozen", func() string {
		state, _ := os.ReadFile(filepath.Join(group, "freezer.state"))
		return strings.TrimPrefix(string(state), "FROZEN\n")
	})
	thaw = sync.OnceFunc(func() { set("freezer.state", "THAWED") })
	t.Cleanup(func() {
		thaw()
		eventually(t, "control group", func() string { return strings.TrimPrefix(fmt.Sprint(os.Remove(group)), "<nil>") })
	})
	return thaw
}

// TestProcessThatCannotBeKilled: what it has started does not wait for it, Stop says that
// it lives, and Clear that it does not any more.
func TestProcessThatCannotBeKilled(t *testing.T) {
	b := setupParallel(t)
	p, err := proc.Start(t.Context(), b.spec("children"))
	if err != nil {
		t.Fatal(err)
	}
	pids := b.children(t)
	thaw := freeze(t, p.PID())
	if err := p.Stop(t.Context()); !errors.Is(err, proc.ErrAlive) {
		t.Errorf("Stop = %v", err)
	}
	b.checkDead(t, pids)
	if err := p.Clear(); !errors.Is(err, proc.ErrAlive) {
		t.Errorf("Clear = %v", err)
	}
	thaw()
	<-p.Done()
	if err := p.Clear(); err != nil {
		t.Error(phases.Whole(err))
	}
}
