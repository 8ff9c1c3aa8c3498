package stats

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/phases"
)

// counting counts for one plugin with one hook.
func counting() *Counters {
	c := New(phases.Standard(), time.Now)
	c.Expect([]string{"house"}, []Hook{{ID: "house.rules", Plugin: "house", Phase: phases.PrePromptCompile}})
	return c
}

// hook is the stats of a subscription.
func (c *Counters) hook(id string) RunStats { return c.known.Load().hooks[id].stats() }

// answered is a run in a process.
func answered(state phases.RunState) *phases.Run {
	return &phases.Run{
		Subscription: "house.rules", Plugin: "house", Phase: phases.PrePromptCompile, State: state, Incarnation: 1, Attempts: 1, DurationMS: 0.1, BytesOut: 100,
	}
}

// BenchmarkCounters measures what counting costs a dispatch: its run, and itself.
func BenchmarkCounters(b *testing.B) {
	c, run, local := counting(), answered(phases.StateSucceeded), answered(phases.StateSucceeded)
	local.BytesOut = 0
	for _, bench := range []struct {
		name string
		do   func()
	}{
		{"run of a process", func() { c.Run(run, "") }},
		{"run inside the host", func() { c.Run(local, "") }},
		{"phase", func() { c.Dispatch(phases.PrePromptCompile, phases.StateSucceeded, time.Millisecond) }},
	} {
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				bench.do()
			}
		})
	}
}

// TestCountingAllocatesNothing: it is part of every dispatch.
func TestCountingAllocatesNothing(t *testing.T) {
	c, run := counting(), answered(phases.StateSucceeded)
	if n := testing.AllocsPerRun(100, func() { c.Run(run, "") }); n != 0 {
		t.Errorf("%v allocations per run", n)
	}
}

// TestUnknownNames: what is counted under names that nobody expects, or with unknown
// words, is not an error, makes no entry and changes no other stats.
func TestUnknownNames(t *testing.T) {
	t.Parallel()
	c := counting()
	strange := func(change func(*phases.Run)) *phases.Run {
		run := answered(phases.StateFailed)
		change(run)
		return run
	}
	c.Dispatch("no.phase", phases.StateSucceeded, 0)
	c.FailOpen("gone.hook")
	c.Abandoned("gone", "")
	c.Abandoned("house", "house.gone")
	c.LogDropped("gone", 3)
	c.AnswerDropped("gone")
	c.Job("gone", "done")
	c.PluginFailed("gone", "crash", "")
	for _, run := range []*phases.Run{
		strange(func(run *phases.Run) { run.Subscription = "house.gone" }),
		strange(func(run *phases.Run) { run.Phase, run.Plugin = phases.PhaseToolCall, "gone" }),
		strange(func(run *phases.Run) { run.Phase, run.Attempts = phases.PhaseToolCall, 0 }),
		strange(func(run *phases.Run) { run.Phase, run.Attempts = phases.PhaseHostCall, 0 }),
	} {
		c.Run(run, "")
	}
	c.Caller("gone", "").Unanswered(-1)
	c.Caller("house", "house.rules").Unanswered(-1)
	known := c.known.Load()
	if got := c.hook("house.rules"); got.Runs != 0 || got.Abandoned != 0 || got.LastError != nil {
		t.Errorf("the hook has %+v", got)
	}
	if tools := known.plugins["house"].tools.stats(); tools.Runs != 0 || known.plugins["house"].last != nil || len(known.hooks)+len(known.plugins) != 2 {
		t.Errorf("the tools have %+v, the plugin %+v", tools, known.plugins["house"].last)
	}
	c.Run(strange(func(run *phases.Run) { run.Code, run.State = "a word of its own", "no state" }), "")
	c.Run(strange(func(run *phases.Run) { run.Code = "a word of its own" }), "")
	got := c.hook("house.rules")
	if diff := cmp.Diff(map[phases.Cause]uint64{phases.CauseInternal: 1}, got.Failures); diff != "" || got.Runs != 1 {
		t.Errorf("words that are not causes (-want +got):\n%s", diff)
	}
}

// TestPhaseCountsNeverDecrease: the dispatches that did not fail are shown as a
// counter, and whoever reads one that decreases takes it for a restart.
func TestPhaseCountsNeverDecrease(t *testing.T) {
	t.Parallel()

	c := counting()
	var stop atomic.Bool
	var wait sync.WaitGroup
	for range 2 {
		wait.Go(func() {
			for !stop.Load() {
				c.Dispatch(phases.PrePromptCompile, phases.StateFailed, time.Millisecond)
			}
		})
	}
	for range 2000 {
		for _, row := range c.phaseRows() {
			if succeeded := row.Dispatches - row.Failed - row.Cancelled; succeeded != 0 {
				t.Errorf("%d dispatches succeeded of %d that all failed", succeeded, row.Dispatches)
			}
		}
		if t.Failed() {
			break
		}
	}
	stop.Store(true)
	wait.Wait()
}

// TestInARow: successes end a row of failures, what did not run leaves it alone.
func TestInARow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := counting()
		for _, step := range []struct {
			state phases.RunState
			want  uint64
		}{
			{phases.StateFailed, 1},
			{phases.StateTimedOut, 2},
			{phases.StateFiltered, 2},
			{phases.StateCached, 2},
			{phases.StateCancelled, 2},
			{phases.StateQueued, 2},
			{phases.StateUnavailable, 3},
			{phases.StateDenied, 0},
			{phases.StateBudgetExhausted, 1},
			{phases.StateShadowed, 0},
			{phases.StateFailed, 1},
			{phases.StateSucceeded, 0},
		} {
			time.Sleep(time.Second)
			run := answered(step.state)
			run.Code = string(phases.CauseTimeout)
			c.Run(run, string(step.state)+"\x1b[31m at\nlength")
			if got := c.hook("house.rules"); got.FailedInARow != step.want {
				t.Errorf("after %s: %d in a row, want %d", step.state, got.FailedInARow, step.want)
			}
		}
		got := c.hook("house.rules")
		if got.Runs != 9 || got.Cached != 1 || got.Failed != 5 || got.Failures[phases.CauseTimeout] != 5 || got.States[phases.StateFailed] != 2 {
			t.Errorf("stats: %+v", got)
		}
		if e := got.LastError; !e.At.Equal(time.Now().Add(-time.Second)) || e.Message != `failed at\u{a}length` {
			t.Errorf("the last error is %+v", e)
		}
	})
}

// TestSizes compares with counting each size by hand.
func TestSizes(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(5, 6))
	for range 200 {
		var s sizes
		var all []int
		for range 1 + r.IntN(50) {
			n := 1 + r.IntN(1<<r.IntN(26))
			if r.IntN(2) == 0 {
				n = 1<<r.IntN(26) + r.IntN(2)
			}
			s.record(n)
			all = append(all, n)
		}
		want := Sizes{Count: uint64(len(all))}
		for _, n := range all {
			want.Bytes += uint64(n)
		}
		for _, bound := range SizeBounds() {
			within := len(all) - len(slices.DeleteFunc(slices.Clone(all), func(n int) bool { return uint64(n) <= bound }))
			want.Within = append(want.Within, uint64(within))
		}
		if diff := cmp.Diff(want, s.snapshot()); diff != "" {
			t.Fatalf("sizes %v (-want +got):\n%s", all, diff)
		}
	}
	if b := SizeBounds(); b[0] != 64 || b[len(b)-1] != config.DefaultFrame*4 {
		t.Errorf("the bounds are %v", b)
	}
}

// TestExpect: stats continue when the plan changes, and begin again when another
// subscription takes the name.
func TestExpect(t *testing.T) {
	t.Parallel()
	c := counting()
	c.Run(answered(phases.StateSucceeded), "")
	expect := func(phase phases.Phase, ids ...string) {
		var list []Hook
		for _, id := range ids {
			list = append(list, Hook{ID: id, Plugin: "house", Phase: phase})
		}
		c.Expect([]string{"house"}, list)
	}
	runs := func(id string) string {
		if c.known.Load().hooks[id] == nil {
			return "absent"
		}
		return strconv.FormatUint(c.hook(id).Runs, 10)
	}
	expect(phases.PrePromptCompile, "house.rules", "house.more")
	if got := runs("house.rules") + " " + runs("house.more"); got != "1 0" {
		t.Errorf("after another plan: %s", got)
	}
	expect(phases.ToolPreCall, "house.rules")
	if got := runs("house.rules"); got != "0" {
		t.Errorf("in another phase: %s", got)
	}
	c.Forget(func(string) bool { return true }, func(_, id string) bool { return id != "house.more" })
	if got := runs("house.rules") + " " + runs("house.more"); got != "0 absent" {
		t.Errorf("without a hook: %s", got)
	}
	c.Forget(func(string) bool { return false }, func(string, string) bool { return true })
	if got := runs("house.rules"); got != "absent" {
		t.Errorf("without its plugin: %s", got)
	}
}

// TestUnanswered: a call that is answered before it is counted as abandoned does not
// count as unanswered for ever.
func TestUnanswered(t *testing.T) {
	t.Parallel()

	c := counting()
	r := c.Caller("house", "house.rules")
	for _, step := range []struct {
		add  int64
		want int
	}{{-1, 0}, {1, 0}, {1, 1}} {
		if r.Unanswered(step.add); r.stats().Abandoned != step.want {
			t.Errorf("%d are unanswered, want %d", r.stats().Abandoned, step.want)
		}
	}
}
