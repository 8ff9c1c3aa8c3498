package agentsdoc_test

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/plugins/agentsdoc"
	"github.com/grapnelhq/grapnel/runtime"
	"github.com/grapnelhq/grapnel/sdk/serve"
)

// mark is the variable by which a test finds its own plugin's process.
const mark = "AGENTSDOC_TEST"

// patience is how long a test waits for what must come.
const patience = time.Minute

// process is an engine with the plugin as a process of its own.
type process struct {
	*runtime.Engine
	events chan runtime.Event
	mark   string
}

func startProcess(tb testing.TB, settings string) *process {
	tb.Helper()
	// A socket needs a short path.
	dir, err := os.MkdirTemp("", "ad") //nolint:usetesting // the test's own directory has a long name
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = os.RemoveAll(dir) }) // only litter in a temporary directory
	launches, err := serve.Plugins{agentsdoc.New}.Launches()
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		for _, launch := range launches {
			_ = launch.File.Close() // one file, open for all of them
		}
	})
	p := &process{events: make(chan runtime.Event, 10_000), mark: filepath.Base(dir)}
	text := "version: 1\nplugins:\n  - name: agentsdoc\n    builtin: agentsdoc" + grants +
		"    env: {set: {" + mark + ": " + p.mark + "}}\n    config: " + settings + "\n"
	p.Engine = started(tb, text, runtime.Options{Builtins: launches, OnEvent: func(e runtime.Event) {
		if e.Kind == runtime.EventPlugin {
			p.events <- e
		}
	}})
	return p
}

// pids are the processes of the plugin.
func (p *process) pids(tb testing.TB) []int {
	tb.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		tb.Fatal(err)
	}
	var pids []int
	for _, path := range all {
		data, err := os.ReadFile(path)
		if err != nil || !slices.Contains(strings.Split(string(data), "\x00"), mark+"="+p.mark) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err != nil {
			tb.Fatal(err)
		}
		pids = append(pids, pid)
	}
	return pids
}

// kill ends the plugin's process and waits until another one is ready.
func (p *process) kill(tb testing.TB) {
	tb.Helper()
	for len(p.events) > 0 {
		<-p.events
	}
	pids := p.pids(tb)
	if len(pids) == 0 {
		tb.Fatal("there is no process of the plugin")
	}
	for _, pid := range pids {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			tb.Fatal(err)
		}
	}
	end := time.After(patience)
	for down := false; ; {
		select {
		case e := <-p.events:
			down = down || e.State != string(phases.PluginReady)
			if down && e.State == string(phases.PluginReady) {
				return
			}
		case <-end:
			tb.Fatal("no other process was started")
		}
	}
}

// TestKilled: a plugin whose process is killed knows what was delivered, and makes the text of what there is now.
func TestKilled(t *testing.T) {
	t.Parallel()
	base := build(t, map[string]string{"r/.git/HEAD": "", "r/AGENTS.md": "one", "r/a/AGENTS.md": "deep one", "r/b/AGENTS.md": "deep two"})
	eng := startProcess(t, "{global: false}")
	h := session(t, eng.Engine, "s", base+"/r")
	h.compile()
	if got := reminders(h.touch(base + "/r/a/x.go")); len(got) != 1 {
		t.Fatalf("reminders are %v", got)
	}
	before := eng.pids(t)
	eng.kill(t)
	if pids := eng.pids(t); slices.Equal(pids, before) {
		t.Fatalf("the process is still %v", pids)
	}
	if got := reminders(h.touch(base + "/r/a/x.go")); len(got) != 0 {
		t.Errorf("what was delivered is delivered again: %v", got)
	}
	if got := reminders(h.touch(base + "/r/b/x.go")); len(got) != 1 || !strings.Contains(got[0].Text, "deep two") {
		t.Errorf("what was not delivered is not: %v", got)
	}
	write(t, base+"/r/AGENTS.md", "two")
	eng.kill(t) // so that nobody has watched
	done := h.compile()
	if got := section(done); !strings.Contains(got, "\ntwo\n") || len(done.Reminders) != 0 {
		t.Errorf("the reminders are %+v, the text is\n%s", done.Reminders, got)
	}
}
