//go:build unix

package runtime_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

// supervisionRows are plugins whose processes are replaced, die together, are
// started and stopped again, and answer over all that.
func supervisionRows() []rowCase {
	return []rowCase{
		{row: 16, name: "recycled-by-calls", test: rowRecycledByCalls},
		{row: 16, name: "recycled-by-age", test: rowRecycledByAge},
		{row: 19, name: "replaced-on-disk", test: rowReplacedOnDisk},
		{row: 19, name: "replaced-unpinned", test: rowReplacedUnpinned},
		{row: 32, name: "overwhelmed", test: rowOverwhelmed},
		{row: 42, name: "no-descriptors", long: true, test: rowNoDescriptors},
		{row: 48, name: "reloaded-while-starting", test: rowReloadedWhileStarting},
	}
}

// recycled says that a plugin's process has taken over from one that was well, n
// times.
func recycled(plugin string, n int) func(runtime.Event) bool {
	return func(e runtime.Event) bool {
		if e.Kind == runtime.EventPlugin && e.Plugin == plugin && e.State == "ready" && e.Code == "recycled" {
			n--
		}
		return n == 0
	}
}

// checkUnharmed fails if a plugin has failed or was started again in another way
// than by being recycled.
func checkUnharmed(t *testing.T, b *processBench, eng *runtime.Engine, plugin string) phases.PluginRow {
	t.Helper()
	row := rowOf(t, eng, plugin)
	if row.State != phases.PluginReady || row.Restarts != 0 || row.Code != "" {
		t.Errorf("plugin = %+v", row)
	}
	for _, line := range b.summary() {
		for _, word := range []string{"backoff", "quarantined", "draining", "degraded", "fail_open", "dropped", "abandoned"} {
			if strings.Contains(line, word) {
				t.Errorf("event: %s", line)
			}
		}
	}
	return row
}

// rowRecycledByCalls is row 16: a plugin that may have leaked has its process
// replaced while it is called without a pause, and not one of the calls fails, or is
// made twice.
func rowRecycledByCalls(t *testing.T, b *processBench) {
	t.Helper()
	p := bad(t, "bad", "good")
	p.Limits.Recycle = config.Recycle{Calls: 5} // 4 with the shortest share
	eng := b.start(t, p)
	const callers, times = 4, 5
	over, stop := context.WithCancel(t.Context())
	defer stop()
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			var last uint64
			for over.Err() == nil {
				out := dispatch(t, eng, &phases.PrePromptCompileInput{})
				run := runOf(t, out, "bad.h")
				if run.State != phases.StateSucceeded || run.Attempts != 1 || run.Incarnation < last || out.Error != nil {
					t.Errorf("run = %+v, after one of incarnation %d", run, last)
				}
				last = run.Incarnation
			}
		})
	}
	b.await(t, "recycled", recycled("bad", times))
	stop()
	all.Wait()
	if row := checkUnharmed(t, b, eng, "bad"); row.Recycled < times {
		t.Errorf("plugin = %+v, want it recycled", row)
	}
	if row := checkUnharmed(t, b, eng, "good"); row.Recycled != 0 {
		t.Errorf("the good plugin = %+v", row)
	}
}

// rowRecycledByAge is row 16: a call that is on its way when its process is replaced
// ends as it would have, while others are answered by the successor; then the old
// process is gone.
func rowRecycledByAge(t *testing.T, b *processBench) {
	t.Helper()
	hold := filepath.Join(t.TempDir(), "hold")
	p := bad(t, "bad", "told", "hold="+hold)
	p.Limits.Recycle = config.Recycle{Age: phases.Duration(500 * time.Millisecond)}
	eng := b.start(t, p)
	first := make(chan phases.Run)
	go func() {
		out, _ := eng.Dispatch(context.WithoutCancel(t.Context()), host(), &phases.PrePromptCompileInput{})
		first <- runOf(t, out, "bad.h")
	}()
	b.awaitLine(t, "bad", "called")
	b.await(t, "recycled", recycled("bad", 1))
	// The one that is replaced is not replaced again before it has ended.
	if row := rowOf(t, eng, "bad"); row.Recycled != 1 {
		t.Errorf("plugin = %+v", row)
	}
	if n := len(processesOf(t, os.Getpid())); n < 3 || n > 4 { // a third one may start, and waits
		t.Errorf("%d processes, want the old one, its successor and the good one", n)
	}
	if err := os.WriteFile(hold, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if run := <-first; run.State != phases.StateSucceeded || run.Incarnation != 1 || run.Attempts != 1 {
		t.Errorf("run = %+v", run)
	}
	if run := runOf(t, dispatch(t, eng, &phases.PrePromptCompileInput{}), "bad.h"); run.State != phases.StateSucceeded || run.Incarnation < 2 {
		t.Errorf("run = %+v", run)
	}
	b.await(t, "recycled", recycled("bad", 3))
	checkUnharmed(t, b, eng, "bad")
	if n := len(processesOf(t, os.Getpid())); n > 4 {
		t.Errorf("%d processes: those that were replaced stay", n)
	}
}
