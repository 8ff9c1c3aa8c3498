package stats

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/phases"
)

// counting counts for one plugin with one hook.
func counting() *Counters {
	c := New(phases.Standard(), time.Now)
	c.Expect([]string{"house"}, []Hook{{ID: "house.rules", Plugin: "house", Phase: phases.PrePromptCompile}})
	return c
}

// hook is the stats of a subscription.
func (c *Counters) hook(id string) RunStats { return c.hooks[id].stats() }

// answered is a run in a process.
func answered(state phases.RunState) *phases.Run {
	return &phases.Run{
		Subscription: "house.rules", Plugin: "house", Phase: phases.PrePromptCompile, State: state, Incarnation: 1, Attempts: 1, DurationMS: 0.1, BytesOut: 100,
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
	unanswered, _ := c.Unanswered("gone", "")
	unanswered()
	_, answered := c.Unanswered("house", "house.rules")
	answered() // before it is counted as unanswered
	if got := c.hook("house.rules"); got.Runs != 0 || got.Abandoned != 0 || got.LastError != nil {
		t.Errorf("the hook has %+v", got)
	}
	if tools, last := c.plugins["house"].tools.stats(), c.plugins["house"].LastError; tools.Runs != 0 || last != nil || len(c.hooks)+len(c.plugins) != 2 {
		t.Errorf("the tools have %+v, the plugin %+v", tools, last)
	}
	c.Run(strange(func(run *phases.Run) { run.Code = "a word of its own" }), "")
	got := c.hook("house.rules")
	if diff := cmp.Diff(map[phases.Cause]uint64{phases.CauseInternal: 1}, got.Failures); diff != "" || got.Runs != 1 {
		t.Errorf("words that are not causes (-want +got):\n%s", diff)
	}
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

// TestSizes: a size counts for each bound that it does not exceed.
func TestSizes(t *testing.T) {
	t.Parallel()
	got := newPluginCounters("p").Replies
	for _, n := range []int{1, 64, 65, 1 << 20, 20 << 20} {
		got.record(n)
	}
	if diff := cmp.Diff(Sizes{Count: 5, Bytes: 130 + 21<<20, Within: []uint64{2, 3, 3, 3, 3, 3, 3, 4, 4, 4}}, got); diff != "" {
		t.Errorf("sizes (-want +got):\n%s", diff)
	}
}

// TestExpect: stats begin again when another subscription takes the name, and are forgotten.
func TestExpect(t *testing.T) {
	t.Parallel()
	c := counting()
	check := func(want map[string]uint64) {
		t.Helper()
		got := map[string]uint64{}
		for id := range c.hooks {
			got[id] = c.hook(id).Runs
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("runs (-want +got):\n%s", diff)
		}
	}
	c.Run(answered(phases.StateSucceeded), "")
	check(map[string]uint64{"house.rules": 1})
	c.Expect([]string{"house"}, []Hook{{ID: "house.rules", Plugin: "house", Phase: phases.ToolPreCall}, {ID: "house.more", Plugin: "house"}})
	check(map[string]uint64{"house.rules": 0, "house.more": 0})
	c.Forget(func(string) bool { return true }, func(_, id string) bool { return id != "house.more" })
	check(map[string]uint64{"house.rules": 0})
}
