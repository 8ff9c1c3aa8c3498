package proc_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/grapnelhq/grapnel/internal/proc"
	"github.com/grapnelhq/grapnel/internal/proc/sandbox"
)

// vandal starts a process that outlives its plugin: nothing leads to it, and it
// swaps directories of the private directory for links as fast as it can.
func vandal(_, stderr *os.File) {
	dir := os.Getenv("TMPDIR")
	_ = os.MkdirAll(filepath.Join(dir, "a/b/c"), 0o700)
	_ = os.Chmod(filepath.Join(dir, "a/b"), 0)
	_ = unix.Setrlimit(unix.RLIMIT_LOCKS, &unix.Rlimit{})
	cmd := exec.CommandContext(context.Background(), "/proc/self/exe", modeArg, "vandal-starter", dir, os.Args[3])
	cmd.Env, cmd.SysProcAttr, cmd.Dir = []string{"A=B"}, newSession(), "/"
	out, err := cmd.Output()
	_, _ = fmt.Fprintf(stderr, "%s %v\n", strings.TrimSpace(string(out)), err)
}

// startVandal starts it, waits until it has begun, and ends.
func startVandal() {
	cmd := exec.CommandContext(context.Background(), "/proc/self/exe", modeArg, "vandal-itself", os.Args[3], os.Args[4])
	cmd.Env, cmd.SysProcAttr = []string{"A=B"}, newSession()
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err == nil {
		_, err = out.Read(make([]byte, 1))
	}
	if err != nil {
		panic(err)
	}
	fmt.Println("vandal", cmd.Process.Pid)
}

// vandalise races until it is killed.
func vandalise() {
	dir, err := os.Open(os.Args[3])
	if err != nil {
		panic(err)
	}
	fmt.Println("begun")
	proc.Race(context.Background(), "/proc/self/fd/"+strconv.Itoa(int(dir.Fd())), os.Args[4])
}

// TestStopBesideVandal: a host that cleans up after a plugin changes nothing
// outside, whatever a surviving process does meanwhile, and the directory goes.
func TestStopBesideVandal(t *testing.T) {
	skipShort(t)
	proc.AsUsers(t, func(t *testing.T) {
		for _, tier := range []sandbox.Tier{sandbox.T0, sandbox.T1} {
			t.Run(tier.String(), func(t *testing.T) {
				if tier > sandbox.T0 {
					needT1(t)
				}
				out := proc.MakeOutside(t)
				b := setup(t)
				for range proc.Scaled(20) {
					stopBesideVandal(t, b, tier, out.Path())
					proc.Check(out, t)
				}
			})
		}
	})
}

func stopBesideVandal(t *testing.T, b *testBench, tier sandbox.Tier, target string) {
	t.Helper()

	spec := b.spec("vandal", target)
	spec.Sandbox = proc.Sandbox{Tier: tier, Policy: sandbox.Policy{Read: []string{"/"}}}
	p, err := proc.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(p.PID(), syscall.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	var pid int
	if _, err := fmt.Sscanf(b.waitLine(t, "vandal ").Message, "vandal %d <nil>", &pid); err != nil {
		t.Fatal(err)
	}
	b.waitLine(t, "done")
	handle, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(handle) }()
	if err := syscall.Kill(p.PID(), syscall.SIGKILL); err != nil { // before anybody notes its children
		t.Fatal(err)
	}
	stopped := p.Stop(t.Context())
	if errors.Is(stopped, proc.ErrAlive) { // on a busy machine
		stopped = p.Clear()
	}
	// In T1 it cannot drop the tag by which it is found.
	if got, want := alive(pid), tier == sandbox.T0; got != want {
		t.Errorf("the vandal is alive: %t", got)
	}
	_ = unix.PidfdSendSignal(handle, unix.SIGKILL, nil, 0)
	_, _ = unix.Poll([]unix.PollFd{{Fd: int32(handle), Events: unix.POLLIN}}, 10_000)
	if stopped != nil {
		if err := p.Clear(); err != nil {
			t.Errorf("after %v: %v", stopped, err)
		}
	}
}
