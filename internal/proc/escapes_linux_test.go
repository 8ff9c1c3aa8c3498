package proc_test

import (
	"context"
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
	"github.com/grapnelhq/grapnel/phases"
)

// nobody is a user that owns nothing.
const nobody = 65534

// serveInChild lets a child do the work, as wrappers do.
func serveInChild() {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	cmd := exec.CommandContext(context.Background(), self, modeArg, "session")
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	_ = cmd.Run()
}

// escape starts a program in another session, without the mark, whose parent
// has gone: nothing leads from the plugin to it.
func escape(_, err *os.File) {
	if os.Args[len(os.Args)-1] == "no-tag" {
		_ = unix.Setrlimit(unix.RLIMIT_LOCKS, &unix.Rlimit{})
	}
	cmd := exec.CommandContext(context.Background(), "/bin/sh", "-c", "sleep 600 >/dev/null 2>&1 & echo $!")
	cmd.Env, cmd.SysProcAttr = []string{"PATH=/usr/bin:/bin"}, newSession()
	out, e := cmd.Output()
	_, _ = fmt.Fprintf(err, "escaped %s %v\n", strings.TrimSpace(string(out)), e)
}

// bomb forks as often as it is told, or until it may not any more, and tells
// how often it could. The children do nothing, and are killed.
func bomb(_, err *os.File) {
	size, e := strconv.Atoi(os.Args[3])
	if e != nil {
		panic(e)
	}
	var pids []int
	var failed error
	for len(pids) < size {
		pid, _, errno := unix.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
		if errno != 0 {
			failed = errno
			break
		}
		if pid == 0 { // only this thread exists here
			for {
				_, _, _ = unix.RawSyscall6(unix.SYS_PPOLL, 0, 0, 0, 0, 0, 0)
			}
		}
		pids = append(pids, int(pid))
	}
	for _, pid := range pids {
		_ = unix.Kill(pid, unix.SIGKILL)
		_, _ = unix.Wait4(pid, nil, 0, nil)
	}
	_, _ = fmt.Fprintf(err, "bomb %d %s\n", len(pids), outcome(failed))
}

// userHost is a host without root's powers: it starts a plugin in a mode and a
// tier, lets it do its worst, and prints what that says.
func userHost() {
	tier, err := sandbox.ParseTier(os.Args[5])
	if err != nil {
		panic(err)
	}
	dir, mode, arg := os.Args[3], os.Args[4], os.Args[6]
	lines := make(chan string, 1000)
	s := specFor(mode, arg)
	s.RuntimeDir = dir
	s.Log = func(l proc.LogLine) { lines <- l.Message }
	s.Sandbox = proc.Sandbox{Tier: tier, Policy: sandbox.Policy{Read: []string{"/"}, Limits: sandbox.Limits{Tasks: 64}}}
	p, err := proc.Start(context.Background(), s)
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	_ = syscall.Kill(p.PID(), syscall.SIGUSR1)
	for line := <-lines; line != "done"; line = <-lines {
		if strings.HasPrefix(line, mode) {
			fmt.Println(line)
		}
	}
	if err := p.Stop(context.Background()); err != nil {
		fmt.Println("error", err)
	}
}

// asNobody runs a host as another user and returns what it prints.
func asNobody(t *testing.T, mode string, tier sandbox.Tier, arg string) string {
	t.Helper()

	if os.Geteuid() != 0 {
		t.Skip("only root can become another user")
	}
	dir := hostDirectory(t, nobody)
	if arg == "" {
		arg = dir
	}
	cmd := exec.CommandContext(t.Context(), dir+"/tests", modeArg, "user-host", dir+"/run", mode, tier.String(), arg)
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return string(out)
}

// hostDirectory makes a directory for a host that is run as a user: the program
// "tests", a set-user-ID program of this user, and "run", which is the user's.
func hostDirectory(t *testing.T, uid int) string {
	t.Helper()

	dir, err := os.MkdirTemp("", "gt") //nolint:usetesting // a socket needs a short path
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "tests")
	for _, err := range []error{
		os.Chmod(dir, 0o755), os.WriteFile(program, self, 0o755), os.Mkdir(dir+"/run", 0o700), os.Chown(dir+"/run", uid, uid),
		os.WriteFile(dir+"/setuid", self, 0o755), os.Chmod(dir+"/setuid", 0o755|os.ModeSetuid),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestForkBomb(t *testing.T) {
	skipShort(t)
	needT1(t)
	// More than the limit can be: all tasks of this system, and what is added.
	data, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		t.Fatal(err)
	}
	var load float64
	var running, tasks int
	if _, err := fmt.Sscanf(string(data), "%f %f %f %d/%d", &load, &load, &load, &running, &tasks); err != nil {
		t.Fatal(err)
	}
	size := tasks + 400
	for _, tt := range []struct {
		tier sandbox.Tier
		want string
	}{{sandbox.T0, "ok"}, {sandbox.T1, "EAGAIN"}} {
		var done int
		var word string
		out := asNobody(t, "bomb", tt.tier, strconv.Itoa(size))
		if _, err := fmt.Sscanf(out, "bomb %d %s", &done, &word); err != nil || word != tt.want || (done == size) != (word == "ok") {
			t.Errorf("%s: %q, want %s; the bomb has the size %d", tt.tier, out, tt.want, size)
		}
	}
}

func TestSetUserIDProgramOfRoot(t *testing.T) {
	skipShort(t)
	needT1(t)
	for tier, want := range map[sandbox.Tier]string{sandbox.T0: "0", sandbox.T1: strconv.Itoa(nobody)} {
		if got := strings.TrimSpace(asNobody(t, "setuid", tier, "")); got != "setuid "+want {
			t.Errorf("%s: a set-user-ID program of root, started by another user: %q, want %s", tier, got, want)
		}
	}
}

// groups returns the control group below which tests make theirs, with limits
// that need no controller.
func groups(t *testing.T) (base string, none sandbox.Limits) {
	t.Helper()

	none = sandbox.Limits{Tasks: sandbox.NoLimit}
	base, _, err := sandbox.FindGroupBase("", none)
	if err != nil {
		t.Skip(err)
	}
	return base, none
}

func TestEscapeFromEverythingButTheGroup(t *testing.T) {
	needT1(t)
	base, limits := groups(t)
	read := sandbox.Policy{Read: []string{"/"}, Limits: limits}
	tests := []struct {
		name, arg string
		sandbox   proc.Sandbox
		escapes   bool
	}{
		{"T0", "", proc.Sandbox{}, false},
		{"T0, also from the tag", "no-tag", proc.Sandbox{}, true},
		{"T1", "", proc.Sandbox{Tier: sandbox.T1, Policy: read}, false},
		{"T2, also from the tag", "no-tag", proc.Sandbox{Tier: sandbox.T2, Groups: base, Policy: read}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := setup(t)
			spec := b.spec("escape", tt.arg)
			spec.Sandbox = tt.sandbox
			p := b.act(t, spec)
			var pid int
			if _, err := fmt.Sscanf(b.waitLine(t, "escaped ").Message, "escaped %d <nil>", &pid); err != nil {
				t.Fatal(err)
			}
			b.waitLine(t, "done")
			if err := syscall.Kill(p.PID(), syscall.SIGKILL); err != nil { // before anybody takes note of its children
				t.Fatal(err)
			}
			stop(t, p)
			if got := alive(pid); got != tt.escapes {
				t.Errorf("a process without group, mark and parent lives: %v, want %v", got, tt.escapes)
			}
			_ = syscall.Kill(pid, syscall.SIGKILL)
			group := filepath.Join(base, "grapnel-"+strings.ReplaceAll(p.Mark(), "/", "-"))
			if _, err := os.Stat(group); err == nil {
				t.Errorf("the control group %s is left", group)
			}
		})
	}
}

func TestPeerIsNotThePlugin(t *testing.T) {
	b := setup(t)
	s := b.set(t) // this process listens
	link := filepath.Join(s.Outside, "l")
	if err := os.Symlink(s.Unix, link); err != nil {
		t.Fatal(err)
	}
	for _, addr := range []string{s.Unix, link, s.Abstract} {
		_, err := proc.Start(t.Context(), b.spec("impostor", addr))
		if phases.CodeOf(err) != phases.CauseUnsafePath ||
			!strings.Contains(err.Error(), fmt.Sprintf("on which process %d listens", os.Getpid())) {
			t.Errorf("a plugin names the socket %s of another process: %v", addr, err)
		}
	}
}

func TestPeerIsADescendant(t *testing.T) {
	b := setup(t)
	p := b.start(t, b.spec("parent"))
	got, known := proc.Measure([]*proc.Process{p})
	if !known || got[0].Processes != 2 {
		t.Errorf("usage %+v, %v; want two processes", got, known)
	}
}

func TestMeasure(t *testing.T) {
	b := setup(t)
	quiet, busy := b.start(t, b.spec("serve")), b.start(t, b.spec("children"))
	pids := b.children(t)
	got, known := proc.Measure([]*proc.Process{busy, quiet})
	if !known || len(got) != 2 {
		t.Fatalf("Measure = %+v, %v", got, known)
	}
	if got[0].Processes != 1+len(pids) || got[1].Processes != 1 {
		t.Errorf("processes %d and %d, want %d and 1", got[0].Processes, got[1].Processes, 1+len(pids))
	}
	for i, u := range got {
		if u.RSS < 1<<20 || u.RSS > 1<<34 || u.Threads < u.Processes {
			t.Errorf("usage %d is %+v", i, u)
		}
	}
	stop(t, quiet)
	if got, _ := proc.Measure([]*proc.Process{quiet}); got[0] != (proc.Usage{}) {
		t.Errorf("a process that has ended uses %+v", got[0])
	}
	if got, known := proc.Measure(nil); len(got) != 0 || !known {
		t.Errorf("Measure(nil) = %+v, %v", got, known)
	}
}

// startFugitive starts a process that nothing leads to but its tag, and waits
// until that is so.
func startFugitive() {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	directory, _ := os.Getwd()
	cmd := exec.CommandContext(context.Background(), self, modeArg, "flee", directory)
	cmd.Env, cmd.SysProcAttr, cmd.Dir = []string{"A=B"}, newSession(), "/"
	out, e := cmd.Output()
	_, _ = fmt.Fprintf(os.Stderr, "%s%v\n", out, e)
}

// flee clears the death signal, starts itself once more in another session and
// ends. The second one locks the plugin's directory for as long as it lives, once
// the host does no longer.
func flee() {
	_ = unix.Prctl(unix.PR_SET_PDEATHSIG, 0, 0, 0, 0)
	if len(os.Args) == 4 {
		cmd := exec.CommandContext(context.Background(), "/proc/self/exe", modeArg, "flee", os.Args[3], "again")
		cmd.Env, cmd.SysProcAttr = []string{"A=B"}, newSession()
		if err := cmd.Start(); err != nil {
			fmt.Println("error", err)
			return
		}
		fmt.Println("fugitive", cmd.Process.Pid)
		return
	}
	fd, err := unix.Open(os.Args[3], unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err == nil {
		_ = unix.Flock(fd, unix.LOCK_EX)
	}
	block()
}
