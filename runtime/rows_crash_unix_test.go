//go:build unix

package runtime_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

// crashingRows are plugins that end, or are ended, before their time.
func crashingRows() []rowCase {
	alone := []string{"good"}
	return []rowCase{
		{row: 5, name: "stopped", long: true, test: rowNoSign("stop")},
		{row: 5, name: "spins", test: rowNoSign("spin")},
		{row: 12, name: "children", test: rowChildren("children")},
		{row: 12, name: "orphans-are-swept", test: rowChildren("orphans")},
		{row: 13, mode: "crash", start: "ready", run: "failed crash", sections: alone, then: crashIsTold},
		{row: 13, name: "all-calls", test: rowCrashTakesAllCalls},
		{row: 14, mode: "half", start: "ready", run: "failed crash", sections: alone, then: crashIsTold},
		{row: 18, name: "killed-host", test: rowKilledHost},
	}
}

// rowNoSign is row 5: a plugin that is stopped, or so busy that it reads nothing,
// misses its health checks, is killed without its help, and replaced. Its caller
// waits no longer than the hook's own time.
func rowNoSign(mode string) func(*testing.T, *processBench) {
	return func(t *testing.T, b *processBench) {
		t.Helper()
		p := bad(t, "bad", mode)
		quick(&p)
		health := runtime.Health{Interval: 100 * time.Millisecond, Timeout: 500 * time.Millisecond}
		eng := b.startWith(t, patient(p, bad(t, "good", "good")), runtime.Options{Health: health})
		out := dispatch(t, eng, &phases.PrePromptCompileInput{})
		checkGood(t, eng, out)
		if run := runOf(t, out, "bad.h"); run.State != phases.StateTimedOut || run.DurationMS > 5000 {
			t.Errorf("run = %+v", run)
		}
		b.awaitState(t, "bad", phases.PluginDegraded, 1)
		b.awaitState(t, "bad", phases.PluginBackoff, 1)
		b.awaitState(t, "bad", phases.PluginReady, 2)
		if row := rowOf(t, eng, "good"); row.State != phases.PluginReady || row.Restarts != 0 {
			t.Errorf("the good plugin: %+v", row)
		}
	}
}

// rowChildren is row 12: what a plugin leaves behind is swept, when it is stopped
// and when it dies, also in a session of its own.
func rowChildren(mode string) func(*testing.T, *processBench) {
	return func(t *testing.T, b *processBench) {
		t.Helper()
		eng := b.start(t, bad(t, "bad", mode))
		dispatch(t, eng, &phases.PrePromptCompileInput{})
		pids := childrenOf(t, b)
		if mode == "orphans" {
			b.awaitState(t, "bad", phases.PluginReady, 2)
		} else {
			closeEngine(t, eng)
		}
		for _, pid := range pids {
			if alive(pid) {
				t.Errorf("process %d lives", pid)
			}
		}
	}
}

// childrenOf reads the numbers of the two processes that a plugin started.
func childrenOf(t *testing.T, b *processBench) []int {
	t.Helper()
	var pids []int
	b.await(t, "children", func(e runtime.Event) bool {
		var pid int
		if n, err := fmt.Sscanf(e.Detail, "child %d", &pid); n == 1 && err == nil {
			pids = append(pids, pid)
		}
		return len(pids) == 2
	})
	return pids
}

// rowCrashTakesAllCalls is row 13: all calls of a process that crashes fail at
// once, with the exit status and the last words, and it is started once.
func rowCrashTakesAllCalls(t *testing.T, b *processBench) {
	t.Helper()
	eng := b.start(t, bad(t, "bad", "crash", "calls=xxx"))
	outs := make([]*phases.Outcome, 3)
	var all sync.WaitGroup
	for i := range outs {
		all.Go(func() { outs[i], _ = eng.Dispatch(t.Context(), host(), &phases.PrePromptCompileInput{}) })
	}
	all.Wait()
	for _, out := range outs {
		if run := runOf(t, out, "bad.h"); run.State != phases.StateFailed || run.Code != "crash" || run.Attempts != 1 {
			t.Errorf("run = %+v", run)
		}
		checkGood(t, eng, out)
	}
	crashIsTold(t, b, eng, outs[0])
	if text := fmt.Sprint(outs[0].Diagnostics); !strings.Contains(text, "status 3") || !strings.Contains(text, "last words") {
		t.Errorf("told: %s", text)
	}
}

func crashIsTold(t *testing.T, b *processBench, eng *runtime.Engine, out *phases.Outcome) {
	t.Helper()
	b.awaitState(t, "bad", phases.PluginReady, 2)
	if row := rowOf(t, eng, "bad"); row.Restarts != 1 {
		t.Errorf("plugin = %+v", row)
	}
	if n := b.count("backoff", "crash"); n != 1 {
		t.Errorf("%d crashes: %v", n, b.summary())
	}
	var told string
	for _, d := range out.Diagnostics {
		if d.Code == phases.CodeFailOpen {
			told = d.Message
		}
	}
	if !strings.Contains(told, "exited with status") {
		t.Errorf("told: %q", told)
	}
}

// rowKilledHost is row 18: a plugin does not outlive its host, and what it has
// started is swept by the next host.
func rowKilledHost(t *testing.T, b *processBench) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, asProgram, "host")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	first, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || !strings.Contains(first, "served") {
		t.Fatalf("the host says %q, %v", first, err)
	}
	if here := processesOf(t, cmd.Process.Pid); len(here) != 3 {
		t.Errorf("the host has %v", here)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Error("the host ended by itself")
	}
	eventually(t, "the plugin outlives its host", func() string {
		if left := processesOf(t, cmd.Process.Pid); len(left) > 2 {
			return fmt.Sprint(left)
		}
		return ""
	})
	eng := b.start(t)
	eventually(t, "leftovers of the host", func() string {
		return strings.Join(processesOf(t, cmd.Process.Pid), " ")
	})
	closeEngine(t, eng)
	// The sweep may spare folders that are younger than a minute, for their host may be just starting.
	folders, err := filepath.Glob(filepath.Join(b.dir, "grapnel-*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range folders {
		if err := os.RemoveAll(folder); err != nil {
			t.Error(err)
		}
	}
}
