//go:build unix

package runtime_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

// The rows whose fault is the host's run in a process of their own: the test binary
// as another host.

// hostProcess is such a process, which is told by lines what to do.
type hostProcess struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// startHost starts the test binary in a mode.
func startHost(t *testing.T, mode string) *hostProcess {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 4*generous)
	h := &hostProcess{cmd: exec.CommandContext(ctx, self, asProgram, mode)}
	t.Cleanup(func() {
		cancel()
		_ = h.cmd.Wait() // after a test that failed; the others have done it
	})
	h.cmd.Stderr = os.Stderr
	if h.in, err = h.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := h.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	h.out = bufio.NewReader(out)
	if err := h.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return h
}

// says reads the next line.
func (h *hostProcess) says(t *testing.T) string {
	t.Helper()
	line, err := h.out.ReadString('\n')
	if err != nil {
		t.Fatalf("the host has ended: %q, %v", line, err)
	}
	return strings.TrimSpace(line)
}

// ask sends a line and reads the answer.
func (h *hostProcess) ask(t *testing.T, line string) string {
	t.Helper()
	if _, err := fmt.Fprintln(h.in, line); err != nil {
		t.Fatal(err)
	}
	return h.says(t)
}

// end closes its input, on which it ends by itself.
func (h *hostProcess) end(t *testing.T) {
	t.Helper()
	if err := h.in.Close(); err != nil {
		t.Error(err)
	}
	rest, err := io.ReadAll(h.out)
	if err := errors.Join(err, h.cmd.Wait()); err != nil {
		t.Errorf("the host: %v, %s", err, rest)
	}
}

// onlyPlugin is the configuration of a host with one good plugin.
func onlyPlugin() (*config.Config, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return patient(config.Plugin{
		Name: "bad", Command: self, Path: self, Args: []string{asProgram, "good"}, Grants: allGrants(),
		Limits: config.Limits{Start: phases.Duration(generous)},
	}), nil
}

// runHost runs an engine with one good plugin and answers lines until there are no
// more.
func runHost(o runtime.Options, answer func(eng *runtime.Engine, line string) string) int {
	cfg, err := onlyPlugin()
	if err != nil {
		return 1
	}
	eng, err := runtime.New(context.Background(), cfg, o)
	if err != nil {
		return 1
	}
	fmt.Println("up", eng.Plugins()[0].State)
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		fmt.Println(answer(eng, lines.Text()))
	}
	ctx, cancel := context.WithTimeout(context.Background(), generous)
	defer cancel()
	if err := eng.Close(ctx); err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

// childProcesses lists the processes that a process has started.
func childProcesses(t *testing.T, parent int) []int {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	var pids []int
	for _, path := range stats {
		data, _ := os.ReadFile(path)
		text := string(data)
		var pid, of int
		var state string
		if _, err := fmt.Sscanf(text, "%d ", &pid); err != nil {
			continue
		}
		if _, err := fmt.Sscanf(text[strings.LastIndex(text, ")")+1:], " %s %d", &state, &of); err == nil && of == parent {
			pids = append(pids, pid)
		}
	}
	return pids
}

// poorProgram is a host that can be told to have no descriptors left.
func poorProgram() int {
	news := make(chan string, 100)
	o := runtime.Options{
		Random: func() float64 { return 1 },
		OnEvent: func(e runtime.Event) {
			if e.Kind == runtime.EventPlugin && e.State != "starting" {
				news <- e.State + " " + e.Code
			}
		},
	}
	var rich syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &rich); err != nil {
		return 1
	}
	return runHost(o, func(eng *runtime.Engine, line string) string {
		limit := rich
		switch line {
		case "next":
			return <-news
		case "row":
			row := eng.Plugins()[0]
			return fmt.Sprint(row.State, " ", row.Code, ": ", row.Message+row.Detail)
		case "poor":
			limit.Cur = 3 // what is open stays open
		}
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
			return err.Error()
		}
		return "done"
	})
}

// rowNoDescriptors is row 42: a host that has no descriptor left for a start waits
// and tries again, for more times than a plugin may fail, and the plugin is back when
// there are some.
func rowNoDescriptors(t *testing.T, _ *processBench) {
	t.Helper()
	h := startHost(t, "poor")
	if line := h.says(t); line != "up ready" {
		t.Fatalf("the host says %q", line)
	}
	if got := h.ask(t, "next"); got != "ready" {
		t.Errorf("first state %q", got)
	}
	if got := h.ask(t, "poor"); got != "done" {
		t.Fatal(got)
	}
	for _, pid := range childProcesses(t, h.cmd.Process.Pid) {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Error(err)
		}
	}
	if got := h.ask(t, "next"); got != "backoff crash" {
		t.Errorf("state %q, want the crash", got)
	}
	// The folder of the dead one cannot be emptied without a descriptor, which is told,
	// and done later.
	if got := h.ask(t, "next"); got != "backoff crash" {
		t.Errorf("state %q, want what could not be removed", got)
	}
	for i := range 6 { // five failures would be its quarantine; each wait is twice as long
		if got := h.ask(t, "next"); got != "backoff unavailable" {
			t.Errorf("state %d: %q, want that the host is poor", i, got)
		}
	}
	if got := h.ask(t, "row"); !strings.HasPrefix(got, "backoff unavailable") || !strings.Contains(got, "too many open files") {
		t.Errorf("plugin: %s", got)
	}
	if got := h.ask(t, "rich"); got != "done" {
		t.Fatal(got)
	}
	for got := ""; got != "ready"; {
		if got = h.ask(t, "next"); got != "ready" && got != "backoff unavailable" {
			t.Fatalf("state %q, want it back", got)
		}
	}
	h.end(t)
}
