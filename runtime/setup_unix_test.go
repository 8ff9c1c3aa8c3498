//go:build unix

package runtime_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

// longTests is the variable of the environment that runs the tests which take minutes.
const longTests = "GRAPNEL_LONG"

// processBench is what a test with real processes needs: a folder for their
// sockets, the engine's events, and what was there before it began.
type processBench struct {
	dir   string
	files map[string]bool

	mu     sync.Mutex
	events []runtime.Event
	news   chan struct{}
}

// newBench makes a bench, and checks at the end of the test that nothing is left
// of what it started. Tests with a bench are not parallel, unless each is [alone]: they
// count what the whole process has open.
func newBench(t *testing.T) *processBench {
	t.Helper()
	dir, err := os.MkdirTemp("", "gt") //nolint:usetesting // a socket needs a short path
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("XDG_RUNTIME_DIR", dir)
	b := &processBench{dir: dir, files: openFiles(t), news: make(chan struct{})}
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() {
		goleak.VerifyNone(t, before)
		b.checkNothingLeft(t)
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return b
}

// bad declares a process of the test binary in one of its modes.
func bad(t testing.TB, name, mode string, args ...string) config.Plugin {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	env := map[string]config.Secret{"GORACE": {Value: "atexit_sleep_ms=0"}} // else the race detector holds a process up as it ends
	if strings.Contains(t.Name(), "OverGRPC") || os.Getenv(overGRPC) != "" {
		env[overGRPC] = config.Secret{Value: "1"}
	}
	p := config.Plugin{
		Name: name, Command: self, Path: self, Args: append([]string{asProgram, mode}, args...), Grants: allGrants(),
		Limits: config.Limits{Start: phases.Duration(generous)},
		Env:    config.Env{Set: env},
	}
	if strings.Contains(t.Name(), "OverStdio") {
		p.Transport = config.TransportStdio
	}
	return p
}

// start makes an engine with the given plugins and one that is good. Hooks have
// more time than usual: the machine may be busy.
func (b *processBench) start(t *testing.T, plugins ...config.Plugin) *runtime.Engine {
	t.Helper()
	return b.startWith(t, patient(append(plugins, bad(t, "good", "good"))...), runtime.Options{})
}

// patient is a configuration whose phases and hooks have time, but for those that
// say otherwise.
func patient(plugins ...config.Plugin) *config.Config {
	cfg := &config.Config{Version: 1, Plugins: plugins}
	cfg.Budgets.Turn.Time = phases.Duration(4 * generous)
	cfg.Budgets.Phases = map[phases.Phase]config.PhaseBudget{phases.PrePromptCompile: budget(2 * generous)}
	for i := range cfg.Plugins {
		p := &cfg.Plugins[i]
		id := p.Name + ".h"
		o := p.Subscriptions[id]
		if o.Timeout == nil {
			o.Timeout = new(phases.Duration(generous))
		}
		own := map[string]phases.Override{id: o}
		if p.Name == "bad" && slices.Contains(p.Args, "other") {
			own["bad.other"] = phases.Override{Timeout: o.Timeout}
		}
		p.Subscriptions = own
	}
	return cfg
}

// startWith makes an engine of any configuration; it is closed before the check
// that nothing is left.
func (b *processBench) startWith(t *testing.T, cfg *config.Config, o runtime.Options) *runtime.Engine {
	t.Helper()
	o.OnEvent = b.note
	o.Random = func() float64 { return 1 } // the shortest waits
	eng, err := runtime.New(t.Context(), cfg, o)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	t.Cleanup(func() { closeEngine(t, eng) })
	return eng
}

func (b *processBench) note(e runtime.Event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.events = append(b.events, e)
	close(b.news)
	b.news = make(chan struct{})
}

// await waits for an event, also one that has happened.
func (b *processBench) await(t testing.TB, what string, is func(runtime.Event) bool) runtime.Event {
	t.Helper()
	timeout := time.After(generous)
	for seen := 0; ; {
		b.mu.Lock()
		for ; seen < len(b.events); seen++ {
			if is(b.events[seen]) {
				found := b.events[seen]
				b.mu.Unlock()
				return found
			}
		}
		news := b.news
		b.mu.Unlock()
		select {
		case <-news:
		case <-timeout:
			t.Fatalf("no event: %s; there were %v", what, b.summary())
		}
	}
}

// awaitState waits until a plugin has been in a state n times.
func (b *processBench) awaitState(t testing.TB, plugin string, state phases.PluginState, n int) runtime.Event {
	t.Helper()
	return b.await(t, fmt.Sprintf("%s %s, %d times", plugin, state, n), func(e runtime.Event) bool {
		if e.Kind == runtime.EventPlugin && e.Plugin == plugin && e.State == string(state) {
			n--
		}
		return n == 0
	})
}

// awaitLine waits for a line that a plugin logged.
func (b *processBench) awaitLine(t testing.TB, plugin, prefix string) string {
	t.Helper()
	return b.await(t, plugin+" logs "+prefix, func(e runtime.Event) bool {
		return e.Kind == runtime.EventLog && e.Plugin == plugin && strings.HasPrefix(e.Detail, prefix)
	}).Detail
}

// summary lists the events but for the log lines.
func (b *processBench) summary() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var lines []string
	for _, e := range b.events {
		if e.Kind != runtime.EventLog {
			lines = append(lines, strings.Join(strings.Fields(fmt.Sprintf("%s %s %s %s", e.Kind, e.Plugin, e.State, e.Code)), " "))
		}
	}
	return lines
}

// count is how often the bad plugin came to a state for one code.
func (b *processBench) count(state, code string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := 0
	for _, e := range b.events {
		if e.Kind == runtime.EventPlugin && e.Plugin == "bad" && e.State == state && e.Code == code {
			n++
		}
	}
	return n
}

// checkGood fails if the good plugin was not served in a dispatch, or has been
// started again.
func checkGood(t testing.TB, eng *runtime.Engine, out *phases.Outcome) {
	t.Helper()
	if run := runOf(t, out, "good.h"); run.State != phases.StateSucceeded {
		t.Errorf("the good plugin: %s %s", run.State, run.Code)
	}
	if row := rowOf(t, eng, "good"); row.State != phases.PluginReady || row.Restarts != 0 {
		t.Errorf("the good plugin: %+v", row)
	}
}

// checkNothingLeft looks for folders, descriptors, children and processes with a
// mark of ours.
func (b *processBench) checkNothingLeft(t *testing.T) {
	t.Helper()
	if entries, err := os.ReadDir(b.dir); err != nil || len(entries) > 0 {
		t.Errorf("left in the runtime folder: %v, %v", entries, err)
	}
	eventually(t, "descriptors left", func() string {
		var left []string
		for name := range openFiles(t) {
			if !b.files[name] && !strings.HasPrefix(name, "anon_inode:") {
				left = append(left, name)
			}
		}
		return strings.Join(left, " ")
	})
	eventually(t, "processes left", func() string { return strings.Join(processesOf(t, os.Getpid()), " ") })
}

// eventually waits until problem returns "": for what the system does by itself.
func eventually(t testing.TB, what string, problem func() string) {
	t.Helper()
	deadline := time.After(generous)
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
func openFiles(t testing.TB) map[string]bool {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("no /proc")
	}
	files := map[string]bool{}
	for _, e := range entries {
		if name, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil && !strings.HasPrefix(name, "/proc/") {
			files[name] = true
		}
	}
	return files
}

// processesOf lists living processes with the mark of a host, and children of
// this process that nobody has reaped.
func processesOf(t testing.TB, host int) []string {
	t.Helper()
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	mark := fmt.Appendf(nil, "GRAPNEL_MARK=%d.", host)
	var found []string
	for _, dir := range dirs {
		env, _ := os.ReadFile(filepath.Join(dir, "environ"))
		stat, _ := os.ReadFile(filepath.Join(dir, "stat"))
		zombie := bytes.Contains(stat, fmt.Appendf(nil, ") Z %d ", os.Getpid()))
		if zombie || bytes.Contains(env, mark) {
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
