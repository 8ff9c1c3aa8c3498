package proc_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/grapnelhq/grapnel/internal/proc"
	"github.com/grapnelhq/grapnel/phases"
)

// testBench is what one test of a real process needs: a directory for it and its log.
type testBench struct {
	dir   string
	lines chan proc.LogLine
}

// setup makes a bench and checks at the end of the test that nothing is left of the
// processes that it started. It counts the goroutines and descriptors of the whole test
// process: the test must not run in parallel with others.
func setup(t *testing.T) *testBench {
	t.Helper()

	b := newBench(t)
	files, ignore := openFiles(t), goleak.IgnoreCurrent()
	t.Cleanup(func() {
		goleak.VerifyNone(t, ignore)
		b.checkNothingLeft(t)
		checkFiles(t, files)
		eventually(t, "processes left", func() string {
			return strings.Join(processesWith(t, fmt.Sprintf("GRAPNEL_MARK=%d.", os.Getpid()), true), " ")
		})
	})
	return b
}

// setupParallel is setup for a test that mostly waits: it runs in parallel with others
// and checks only its own directory and processes. TestMain looks for goroutines.
func setupParallel(t *testing.T) *testBench {
	t.Helper()

	t.Parallel()
	b := newBench(t)
	t.Cleanup(func() {
		b.checkNothingLeft(t)
		eventually(t, "processes left", func() string {
			return strings.Join(processesWith(t, "PLUGIN_UNIX_SOCKET_DIR="+b.dir, false), " ")
		})
	})
	return b
}

func newBench(t *testing.T) *testBench {
	t.Helper()

	dir, err := os.MkdirTemp("", "gt") //nolint:usetesting // a socket needs a short path
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return &testBench{dir: dir, lines: make(chan proc.LogLine, 10_000)}
}

// spec is the spec of a mode of the test binary, wired to the bench.
func (b *testBench) spec(mode string, args ...string) proc.Spec {
	s := specFor(mode, args...)
	s.RuntimeDir = b.dir
	s.Grace = 400 * time.Millisecond
	s.LogRate = 1000
	s.Log = func(l proc.LogLine) { b.lines <- l }
	return s
}

// patience is how long a test waits for what must happen, also on a busy machine.
const patience = 2 * time.Minute

// waitLine returns the next line whose message has the prefix.
func (b *testBench) waitLine(t *testing.T, prefix string) proc.LogLine {
	t.Helper()

	for {
		select {
		case l := <-b.lines:
			if strings.HasPrefix(l.Message, prefix) {
				return l
			}
		case <-time.After(patience):
			t.Fatalf("no log line begins with %q", prefix)
		}
	}
}

// checkNothingLeft looks for private directories. On a busy machine their removal outlasts a start that fails.
func (b *testBench) checkNothingLeft(t *testing.T) {
	t.Helper()

	eventually(t, "left in the runtime directory", func() string {
		entries, err := os.ReadDir(b.dir)
		return strings.TrimPrefix(fmt.Sprint(entries, err), "[] <nil>")
	})
}

// checkFiles looks for descriptors that were not there before.
func checkFiles(t *testing.T, before map[string]bool) {
	t.Helper()

	eventually(t, "descriptors left", func() string {
		var left []string
		for name := range openFiles(t) {
			if !before[name] && !strings.HasPrefix(name, "anon_inode:") {
				left = append(left, name)
			}
		}
		return strings.Join(left, " ")
	})
}

// eventually waits until problem returns "".
func eventually(t *testing.T, what string, problem func() string) {
	t.Helper()

	deadline := time.After(patience)
	for {
		text := problem()
		if text == "" {
			return
		}
		select {
		case <-deadline:
			t.Errorf("%s: %s", what, text)
			return
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// openFiles lists what this process has open.
func openFiles(t *testing.T) map[string]bool {
	t.Helper()

	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]bool{}
	for _, e := range entries {
		if name, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil && !strings.HasPrefix(name, "/proc/") {
			files[name] = true
		}
	}
	return files
}

// processesWith lists living processes with a text in their environment and, if asked
// to, children of this process that nobody has reaped.
func processesWith(t *testing.T, text string, unreaped bool) []string {
	t.Helper()

	stats, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, dir := range stats {
		env, _ := os.ReadFile(filepath.Join(dir, "environ"))
		stat, _ := os.ReadFile(filepath.Join(dir, "stat"))
		zombie := unreaped && bytes.Contains(stat, fmt.Appendf(nil, ") Z %d ", os.Getpid()))
		if zombie || bytes.Contains(env, []byte(text)) {
			found = append(found, fmt.Sprintf("%s (zombie %v)", dir, zombie))
		}
	}
	return found
}

// alive reports whether a process lives.
func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !bytes.Contains(stat, []byte(") Z "))
}

// start starts a process and stops it at the end of the test.
func (b *testBench) start(t *testing.T, s proc.Spec) *proc.Process {
	t.Helper()

	p, err := proc.Start(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(t, p) })
	return p
}

// act starts a process and has it do what its mode does after a signal.
func (b *testBench) act(t *testing.T, s proc.Spec) *proc.Process {
	t.Helper()

	p := b.start(t, s)
	if err := syscall.Kill(p.PID(), syscall.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	return p
}

// stop stops a process and waits until nothing of it is left: on a busy machine a kill takes longer than Stop waits.
func stop(t *testing.T, p *proc.Process) {
	t.Helper()

	err := p.Stop(context.WithoutCancel(t.Context()))
	if err != nil {
		eventually(t, phases.Whole(err), func() string { return strings.TrimPrefix(fmt.Sprint(p.Clear()), "<nil>") })
	}
}

// children reads the numbers that startChildren prints.
func (b *testBench) children(t *testing.T) []int {
	t.Helper()

	var pids []int
	for range 3 {
		var pid int
		if _, err := fmt.Sscanf(b.waitLine(t, "child ").Message, "child %d", &pid); err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	return pids
}

// checkDead fails if one of the processes lives.
func (b *testBench) checkDead(t *testing.T, pids []int) {
	t.Helper()

	for i, pid := range pids {
		if alive(pid) {
			t.Errorf("child %d (process %d) lives", i, pid)
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}
