package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/grapnelhq/grapnel/internal/proc/sandbox"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

// hostileRow is one behaviour and what is expected of it. The zero value of all but
// the name is a plugin that does what it does and harms nobody.
type hostileRow struct {
	// name is that of the behaviour, and of the plugin.
	name string
	// want is what the plugin reports in T0, T1 and T2: "ok" is an attack that the tier
	// does not defend against. Empty is anything.
	want [3]string
	// never is a plugin that does not come up.
	never bool
	// memory gives it a limit.
	memory bool
	// survives is a process of it that lives on below T2.
	survives bool
	// leaves is a plugin that, outside of a sandbox, leaves a directory in the runtime
	// directory. Tests remove it.
	leaves bool
	// says is a plugin that does harm by what it says alone.
	says bool
	// slows is a plugin that takes time of the processor, which no tier bounds.
	slows bool
	// apart wants an engine of its own.
	apart bool
	// closes is a row whose test closes the engine.
	closes bool
	// test is a check of its own, before the plugin's report is awaited.
	test func(t *testing.T, b *processBench, eng *runtime.Engine)
}

// wanted is what the plugin must report in a tier.
func (r hostileRow) wanted(tier sandbox.Tier) string { return r.want[tier] }

// held says what a tier makes of a row.
func (r hostileRow) held(tier sandbox.Tier) bool {
	return r.want[tier] != "ok" && (!r.survives || tier == sandbox.T2) && (!r.leaves || tier != sandbox.T0)
}

// helpers are behaviours that other ones start.
func helpers() []string { return []string{"process-spawn", "dir-lock", "dir-race"} }

// hostileNames are the rows, in order: one for each behaviour.
func hostileNames() []string {
	return slices.DeleteFunc(hostileBehaviours(), func(name string) bool { return slices.Contains(helpers(), name) })
}

// hostileRowOf is what is expected of a behaviour.
func hostileRowOf(name string) hostileRow {
	row := hostileSpecial()[name]
	row.name = name
	switch kind, _, _ := strings.Cut(name, "-"); kind {
	case "line":
		row.never = true
	case "http2":
		row.never, row.says = true, true
	case "hostcall", "frame", "describe", "answer":
		row.slows, row.says = true, true
	case "reach":
		if row.want == [3]string{} {
			row.want = [3]string{"ok", "denied", "denied"}
		}
	}
	if row.want == [3]string{} && row.test == nil {
		row.want = [3]string{"done", "done", "done"}
	}
	return row
}

// hostileSpecial are the rows of which more is to be said.
func hostileSpecial() map[string]hostileRow {
	return map[string]hostileRow{
		"shake-by-child": {never: true}, "shake-twice": {never: true}, "shake-then-exec": {never: true}, "shake-then-exit": {never: true}, "shake-then-close": {never: true},
		"shake-binary-noise": {never: true}, "shake-no-newline": {never: true},
		// A plugin speaks with its host only, in every tier.
		"reach-neighbours":        {want: [3]string{"denied", "denied", "denied"}},
		"process-daemon":          {survives: true},
		"process-memory":          {memory: true, apart: true, test: endedForMemory},
		"process-memfd":           {memory: true, apart: true, test: endedForMemory},
		"process-shared-memory":   {memory: true, apart: true, test: endedForMemory},
		"process-page-tables":     {memory: true, apart: true, test: endedForMemory},
		"process-memory-orphan":   {memory: true, apart: true, test: endedForMemory},
		"process-memory-sibling":  {memory: true, apart: true, test: endedForMemory},
		"process-memory-children": {memory: true, apart: true, test: endedForMemory},
		"process-shared-dropped":  {memory: true, apart: true, test: endedForMemoryOfRoot},
		"process-threads":         {slows: true, apart: true},
		"process-timers":          {slows: true},
		"process-logs-binary":     {slows: true},
		"process-logs-lines":      {slows: true},
		"frame-flood":             {slows: true},
		"shake-and-flood":         {slows: true},
		"dir-swapped":             {leaves: true, apart: true},
		"dir-mounted":             {leaves: true, apart: true},
		"answer-jobs-never-done":  {apart: true, closes: true, test: closedInTime},
		"answer-extremes":         {test: extremesAnswered, apart: true},
	}
}

// endedForMemory waits for the end of a plugin that holds more than its limit.
func endedForMemory(t *testing.T, b *processBench, _ *runtime.Engine) {
	t.Helper()
	b.await(t, "a plugin that is ended for memory", func(e runtime.Event) bool {
		return e.Kind == runtime.EventPlugin && strings.HasPrefix(e.Plugin, "process-") && e.Code == string(phases.CauseOOM)
	})
}

// endedForMemoryOfRoot is endedForMemory for what only a host that is root sees.
func endedForMemoryOfRoot(t *testing.T, b *processBench, eng *runtime.Engine) {
	t.Helper()
	if os.Geteuid() == 0 {
		endedForMemory(t, b, eng)
	}
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
	if _, err := fmt.Sscanf(b.awaitLine(t, "answer-extremes", "did "), "did %d", &n); err != nil || n < 300 {
		t.Fatalf("%d extremes, %v", n, err)
	}
	for range n {
		dispatchHostile(t, eng)
	}
	if row := rowOf(t, eng, "answer-extremes"); row.Restarts != 0 {
		t.Errorf("after %d extremes: %+v", n, row)
	}
}

// clear removes what rows may leave outside of a sandbox.
func (h *hostileHost) clear(t *testing.T, batch []hostileRow) {
	t.Helper()
	for _, row := range batch {
		if !row.leaves || h.tier != sandbox.T0 {
			continue
		}
		dirs, err := filepath.Glob(filepath.Join(os.Getenv("XDG_RUNTIME_DIR"), "grapnel-*"))
		for _, dir := range dirs {
			if err := unix.Unmount(filepath.Join(dir, "m"), unix.MNT_DETACH); err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.EPERM) {
				t.Error(err)
			}
			err = errors.Join(err, os.RemoveAll(dir))
		}
		if err != nil {
			t.Error(err)
		}
	}
}

// hostileSummary is the table of docs/FAILURES.md: by family, how many behaviours there
// are, and which of them a tier does not hold.
func hostileSummary() []string {
	families := map[string][]hostileRow{}
	for _, name := range hostileNames() {
		family, _, _ := strings.Cut(name, "-")
		families[family] = append(families[family], hostileRowOf(name))
	}
	var lines []string
	for _, family := range slices.Sorted(maps.Keys(families)) {
		cells := []string{fmt.Sprintf("| `%s` | %d", family, len(families[family]))}
		for _, tier := range []sandbox.Tier{sandbox.T0, sandbox.T1, sandbox.T2} {
			var not []string
			for _, row := range families[family] {
				if !row.held(tier) {
					not = append(not, "`"+strings.TrimPrefix(row.name, family+"-")+"`")
				}
			}
			cell := "held"
			if len(not) > 0 {
				cell = "not: " + strings.Join(not, ", ")
			}
			cells = append(cells, cell)
		}
		lines = append(lines, strings.Join(cells, " | ")+" |")
	}
	return lines
}

// TestHostileDocument: docs/FAILURES.md says which behaviours are held.
func TestHostileDocument(t *testing.T) {
	t.Parallel()

	data, err := os.ReadFile("../docs/FAILURES.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(data), "| family |")
	for _, line := range hostileSummary() {
		if !strings.Contains(table, line+"\n") {
			t.Errorf("docs/FAILURES.md lacks the line\n%s", line)
		}
	}
}
