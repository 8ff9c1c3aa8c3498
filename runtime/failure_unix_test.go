//go:build unix

package runtime_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

// TestHangDelaysNobody is row 1: others start meanwhile, and a host that waits
// only for what is required does not wait for it.
func TestHangDelaysNobody(t *testing.T) {
	b := newBench(t)
	cfg := &config.Config{Version: 1, Plugins: []config.Plugin{bad(t, "bad", "hang"), bad(t, "good", "good")}}
	cfg.Budgets.Phases = map[phases.Phase]config.PhaseBudget{phases.PrePromptCompile: {Require: []string{"good.h"}}}
	begin := time.Now()
	eng := b.startWith(t, cfg, runtime.Options{WaitFor: runtime.WaitRequired})
	if took := time.Since(begin); took > generous/2 {
		t.Errorf("New took %v", took)
	}
	out := dispatch(t, eng, &phases.PrePromptCompileInput{})
	checkGood(t, eng, out)
	if row := rowOf(t, eng, "bad"); row.State != phases.PluginStarting {
		t.Errorf("plugin = %+v", row)
	}
}

// TestLatePlugin: a plugin that describes itself only after New takes part from
// then on.
func TestLatePlugin(t *testing.T) {
	b := newBench(t)
	cfg := &config.Config{Version: 1, Plugins: []config.Plugin{bad(t, "bad", "good"), bad(t, "good", "good")}}
	eng := b.startWith(t, cfg, runtime.Options{WaitFor: runtime.WaitRequired})
	b.awaitState(t, "bad", phases.PluginReady, 1)
	b.awaitState(t, "good", phases.PluginReady, 1)
	out := dispatch(t, eng, &phases.PrePromptCompileInput{})
	if diff := cmp.Diff(sorted(sectionIDs(out)), []string{"bad", "good"}); diff != "" {
		t.Errorf("sections (-got +want):\n%s", diff)
	}
}

// TestAbandonedCallsRecycle is row 4: the caller returns, and too many calls that
// are not answered have the process replaced.
func TestAbandonedCallsRecycle(t *testing.T) {
	b := newBench(t)
	p := bad(t, "bad", "deaf")
	quick(&p)
	p.Limits.Concurrency = 4
	eng := b.start(t, p)
	for range 4 {
		out := dispatch(t, eng, &phases.PrePromptCompileInput{})
		if run := runOf(t, out, "bad.h"); run.State != phases.StateTimedOut || run.Incarnation != 1 {
			t.Errorf("run = %+v", run)
		}
	}
	b.awaitState(t, "bad", phases.PluginReady, 2)
	if n := b.count("draining", ""); n != 1 {
		t.Errorf("recycled %d times: %v", n, b.summary())
	}
	if n := b.count("backoff", "timeout"); n != 0 {
		t.Errorf("recycling counts as a failure: %v", b.summary())
	}
	checkGood(t, eng, dispatch(t, eng, &phases.PrePromptCompileInput{}))
}

// TestStopped is row 5: a plugin that is stopped misses its health checks, is
// killed without its help, and replaced.
func TestStopped(t *testing.T) {
	if testing.Short() {
		t.Skip("three health checks take 20 s")
	}
	b := newBench(t)
	p := bad(t, "bad", "stop")
	quick(&p)
	eng := b.start(t, p)
	out := dispatch(t, eng, &phases.PrePromptCompileInput{})
	checkGood(t, eng, out)
	if run := runOf(t, out, "bad.h"); run.State != phases.StateTimedOut {
		t.Errorf("run = %+v", run)
	}
	b.awaitState(t, "bad", phases.PluginDegraded, 1)
	b.awaitState(t, "bad", phases.PluginBackoff, 1)
	b.awaitState(t, "bad", phases.PluginReady, 2)
}

// TestHugeAnswer is row 6: 100 MB on the wire end the session of one plugin and
// nothing else. The first time another session is opened on the same process,
// the second time the process is replaced.
func TestHugeAnswer(t *testing.T) {
	b := newBench(t)
	eng := b.start(t, bad(t, "bad", "huge", "other"))
	for round := range 2 {
		out := dispatch(t, eng, &phases.PrePromptCompileInput{})
		checkGood(t, eng, out)
		got := []string{runOf(t, out, "bad.h").Code, runOf(t, out, "bad.other").Code}
		if diff := cmp.Diff(got, []string{"oversize_reply", "session_reset"}); diff != "" {
			t.Fatalf("round %d: codes (-got +want):\n%s", round, diff)
		}
		if round == 0 {
			b.awaitState(t, "bad", phases.PluginDegraded, 1)
			b.awaitState(t, "bad", phases.PluginReady, 2)
			if row := rowOf(t, eng, "bad"); row.Restarts != 0 {
				t.Errorf("plugin = %+v", row)
			}
		}
	}
	b.awaitState(t, "bad", phases.PluginReady, 3)
	if row := rowOf(t, eng, "bad"); row.Restarts != 1 {
		t.Errorf("plugin = %+v", row)
	}
}

// TestHangUp: a session that the plugin ends itself is opened anew once.
func TestHangUp(t *testing.T) {
	b := newBench(t)
	eng := b.start(t, bad(t, "bad", "hang-up"))
	out := dispatch(t, eng, &phases.PrePromptCompileInput{})
	if run := runOf(t, out, "bad.h"); run.Code != "session_reset" {
		t.Errorf("run = %+v", run)
	}
	b.awaitState(t, "bad", phases.PluginDegraded, 1)
	b.awaitState(t, "bad", phases.PluginReady, 2)
	dispatch(t, eng, &phases.PrePromptCompileInput{})
	b.awaitState(t, "bad", phases.PluginBackoff, 1)
	b.awaitState(t, "bad", phases.PluginReady, 3)
	if n := b.count("backoff", "session_reset"); n != 1 {
		t.Errorf("events: %v", b.summary())
	}
}

// TestOversizeRequest is row 8: what a plugin cannot take is refused on the host.
func TestOversizeRequest(t *testing.T) {
	b := newBench(t)
	p := bad(t, "bad", "good")
	p.Limits.Frame = 8 << 10
	eng := b.start(t, p)
	in := &phases.ToolPreCallInput{Tool: "x", Arguments: raw(`"` + strings.Repeat("y", 20<<10) + `"`)}
	out := dispatch(t, eng, in)
	if run := runOf(t, out, "bad.tool"); run.State != phases.StateFailed || run.Code != "oversize_request" {
		t.Errorf("run = %+v", run)
	}
	if run := runOf(t, out, "good.tool"); run.State != phases.StateSucceeded {
		t.Errorf("the good plugin: %+v", run)
	}
	stillUp(t, b, eng, out)
}

// TestChildren is row 12: what a plugin leaves behind is swept, when it is
// stopped and when it dies, also in a session of its own.
func TestChildren(t *testing.T) {
	for _, mode := range []string{"children", "orphans"} {
		t.Run(mode, func(t *testing.T) {
			b := newBench(t)
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
		})
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

// TestCrashTakesAllCalls is row 13: all calls of a process that crashes fail at
// once, with the exit status and the last words, and it is started once.
func TestCrashTakesAllCalls(t *testing.T) {
	b := newBench(t)
	counter := filepath.Join(t.TempDir(), "calls")
	eng := b.start(t, bad(t, "bad", "crash", "count="+counter, "calls=xxx"))
	begin := time.Now()
	outs := make([]*phases.Outcome, 3)
	var all sync.WaitGroup
	for i := range outs {
		all.Go(func() { outs[i], _ = eng.Dispatch(t.Context(), host(), &phases.PrePromptCompileInput{}) })
	}
	all.Wait()
	if took := time.Since(begin); took > generous/2 {
		t.Errorf("the calls took %v", took)
	}
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

// TestCrashAndRetry is row 13: only a call that does no harm twice is made again.
func TestCrashAndRetry(t *testing.T) {
	b := newBench(t)
	counter := filepath.Join(t.TempDir(), "calls")
	p := bad(t, "bad", "crash", "idempotent", "count="+counter)
	p.Subscriptions = map[string]phases.Override{"bad.h": {
		Retry: &phases.Retry{Attempts: 4, Backoff: phases.Duration(500 * time.Millisecond)}, Timeout: new(phases.Duration(generous / 2)),
	}}
	cfg := &config.Config{Version: 1, Plugins: []config.Plugin{p}}
	cfg.Budgets.Phases = map[phases.Phase]config.PhaseBudget{phases.PrePromptCompile: budget(generous)}
	cfg.Budgets.Turn.Time = phases.Duration(2 * generous)
	eng := b.startWith(t, cfg, runtime.Options{})
	out := dispatch(t, eng, &phases.PrePromptCompileInput{})
	run := runOf(t, out, "bad.h")
	if data, err := os.ReadFile(counter); err != nil || len(data) < 2 || run.Attempts < 2 {
		t.Errorf("%d calls (%v), %d attempts", len(data), err, run.Attempts)
	}
}

// TestQuarantine is row 15: a plugin that crashes again and again is started ever
// later, and then not at all, for a reason that everybody can see.
func TestQuarantine(t *testing.T) {
	b := newBench(t)
	p := bad(t, "bad", "exit")
	eng := b.start(t, p)
	b.awaitState(t, "bad", phases.PluginQuarantined, 1)
	row := rowOf(t, eng, "bad")
	if row.Restarts != 4 || row.Code != "crash" || !strings.Contains(row.Detail, "5 failures") || !strings.Contains(row.Detail, "out of cheese") {
		t.Errorf("plugin = %+v", row)
	}
	if n := b.count("backoff", "crash"); n != 4 {
		t.Errorf("%d waits: %v", n, b.summary())
	}
	out := dispatch(t, eng, &phases.PrePromptCompileInput{})
	checkGood(t, eng, out)
	if text := strings.Join(codes(out), " "); !strings.Contains(text, "crash") {
		t.Errorf("diagnostics: %s", text)
	}
}

// TestKilledHost is row 18: a plugin does not outlive its host, and what it has
// started is swept when the next host begins.
func TestKilledHost(t *testing.T) {
	b := newBench(t)
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
	b.start(t)
	eventually(t, "leftovers of the host", func() string {
		return strings.Join(processesOf(t, cmd.Process.Pid), " ")
	})
	b.removeYoungFolders(t)
}

// removeYoungFolders removes the folders of hosts that were killed: the sweep
// spares those that are younger than a minute, for their host may be just
// starting.
func (b *processBench) removeYoungFolders(t *testing.T) {
	t.Helper()
	folders, err := filepath.Glob(filepath.Join(b.dir, "grapnel-*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range folders {
		lock, err := os.Open(folder)
		if err != nil {
			t.Fatal(err)
		}
		if syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil { // nobody's
			err = os.RemoveAll(folder)
		}
		if err := errors.Join(err, lock.Close()); err != nil {
			t.Error(err)
		}
	}
}

// TestMistakesAtLoad are rows 22 and 25: what the operator got wrong is an error
// that names the places, and nothing is left running.
func TestMistakesAtLoad(t *testing.T) {
	circle := bad(t, "a", "good")
	circle.Subscriptions = map[string]phases.Override{"a.h": {After: &[]string{"b.h"}}}
	back := bad(t, "b", "good")
	back.Subscriptions = map[string]phases.Override{"b.h": {After: &[]string{"a.h"}}}
	tests := []struct {
		name    string
		plugins []config.Plugin
		want    []string
	}{
		{"configured twice", []config.Plugin{bad(t, "a", "good"), bad(t, "a", "good")}, []string{"plugins[0]", "plugins[1]"}},
		{"a circle", []config.Plugin{circle, back}, []string{"a.h", "b.h", "circle", "->"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			newBench(t)
			_, err := runtime.New(t.Context(), &config.Config{Version: 1, Plugins: tt.plugins}, runtime.Options{})
			if err == nil {
				t.Fatal("New accepts it")
			}
			for _, word := range tt.want {
				if !strings.Contains(err.Error(), word) {
					t.Errorf("%q is not in %q", word, err)
				}
			}
		})
	}
}

// TestRequiredProcess is row 34 with a process: a phase whose guard cannot start
// fails closed.
func TestRequiredProcess(t *testing.T) {
	b := newBench(t)
	cfg := &config.Config{Version: 1, Plugins: []config.Plugin{bad(t, "bad", "exit")}}
	cfg.Budgets.Phases = map[phases.Phase]config.PhaseBudget{phases.PrePromptCompile: {Require: []string{"bad.h"}}}
	eng := b.startWith(t, cfg, runtime.Options{WaitFor: runtime.WaitRequired})
	out := dispatch(t, eng, &phases.PrePromptCompileInput{})
	if got := errorCode(out); got != "required_missing bad.h" {
		t.Errorf("error = %q", got)
	}
}

// TestStubborn is row 39: a plugin that works, does not listen and does not end
// is gone when Close returns, in a bounded time.
func TestStubborn(t *testing.T) {
	b := newBench(t)
	p := bad(t, "bad", "stubborn")
	p.Subscriptions = map[string]phases.Override{"bad.h": {Timeout: new(phases.Duration(generous))}}
	cfg := &config.Config{Version: 1, Plugins: []config.Plugin{p, bad(t, "good", "good")}}
	cfg.Budgets.Phases = map[phases.Phase]config.PhaseBudget{phases.PrePromptCompile: budget(generous)}
	cfg.Budgets.Turn.Time = phases.Duration(2 * generous)
	eng := b.startWith(t, cfg, runtime.Options{})
	var call sync.WaitGroup
	var out *phases.Outcome
	call.Go(func() {
		out, _ = eng.Dispatch(context.WithoutCancel(t.Context()), host(), &phases.PrePromptCompileInput{})
	})
	b.awaitLine(t, "bad", "ready")
	closeEngine(t, eng)
	call.Wait()
	if run := runOf(t, out, "bad.h"); run.State == phases.StateSucceeded || run.State == phases.StateTimedOut {
		t.Errorf("run = %+v", run)
	}
}
