//go:build unix

package runtime_test

import (
	"flag"
	"os"
	"os/exec"
	"regexp"
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

// TestExchangeOfProcess records a process that dies in each call: each start has its
// number, and a repeated call waits for the next one.
func TestExchangeOfProcess(t *testing.T) {
	b := newBench(t)
	log := &exchangeLog{}
	cfg := patient(bad(t, "bad", "crash"))
	eng := b.startWith(t, cfg, runtime.Options{OnExchange: log.note})
	outcome(t)(eng.Dispatch(t.Context(), phases.Context{TurnID: "1"}, &phases.PrePromptCompileInput{}))
	calls := log.of(runtime.ExchangeDispatch)
	if len(calls) != 1 || calls[0].Err == nil || calls[0].Err.Code != phases.CauseCrash || calls[0].Start != 1 || len(calls[0].SHA256) != 64 {
		t.Fatalf("exchanges %+v", calls)
	}
	for range 2 {
		now, err := eng.Replay(t.Context(), &calls[0])
		if err != nil || now.Err == nil || now.Err.Code != phases.CauseCrash {
			t.Errorf("again %+v, %v", now, err)
		}
	}
	b.awaitState(t, "bad", phases.PluginReady, 3)
	var starts []uint64
	for _, x := range log.of(runtime.ExchangeConfigure) {
		starts = append(starts, x.Start)
		if x.Configuration == nil || x.Configuration.Instance != "bad" || x.Description == nil || x.Err != nil {
			t.Errorf("start %+v", x)
		}
	}
	if len(starts) < 3 || starts[0] != 1 || starts[1] != 2 || starts[2] != 3 {
		t.Errorf("starts %v", starts)
	}
}

// aloneVariable is set in a process that runs one test of this binary.
const aloneVariable = "GRAPNEL_TEST_ALONE"

// alone runs a test that counts what its whole process has open, beside others: in a process of
// its own. It returns false in that process.
func alone(t *testing.T) bool {
	t.Helper()
	if os.Getenv(aloneVariable) != "" {
		return false
	}
	t.Parallel()
	pattern := "^" + strings.ReplaceAll(regexp.QuoteMeta(t.Name()), "/", "$/^") + "$"
	if only := strings.SplitN(flag.Lookup("test.run").Value.String(), "/", 3); len(only) == 3 {
		pattern += "/" + only[2]
	}
	args := []string{"-test.run=" + pattern, "-test.v", "-test.timeout=5m"}
	if testing.Short() {
		args = append(args, "-test.short")
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Env = append(os.Environ(), aloneVariable+"=1", "GORACE=atexit_sleep_ms=0")
	out, err := cmd.CombinedOutput()
	switch text := string(out); {
	case err != nil:
		t.Errorf("%v\n%s", err, text)
	case strings.Contains(text, "--- SKIP: "+t.Name()+" "):
		t.Skip(text)
	case !strings.Contains(text, "--- PASS: "+t.Name()+" "):
		t.Errorf("it did not run:\n%s", text)
	}
	return true
}
