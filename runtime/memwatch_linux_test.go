package runtime_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

// memoryLimit is far above what the test binary holds by itself, also with the
// race detector.
const memoryLimit = 320

// limited gives a plugin a limit of memory.
func limited(p config.Plugin) config.Plugin {
	p.Limits.Memory = memoryLimit << 20
	return p
}

// rowMemory: a plugin that fills memory is killed for it, the call fails with
// that cause, the plugin waits longer for its next start than after a crash, and
// the plugin beside it is served.
func rowMemory(t *testing.T, b *processBench) {
	t.Helper()
	eng := b.start(t, limited(bad(t, "bad", "memory", "until="+strconv.Itoa(memoryLimit+80))))
	out := dispatch(t, eng, &phases.PrePromptCompileInput{})
	if run := runOf(t, out, "bad.h"); run.State != phases.StateFailed || run.Code != string(phases.CauseOOM) {
		t.Errorf("run %s %s, want failed oom", run.State, run.Code)
	}
	ended := b.awaitState(t, "bad", phases.PluginBackoff, 1)
	if ended.Code != string(phases.CauseOOM) || !strings.Contains(ended.Message+ended.Detail, "its limit is 320 MiB") {
		t.Errorf("state %s, code %s: %s", ended.State, ended.Code, ended.Message+ended.Detail)
	}
	again := b.awaitState(t, "bad", phases.PluginStarting, 2)
	// A crash waits for 50 ms here (half of 100 ms), memory for 2.5 s (half of 5 s).
	if pause := again.Time.Sub(ended.Time); pause < 2*time.Second {
		t.Errorf("started again after %v", pause)
	}
	checkGood(t, eng, out)
}

// rowKilledNearLimit: who kills a plugin that is nearly at its limit is most
// likely the system, for memory; who kills one that is not, is somebody else. The
// engine tells what processes hold, and nothing of those that have ended.
func rowKilledNearLimit(t *testing.T, b *processBench) {
	t.Helper()
	near := limited(bad(t, "bad", "memory", "until="+strconv.Itoa(memoryLimit-20)))
	near.Subscriptions = map[string]phases.Override{"bad.h": {Timeout: new(phases.Duration(100 * time.Millisecond))}}
	eng := b.start(t, near, limited(bad(t, "far", "good", "far")))
	dispatch(t, eng, &phases.PrePromptCompileInput{})
	b.awaitLine(t, "bad", "holds ")
	eventually(t, "the plugin is not seen to hold so much", func() string {
		if held := eng.Memory(); held["bad"] < (memoryLimit-40)<<20 || held["good"] == 0 || held["far"] == 0 {
			return strconv.FormatInt(held["bad"]>>20, 10)
		}
		return ""
	})
	for plugin, want := range map[string]phases.Cause{"bad": phases.CauseOOM, "far": phases.CauseCrash} {
		word := map[string]string{"bad": "memory", "far": "far"}[plugin]
		kill(t, word)
		ended := b.awaitState(t, plugin, phases.PluginBackoff, 1)
		if ended.Code != string(want) {
			t.Errorf("%s: %s: %s; want %s", plugin, ended.Code, ended.Message+ended.Detail, want)
		}
	}
	for _, p := range eng.Overview().Plugins {
		if p.Plugin == "good" && p.MemoryBytes < 1<<20 {
			t.Errorf("the overview has %d bytes", p.MemoryBytes)
		}
	}
	closeEngine(t, eng)
	if held := eng.Memory(); len(held) > 0 {
		t.Errorf("after the end: %v", held)
	}
}

// TestMemoryInsideHost: a limit that cannot be kept is a remark.
func TestMemoryInsideHost(t *testing.T) {
	b := newBench(t)
	cfg := patient(limited(config.Plugin{Name: "inside", Grants: allGrants()}))
	eng := b.startWith(t, cfg, runtime.Options{InProcess: map[string]runtime.Plugin{"inside": vandal()}})
	found := false
	for _, d := range eng.Diagnostics() {
		found = found || d.Code == "not_enforced" && d.Slot == "limits.memory" && strings.Contains(d.Message, "inside the host")
	}
	if !found {
		t.Errorf("diagnostics: %v", eng.Diagnostics())
	}
}

// memoryRows are plugins that hold more memory than they may.
func memoryRows() []rowCase {
	return []rowCase{
		{row: 17, name: "memory", test: rowMemory},
		{row: 17, name: "killed-near-limit", test: rowKilledNearLimit},
	}
}
