//go:build unix

package runtime_test

import (
	"strings"
	"testing"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

// TestOverviewOfProcesses: who crashed, why, and who is well beside it; figures go on
// over the restart.
func TestOverviewOfProcesses(t *testing.T) {
	b := newBench(t)
	eng := b.start(t, bad(t, "bad", "crash"))
	health := func(name string) runtime.PluginHealth {
		for _, p := range eng.Overview().Plugins {
			if p.Plugin == name {
				return p
			}
		}
		t.Fatalf("no plugin %s", name)
		return runtime.PluginHealth{}
	}
	first := health("bad").StartedAt
	dispatch(t, eng, &phases.PrePromptCompileInput{})
	b.awaitState(t, "bad", phases.PluginReady, 2)
	row := hookRow(t, eng, "bad.h")
	if row.Failures[phases.CauseCrash] != 1 || row.FailedInARow != 1 || row.FailOpen != 1 || row.Took.Count != 1 || !strings.Contains(row.LastError.Message, "status 3") {
		t.Errorf("the hook after a crash: %+v, %+v", row, row.LastError)
	}
	got := health("bad")
	if got.State != phases.PluginReady || got.Restarts != 1 || got.Code != "" || !got.StartedAt.After(first) {
		t.Errorf("the plugin is up again: %+v", got)
	}
	if e := got.LastError; e == nil || e.Code != "crash" || !strings.Contains(e.Message, "status 3") || e.At.Before(first) {
		t.Errorf("its last error: %+v", e)
	}
	dispatch(t, eng, &phases.PrePromptCompileInput{})
	if row = hookRow(t, eng, "bad.h"); row.Runs != 2 || row.FailedInARow != 2 || row.Failures[phases.CauseCrash] != 2 {
		t.Errorf("the hook after another crash: %+v", row)
	}
	good := health("good")
	if good.LastError != nil || good.Took.Count != 2 || good.Replies.Count != 2 || good.Replies.Bytes == 0 || good.Restarts != 0 {
		t.Errorf("the one beside it: %+v", good)
	}
}
