package runtime

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/internal/plan"
	"github.com/grapnelhq/grapnel/phases"
)

// tallied is a tally that knows one plugin with one hook.
func tallied() *tally {
	t := newTally(phases.Standard())
	g := &generation{instances: []*instance{{declared: config.Plugin{Name: "house"}}}}
	sub := &plan.Subscription{ID: "house.rules", Plugin: "house", Hook: phases.Hook{Phase: phases.PrePromptCompile}}
	t.know(g, &planned{phases: map[phases.Phase]*plannedPhase{sub.Phase: {Phase: &plan.Phase{Expected: []*plan.Subscription{sub}}}}})
	return t
}

// answered is the event of a run in a process.
func answered(state phases.RunState) *Event {
	run := &phases.Run{
		Subscription: "house.rules", Plugin: "house", Phase: phases.PrePromptCompile, State: state, Incarnation: 1, Attempts: 1, DurationMS: 0.1, BytesOut: 100,
	}
	return &Event{Kind: EventRun, Plugin: "house", Subscription: run.Subscription, Phase: run.Phase, State: string(state), Run: run}
}

// BenchmarkTally is what counting costs a dispatch: its run, and itself.
func BenchmarkTally(b *testing.B) {
	t, run := tallied(), answered(phases.StateSucceeded)
	local := answered(phases.StateSucceeded)
	local.Run.BytesOut = 0
	phase := &Event{Kind: EventDispatch, Phase: phases.PrePromptCompile, State: string(phases.StateSucceeded), Took: time.Millisecond}
	for _, bench := range []struct {
		name string
		ev   *Event
	}{{"run of a process", run}, {"run inside the host", local}, {"phase", phase}} {
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				t.take(bench.ev, time.Now)
			}
		})
	}
}

// TestCountingAllocatesNothing: it stands in the path of every dispatch.
func TestCountingAllocatesNothing(t *testing.T) {
	counting, run := tallied(), answered(phases.StateSucceeded)
	if n := testing.AllocsPerRun(100, func() { counting.take(run, time.Now) }); n != 0 {
		t.Errorf("%v allocations a run", n)
	}
}

// TestTallyTakesAnything: events of what nobody expects, or with words that nobody
// knows, are no mistake, make no entry, and change no other figures.
func TestTallyTakesAnything(t *testing.T) {
	t.Parallel()
	counting := tallied()
	strange := func(change func(*Event)) Event {
		ev := answered(phases.StateFailed)
		change(ev)
		return *ev
	}
	for _, ev := range []Event{
		{Kind: "no kind"},
		{Kind: EventDispatch, Phase: "no.phase"},
		{Kind: EventFailOpen, Subscription: "gone.hook"},
		{Kind: EventAbandoned, Plugin: "gone"},
		{Kind: EventAbandoned, Plugin: "house", Subscription: "house.gone"},
		{Kind: EventLog, Plugin: "gone", Count: 3},
		{Kind: EventJob, Plugin: "gone"},
		{Kind: EventPlugin, Plugin: "house", State: string(phases.PluginReady), Code: "crash"},
		strange(func(ev *Event) { ev.Run.Subscription = "house.gone" }),
		strange(func(ev *Event) { ev.Run.Phase, ev.Run.Plugin = phases.PhaseToolCall, "gone" }),
		strange(func(ev *Event) { ev.Run.Phase, ev.Run.Attempts = phases.PhaseToolCall, 0 }),
		strange(func(ev *Event) { ev.Run.Phase, ev.Run.Attempts = phases.PhaseHostCall, 0 }),
	} {
		counting.take(&ev, time.Now)
	}
	counting.callers("gone", "").unanswered(-1)
	counting.callers("house", "house.rules").unanswered(-1)
	known := counting.known.Load()
	if got := known.hooks["house.rules"].snapshot(); got.Runs != 0 || got.Abandoned != 0 || got.LastError != nil {
		t.Errorf("the hook has %+v", got)
	}
	if tools := known.plugins["house"].tools.snapshot(); tools.Runs != 0 || known.plugins["house"].last != nil || len(known.hooks)+len(known.plugins) != 2 {
		t.Errorf("the tools have %+v, the plugin %+v", tools, known.plugins["house"].last)
	}
	ev := strange(func(ev *Event) { ev.Run.Code, ev.Run.State = "a word of its own", "no state" })
	counting.take(&ev, time.Now)
	ev = strange(func(ev *Event) { ev.Run.Code = "a word of its own" })
	counting.take(&ev, time.Now)
	got := known.hooks["house.rules"].snapshot()
	if diff := cmp.Diff(map[phases.Cause]uint64{phases.CauseInternal: 1}, got.Failures); diff != "" || got.Runs != 1 {
		t.Errorf("words that are no causes (-want +got):\n%s", diff)
	}
}

// TestInARow: successes end a row of failures, what did not run leaves it alone.
func TestInARow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		counting := tallied()
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
			ev := answered(step.state)
			ev.Run.Code, ev.Message = string(phases.CauseTimeout), string(step.state)+"\x1b[31m at\nlength"
			counting.take(ev, time.Now)
			if got := counting.known.Load().hooks["house.rules"].snapshot(); got.FailedInARow != step.want {
				t.Errorf("after %s: %d in a row, want %d", step.state, got.FailedInARow, step.want)
			}
		}
		got := counting.known.Load().hooks["house.rules"].snapshot()
		if got.Runs != 9 || got.Cached != 1 || got.Failed != 5 || got.Failures[phases.CauseTimeout] != 5 || got.States[phases.StateFailed] != 2 {
			t.Errorf("figures: %+v", got)
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

// TestKnow: figures go on when a plan is made anew, and begin anew when a subscription
// of the same name is another one.
func TestKnow(t *testing.T) {
	t.Parallel()
	counting := tallied()
	counting.take(answered(phases.StateSucceeded), time.Now)
	g := &generation{instances: []*instance{{declared: config.Plugin{Name: "house"}}}}
	learn := func(phase phases.Phase, ids ...string) {
		var list []*plan.Subscription
		for _, id := range ids {
			list = append(list, &plan.Subscription{ID: id, Plugin: "house", Hook: phases.Hook{Phase: phase}})
		}
		counting.know(g, &planned{phases: map[phases.Phase]*plannedPhase{phase: {Phase: &plan.Phase{Expected: list}}}})
	}
	runs := func(id string) string {
		f := counting.known.Load().hooks[id]
		if f == nil {
			return "absent"
		}
		return strconv.FormatUint(f.snapshot().Runs, 10)
	}
	learn(phases.PrePromptCompile, "house.rules", "house.more")
	if got := runs("house.rules") + " " + runs("house.more"); got != "1 0" {
		t.Errorf("after another plan: %s", got)
	}
	learn(phases.ToolPreCall, "house.rules")
	if got := runs("house.rules"); got != "0" {
		t.Errorf("in another phase: %s", got)
	}
}

// TestUnanswered: a call that comes back before it is counted as left does not count
// as unanswered for ever.
func TestUnanswered(t *testing.T) {
	t.Parallel()

	f := tallied().callers("house", "house.rules")
	f.unanswered(-1)
	if got := f.snapshot().Abandoned; got != 0 {
		t.Errorf("%d are unanswered, want none", got)
	}
	f.unanswered(1)
	if got := f.snapshot().Abandoned; got != 0 {
		t.Errorf("%d are unanswered after all, want none", got)
	}
	f.unanswered(1)
	if got := f.snapshot().Abandoned; got != 1 {
		t.Errorf("%d are unanswered, want 1", got)
	}
}
