package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	goruntime "runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/internal/proc"
	"github.com/grapnelhq/grapnel/internal/proc/sandbox"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

// batchSize is how many hostile plugins an engine has beside the good one.
const batchSize = 24

// hostOfHostile is one host: it runs rows in batches, each in an engine of its own,
// and says before and after which, for the case that it dies.
func hostOfHostile(t *testing.T, name string) {
	tier, err := sandbox.ParseTier(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := sandbox.Probe().Reach(tier, sandbox.Policy{}, ""); err != nil {
		fmt.Printf("SKIPPED %v\n", err)
		return
	}
	h := &hostileHost{tier: tier, scene: newScene(t)}
	h.baseline = h.measureAlone(t)
	for _, batch := range batches(strings.Split(os.Getenv(hostileOnly), ",")) {
		var names []string
		for _, row := range batch {
			names = append(names, row.name)
		}
		list := strings.Join(names, ",")
		fmt.Println("RUNNING " + list)
		t.Run(names[0], func(t *testing.T) { h.run(t, batch) })
		fmt.Println("DONE " + list)
	}
}

// batches puts rows together, but for those that want an engine of their own.
func batches(names []string) [][]hostileRow {
	size := batchSize
	if os.Getenv(hostileAlone) != "" {
		size = 1
	}
	var together, alone []hostileRow
	for _, name := range names {
		if row := hostileRowOf(name); row.apart {
			alone = append(alone, row)
		} else {
			together = append(together, row)
		}
	}
	return slices.Concat(slices.Collect(slices.Chunk(together, size)), slices.Collect(slices.Chunk(alone, 1)))
}

// hostileHost is what the batches of one host share.
type hostileHost struct {
	tier     sandbox.Tier
	scene    *hostileScene
	baseline []time.Duration
}

// run runs one batch: the plugins do their worst while the good one is called.
func (h *hostileHost) run(t *testing.T, batch []hostileRow) {
	b := newBench(t)
	resetPeak()
	t.Cleanup(func() { h.checkAfter(t, batch) }) // after the engine was closed
	var plugins []config.Plugin
	for _, row := range batch {
		if row.memory && h.tier == sandbox.T2 {
			if _, _, err := sandbox.FindGroupBase("", sandbox.Limits{Memory: hostileMemory}); err != nil {
				t.Logf("%s skipped: %v", row.name, err)
				continue
			}
		}
		plugins = append(plugins, h.declare(t, row))
	}
	batch = slices.DeleteFunc(slices.Clone(batch), func(row hostileRow) bool {
		return !slices.ContainsFunc(plugins, func(p config.Plugin) bool { return p.Name == row.name })
	})
	if len(batch) == 0 {
		return
	}
	eng := b.startWith(t, h.configuration(t, plugins), hostileOptions())
	b.awaitState(t, "good", phases.PluginReady, 1)
	stop := h.callGood(t, eng)
	for _, row := range batch {
		b.await(t, row.name+" has started or failed", func(e runtime.Event) bool {
			return e.Kind == runtime.EventPlugin && e.Plugin == row.name && e.State != "starting"
		})
	}
	for range 2 {
		dispatchHostile(t, eng)
	}
	for _, row := range batch {
		if row.closes {
			stop() // nobody is served after
		}
		if row.test != nil {
			row.test(t, b, eng)
		}
		outcome := b.awaitLine(t, row.name, "did ")
		word, _, _ := strings.Cut(strings.TrimPrefix(outcome, "did "), " ")
		if want := row.wanted(h.tier); want != "" && word != want {
			t.Errorf("%s: %s, want %q", row.name, outcome, want)
		}
	}
	times := stop()
	h.report(t, batch, times)
	if row := rowOf(t, eng, "good"); row.State != phases.PluginReady && !batch[0].closes || row.Restarts != 0 {
		t.Errorf("the good plugin: %+v", row)
	}
	for _, row := range eng.Plugins() {
		if len(row.Message)+len(row.Detail) > 64<<10 {
			t.Errorf("%s: a message of %d bytes in its row", row.Plugin, len(row.Message)+len(row.Detail))
		}
	}
}

// hostileMemory is the limit of rows about memory.
const hostileMemory = 128 << 20

// declare declares a hostile plugin under the name of its row.
func (h *hostileHost) declare(t *testing.T, row hostileRow) config.Plugin {
	p := bad(t, row.name, "hostile", slices.Concat([]string{row.name}, h.scene.args)...)
	p.Sandbox, p.OnFailure = h.tier.String(), config.FailOpen // the good plugin is to run, whatever this one is
	p.Grants.Read, p.Grants.Write, p.Grants.Net = nil, nil, nil
	p.Limits.Start = phases.Duration(20 * time.Second)
	if row.never {
		p.Limits.Start = phases.Duration(3 * time.Second)
	}
	if row.memory {
		p.Limits.Memory = hostileMemory
	}
	quick := phases.Override{Timeout: new(phases.Duration(500 * time.Millisecond))}
	p.Subscriptions = map[string]phases.Override{row.name + ".h": quick}
	return p
}

// configuration has the plugins and the good one.
func (h *hostileHost) configuration(t *testing.T, plugins []config.Plugin) *config.Config {
	good := bad(t, "good", "good")
	good.Subscriptions = map[string]phases.Override{"good.tool": {Timeout: new(phases.Duration(generous))}}
	cfg := &config.Config{Version: 1, Plugins: append(plugins, good)}
	cfg.Budgets.Turn.Time = phases.Duration(4 * generous)
	cfg.Budgets.Phases = map[phases.Phase]config.PhaseBudget{
		hostilePhase: budget(generous), phases.PrePromptCompile: budget(generous), phases.ToolPreCall: budget(generous),
	}
	return cfg
}

// hostileOptions are those of a host with a model that fails.
func hostileOptions() runtime.Options {
	return runtime.Options{
		WaitFor: runtime.WaitRequired,
		Phases:  []phases.Row{phases.Custom(hostilePhase, "hostile plugins are called", time.Minute, phases.Kinds()...)},
		Complete: func(context.Context, phases.CompletionRequest) (phases.CompletionResponse, error) {
			return phases.CompletionResponse{}, errors.New("no model")
		},
	}
}

// dispatchHostile calls the hostile hooks, which may do as they like, and compiles a
// prompt with what they say.
func dispatchHostile(t *testing.T, eng *runtime.Engine) {
	t.Helper()
	_, err := eng.Dispatch(t.Context(), host(), &phases.CustomInput{Name: hostilePhase, Fields: raw(`{"a":1}`)})
	_, compileErr := eng.CompileTurn(t.Context(), phases.Context{ThreadID: "t", TurnID: "1", Mode: phases.ModeAgent}, runtime.CompileInput{UserText: "x"})
	for _, err := range []error{err, compileErr} {
		if _, failed := errors.AsType[*runtime.PhaseError](err); err != nil && !failed {
			t.Errorf("the caller has %v", err)
		}
	}
}

// callGood calls the good plugin until the function is called that it returns, which
// tells how long each call took.
func (h *hostileHost) callGood(t *testing.T, eng *runtime.Engine) func() []time.Duration {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	enough := 20
	if os.Getenv(hostileAlone) != "" {
		enough = 300 // for a p99
	}
	var times []time.Duration
	var wg sync.WaitGroup
	wg.Go(func() {
		for ctx.Err() == nil || len(times) < enough {
			begin := time.Now()
			out, err := eng.Dispatch(t.Context(), host(), &phases.ToolPreCallInput{Tool: "x"})
			times = append(times, time.Since(begin))
			if err != nil {
				t.Errorf("the good plugin's phase: %v", err)
				return
			}
			if run := runOf(t, out, "good.tool"); run.State != phases.StateSucceeded {
				t.Errorf("the good plugin: %s %s", run.State, run.Code)
			}
			<-time.After(time.Millisecond) // not to be a load of its own
		}
	})
	return sync.OnceValue(func() []time.Duration { cancel(); wg.Wait(); return times })
}

// measureAlone is what the good plugin's calls take without anybody beside it.
func (h *hostileHost) measureAlone(t *testing.T) (times []time.Duration) {
	t.Run("good", func(t *testing.T) {
		b := newBench(t)
		eng := b.startWith(t, h.configuration(t, nil), hostileOptions())
		b.awaitState(t, "good", phases.PluginReady, 1)
		stop := h.callGood(t, eng)
		<-time.After(200 * time.Millisecond)
		times = stop()
	})
	return times
}

func percentile(times []time.Duration, p int) time.Duration {
	times = slices.Clone(times)
	slices.Sort(times)
	return times[(len(times)-1)*p/100]
}

// schedulerNoise is what a call may take because others have the processor.
const schedulerNoise = 5 * time.Millisecond

// report logs what the good plugin's calls took. With one row at a time it fails if
// that was more than twice of what they take alone, and the row is not about time.
func (h *hostileHost) report(t *testing.T, batch []hostileRow, times []time.Duration) {
	t.Helper()
	alone, now := percentile(h.baseline, 99), percentile(times, 99)
	peak := peakMemory(t)
	if peak > maxHostMemory {
		t.Errorf("the host held %d MiB beside %s and %d more", peak>>20, batch[0].name, len(batch)-1)
	}
	t.Logf("%s and %d more: p50 %v (alone %v), p99 %v (alone %v), %d calls, %d MiB", batch[0].name, len(batch)-1,
		percentile(times, 50), percentile(h.baseline, 50), now, alone, len(times), peak>>20)
	if os.Getenv(hostileAlone) != "" && !batch[0].slows && now > 2*max(alone, schedulerNoise) {
		t.Errorf("%s: p99 %v beside %v alone", batch[0].name, now, alone)
	}
}

// maxHostMemory is more than a host of a batch has a use for: each plugin may make it
// hold some frames.
const maxHostMemory = 1 << 30

// resetPeak forgets what the host held until now.
func resetPeak() {
	debug.FreeOSMemory()
	_ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0)
}

// peakMemory is the most that the host held since.
func peakMemory(t *testing.T) uint64 {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	var kib uint64
	if _, err := fmt.Sscan(rest, &kib); err != nil {
		t.Fatal(err)
	}
	return kib << 10
}

// checkAfter looks, once the engine is closed, for what the plugins have left and
// touched. Processes that a tier does not hold are ended.
func (h *hostileHost) checkAfter(t *testing.T, batch []hostileRow) {
	t.Helper()
	if removing() {
		t.Error("Close has returned, and a directory is still being removed")
		eventually(t, "directories being removed", func() string {
			if removing() {
				return "still"
			}
			return ""
		})
	}
	// A close has bounded time for the directories that plugins have filled. On a busy machine one may be left
	// to the next host.
	switch swept := proc.SweepLeftovers(t.Context(), ""); {
	case swept.Directories > 2:
		t.Errorf("%d directories were left to the next host", swept.Directories)
	case swept.Directories > 0:
		t.Logf("%d directories were left to the next host", swept.Directories)
	}
	if diff := cmp.Diff(snapshot(t, h.scene.canary), h.scene.before); diff != "" {
		t.Errorf("files outside were touched (-now +before):\n%s", diff)
	}
	allowed := map[string]bool{}
	for _, row := range batch {
		allowed[row.name] = row.survives && h.tier < sandbox.T2
	}
	var tooLong []string
	eventually(t, "processes left", func() string {
		tooLong = nil
		for pid, row := range labelled(h.scene.label()) {
			if !allowed[row] {
				tooLong = append(tooLong, fmt.Sprintf("%d of %s", pid, row))
			}
		}
		return strings.Join(tooLong, ", ")
	})
	survivors := labelled(h.scene.label())
	for pid := range survivors {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			t.Error(err)
		}
	}
	h.clear(t, batch)
}

// removing reports whether a goroutine removes a directory.
func removing() bool {
	stacks := make([]byte, 1<<20)
	return strings.Contains(string(stacks[:goruntime.Stack(stacks, true)]), "os.removeAll")
}

// labelled finds processes by an argument, with the row that each belongs to.
func labelled(label string) map[int]string {
	found := map[int]string{}
	paths, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return nil
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		args := strings.Split(string(data), "\x00")
		at := slices.Index(args, label)
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err != nil || at < 0 || !alive(pid) {
			continue
		}
		canary := slices.IndexFunc(args, func(a string) bool { return strings.HasPrefix(a, "canary=") })
		found[pid] = args[max(canary-1, 0)]
	}
	return found
}
