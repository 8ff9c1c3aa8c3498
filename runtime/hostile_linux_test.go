package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

// hostileOnly is the variable of the environment that names the behaviours to run, separated by commas; empty is all.
const hostileOnly = "GRAPNEL_HOSTILE_ROWS"

// maxHostMemory is more than a host of a batch has a use for: each plugin may make it hold some frames.
const maxHostMemory = 1 << 30

// TestHostile runs hostile plugins in batches, beside a good one that is called meanwhile: whatever they say, the host
// lives, holds less than a bound, and serves the good one. What processes do to a machine is a matter of internal/proc.
func TestHostile(t *testing.T) { testHostile(t) }

// TestHostileOverGRPC runs them with plugins that do not take the lane.
func TestHostileOverGRPC(t *testing.T) {
	if os.Getenv(longTests) == "" {
		t.Skip("TestHostile runs the same over the lane: GRAPNEL_LONG=1 runs both")
	}
	testHostile(t)
}

func testHostile(t *testing.T) {
	t.Helper()
	if info, ok := debug.ReadBuildInfo(); testing.Short() || ok && slices.ContainsFunc(info.Settings, func(s debug.BuildSetting) bool { return s.Key == "-race" && s.Value == "true" }) {
		t.Skip("the hostile suite runs without -short and -race")
	}
	if alone(t) {
		return
	}
	names := slices.Sorted(maps.Keys(hostileModes()))
	switch only := os.Getenv(hostileOnly); {
	case only != "":
		names = strings.Split(only, ",")
	case os.Getenv(longTests) == "": // one of each family
		family := ""
		names = slices.DeleteFunc(names, func(name string) bool {
			last := family
			family, _, _ = strings.Cut(name, "-")
			return family == last
		})
	}
	apart := []string{"answer-extremes", "answer-jobs-never-done"}
	for _, name := range apart {
		if slices.Contains(names, name) {
			t.Run(name, func(t *testing.T) { runHostile(t, []string{name}) })
		}
	}
	names = slices.DeleteFunc(names, func(name string) bool { return slices.Contains(apart, name) })
	for batch := range slices.Chunk(names, 24) {
		t.Run(batch[0], func(t *testing.T) { runHostile(t, batch) })
	}
}

// runHostile runs one batch.
func runHostile(t *testing.T, batch []string) {
	t.Helper()
	b := newBench(t)
	debug.FreeOSMemory()
	_ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) // forgets what the host held until now
	eng := b.startWith(t, hostileConfiguration(t, batch), runtime.Options{
		WaitFor: runtime.WaitRequired,
		Phases:  []phases.Row{phases.Custom(hostilePhase, "hostile plugins are called", time.Minute, phases.Kinds()...)},
		Complete: func(context.Context, phases.CompletionRequest) (phases.CompletionResponse, error) {
			return phases.CompletionResponse{}, errors.New("no model")
		},
	})
	b.awaitState(t, "good", phases.PluginReady, 1)
	for _, name := range batch {
		b.await(t, name+" has started or failed", func(e runtime.Event) bool {
			return e.Kind == runtime.EventPlugin && e.Plugin == name && e.State != "starting"
		})
	}
	for range 2 {
		dispatchHostile(t, eng)
	}
	switch batch[0] {
	case "answer-jobs-never-done":
		closedInTime(t, b, eng)
	case "answer-extremes":
		extremesAnswered(t, b, eng)
	default:
		for _, name := range batch {
			if outcome := b.awaitLine(t, name, "did "); outcome != "did done" {
				t.Errorf("%s: %s", name, outcome)
			}
		}
		dispatchHostile(t, eng)
	}
	if peak := peakMemory(t); peak > maxHostMemory {
		t.Errorf("the host held %d MiB beside %s", peak>>20, batch)
	}
	if row := rowOf(t, eng, "good"); row.State != phases.PluginReady && batch[0] != "answer-jobs-never-done" || row.Restarts != 0 {
		t.Errorf("the good plugin: %+v", row)
	}
	for _, row := range eng.Plugins() {
		if len(row.Message)+len(row.Detail) > 64<<10 {
			t.Errorf("%s: a message of %d bytes in its row", row.Plugin, len(row.Message)+len(row.Detail))
		}
	}
}

// hostileConfiguration has plugins under the names of their behaviours, and the good one.
func hostileConfiguration(t *testing.T, batch []string) *config.Config {
	t.Helper()
	good := bad(t, "good", "good")
	good.Subscriptions = map[string]phases.Override{"good.tool": {Timeout: new(phases.Duration(generous))}}
	cfg := &config.Config{Version: 1, Plugins: []config.Plugin{good}}
	for _, name := range batch {
		p := bad(t, name, name)
		p.OnFailure = config.FailOpen // the good plugin is to run, whatever this one is
		p.Limits.Start = phases.Duration(20 * time.Second)
		if strings.HasPrefix(name, "http2-") { // it does not come up
			p.Limits.Start = phases.Duration(3 * time.Second)
		}
		p.Subscriptions = map[string]phases.Override{name + ".h": {Timeout: new(phases.Duration(500 * time.Millisecond))}}
		cfg.Plugins = append(cfg.Plugins, p)
	}
	cfg.Budgets.Turn.Time = phases.Duration(4 * generous)
	cfg.Budgets.Phases = map[phases.Phase]config.PhaseBudget{
		hostilePhase: budget(generous), phases.PrePromptCompile: budget(generous), phases.ToolPreCall: budget(generous),
	}
	return cfg
}

// dispatchHostile calls the hostile hooks, which may do as they like, compiles a prompt with what they say, and calls
// the good plugin.
func dispatchHostile(t *testing.T, eng *runtime.Engine) {
	t.Helper()
	_, err := eng.Dispatch(t.Context(), host(), &phases.CustomInput{Name: hostilePhase, Fields: raw(`{"a":1}`)})
	_, compileErr := eng.CompileTurn(t.Context(), phases.Context{ThreadID: "t", TurnID: "1", Mode: phases.ModeAgent}, runtime.CompileInput{UserText: "x"})
	for _, err := range []error{err, compileErr} {
		if _, failed := errors.AsType[*runtime.PhaseError](err); err != nil && !failed {
			t.Errorf("the caller has %v", err)
		}
	}
	if run := runOf(t, dispatch(t, eng, &phases.ToolPreCallInput{Tool: "x"}), "good.tool"); run.State != phases.StateSucceeded {
		t.Errorf("the good plugin: %s %s", run.State, run.Code)
	}
}

// peakMemory is the most that the host held since it forgot what it held before.
func peakMemory(t *testing.T) (bytes uint64) {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	if _, err := fmt.Sscan(rest, &bytes); err != nil {
		t.Fatal(err)
	}
	return bytes << 10
}

// closedInTime closes the engine while its plugin works on jobs that it never does.
// The host says how long it waits for that.
func closedInTime(t *testing.T, b *processBench, eng *runtime.Engine) {
	t.Helper()
	b.awaitLine(t, "answer-jobs-never-done", "did ")
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := eng.Close(ctx); err == nil {
		t.Error("Close says that background work was finished")
	}
}

// extremesAnswered calls the hook once for each extreme. Whatever it says, the process
// stays.
func extremesAnswered(t *testing.T, b *processBench, eng *runtime.Engine) {
	t.Helper()
	var n int
	if _, err := fmt.Sscanf(b.awaitLine(t, "answer-extremes", "did "), "did %d", &n); err != nil || n < 250 {
		t.Fatalf("%d extremes, %v", n, err)
	}
	for range n {
		dispatchHostile(t, eng)
	}
	if row := rowOf(t, eng, "answer-extremes"); row.Restarts != 0 {
		t.Errorf("after %d extremes: %+v", n, row)
	}
}
