package runtime_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

// freeze keeps a process from running, and so from dying, until the function is called
// that it returns.
func freeze(t *testing.T, pid int) (thaw func()) {
	t.Helper()

	group, err := os.MkdirTemp("/sys/fs/cgroup/freezer", "grapnel-test-") //nolint:usetesting // a control group
	if err != nil {
		t.Skip("takes root and the freezer of the first version:", err)
	}
	set := func(name, value string) {
		if err := os.WriteFile(filepath.Join(group, name), []byte(value), 0); err != nil {
			t.Error(err)
		}
	}
	set("cgroup.procs", strconv.Itoa(pid))
	set("freezer.state", "FROZEN")
	eventually(t, "not frozen", func() string {
		state, _ := os.ReadFile(filepath.Join(group, "freezer.state"))
		return strings.TrimPrefix(string(state), "FROZEN\n")
	})
	return func() {
		set("freezer.state", "THAWED")
		eventually(t, "control group", func() string { return strings.TrimPrefix(fmt.Sprint(os.Remove(group)), "<nil>") })
	}
}

// hostChildren lists the children of this process.
func hostChildren(t *testing.T) (pids []int) {
	t.Helper()

	tasks, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range tasks {
		data, _ := os.ReadFile(path)
		for field := range strings.FieldsSeq(string(data)) {
			var pid int
			if _, err := fmt.Sscan(field, &pid); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// TestCloseReportsLivingProcesses: Close is no success while a process of a plugin
// lives, also of one that a reload has removed.
func TestCloseReportsLivingProcesses(t *testing.T) {
	for _, removed := range []bool{false, true} {
		t.Run(fmt.Sprintf("removed before %v", removed), func(t *testing.T) {
			if !removed && os.Getenv(longTests) == "" {
				t.Skip("it waits for seconds: GRAPNEL_LONG=1 runs it")
			}
			if alone(t) {
				return
			}
			b := newBench(t)
			before := hostChildren(t)
			good, err := runtime.New(t.Context(), &config.Config{Version: 1, Plugins: []config.Plugin{bad(t, "good", "good")}}, runtime.Options{OnEvent: b.note})
			if err != nil {
				t.Fatal(err)
			}
			b.awaitState(t, "good", phases.PluginReady, 1)
			pids := slices.DeleteFunc(hostChildren(t), func(pid int) bool { return slices.Contains(before, pid) })
			if len(pids) != 1 {
				t.Fatalf("processes %v", pids)
			}
			thaw := freeze(t, pids[0])
			if removed {
				if err := good.Reload(t.Context(), &config.Config{Version: 1}); err != nil {
					t.Error(err)
				}
				b.await(t, "the plugin is stopped", func(e runtime.Event) bool {
					return e.Kind == runtime.EventPlugin && e.State == "stopped"
				})
			}
			err = good.Close(context.WithoutCancel(t.Context()))
			if want := fmt.Sprintf("plugin good (process %d) could not be killed in time", pids[0]); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("Close = %v, want %q", err, want)
			}
			thaw()
			eventually(t, "the folder", func() string {
				entries, _ := os.ReadDir(b.dir)
				return strings.TrimPrefix(fmt.Sprint(entries), "[]")
			})
		})
	}
}
