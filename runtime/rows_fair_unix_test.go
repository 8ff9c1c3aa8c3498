//go:build unix

package runtime_test

import (
	"encoding/json"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

// fairnessRows are plugins that would have more than their share of a phase: of
// its time, its order, its input, or its rules.
func fairnessRows() []rowCase {
	alone := []string{"good"}
	return []rowCase{
		{row: 26, name: "ties", test: rowTies},
		{row: 31, mode: "slow", change: quick, start: "ready", run: "timed_out timeout", sections: alone, then: stillUp},
		{row: 35, mode: "good", name: "condition", start: "ready", run: "failed condition", sections: alone, change: func(p *config.Plugin) {
			p.Subscriptions = map[string]phases.Override{"bad.h": {When: new(`input.sections[5] == "x"`)}}
		}},
		{row: 29, name: "clock-jumps", test: rowClockJumps},
		{row: 31, name: "whole-phase", test: rowWholePhase},
		{row: 33, name: "breaker", test: rowBreaker, modes: []string{"moods"}},
		{row: 38, name: "copies", test: rowCopies, modes: []string{"vandal", "witness"}},
	}
}

// rowTies is row 26: plugins of equal priority are in one order, whatever the
// order of their declarations.
func rowTies(t *testing.T, b *processBench) {
	t.Helper()
	random := rand.New(rand.NewPCG(26, 26))
	var want []string
	for round := range 5 {
		plugins := []config.Plugin{bad(t, "a", "good"), bad(t, "b", "good"), bad(t, "c", "good"), bad(t, "d", "good")}
		random.Shuffle(len(plugins), func(i, j int) { plugins[i], plugins[j] = plugins[j], plugins[i] })
		eng := b.startWith(t, patient(plugins...), runtime.Options{})
		out := dispatch(t, eng, &phases.PrePromptCompileInput{})
		got := append(states(out), sectionIDs(out)...)
		if round == 0 {
			want = got
		}
		if diff := cmp.Diff(got, want); diff != "" || len(got) != 8 {
			t.Errorf("round %d (-got +want):\n%s", round, diff)
		}
		closeEngine(t, eng)
	}
}

// rowClockJumps is row 29: a clock that jumps by days, either way, ends no call, no
// wait and no process.
func rowClockJumps(t *testing.T, b *processBench) {
	t.Helper()
	var reads atomic.Int64
	jumping := func() time.Time {
		n := reads.Add(1)
		return time.Now().Round(0).Add(time.Duration(n%3-1) * 48 * time.Hour)
	}
	eng := b.startWith(t, patient(bad(t, "bad", "good"), bad(t, "good", "good")), runtime.Options{
		Now: jumping, Health: runtime.Health{Interval: 10 * time.Millisecond},
	})
	for range 30 {
		out := dispatch(t, eng, &phases.PrePromptCompileInput{})
		checkGood(t, eng, out)
		if got := runOf(t, out, "bad.h"); got.State != phases.StateSucceeded || got.DurationMS < 0 || got.DurationMS > 10_000 {
			t.Errorf("run = %+v", got)
		}
		stillUp(t, b, eng, out)
	}
	if reads.Load() < 30 {
		t.Errorf("the clock was read %d times", reads.Load())
	}
}

// rowWholePhase is row 31: who takes the time of the phase is named, and those
// that got none; neither fails the phase.
func rowWholePhase(t *testing.T, b *processBench) {
	t.Helper()
	p, good := bad(t, "bad", "slow"), bad(t, "good", "good")
	p.Subscriptions = map[string]phases.Override{"bad.h": {Timeout: new(phases.Duration(300 * time.Millisecond))}}
	good.Subscriptions = map[string]phases.Override{"good.h": {After: &[]string{"bad.h"}}}
	cfg := patient(p, good)
	cfg.Budgets.Phases[phases.PrePromptCompile] = budget(300 * time.Millisecond)
	for i := range cfg.Plugins { // patience is more than the phase has
		for id, o := range cfg.Plugins[i].Subscriptions {
			o.Timeout = new(phases.Duration(300 * time.Millisecond))
			cfg.Plugins[i].Subscriptions[id] = o
		}
	}
	eng := b.startWith(t, cfg, runtime.Options{})
	out := dispatch(t, eng, &phases.PrePromptCompileInput{})
	checkSame(t, "ledger", states(out), []string{"bad.h timed_out timeout", "good.h budget_exhausted budget_exhausted"})
	if spent := out.Budget.SpentBy; len(spent) == 0 || spent[0].Subscription != "bad.h" || spent[0].MS < 250 || out.Error != nil {
		t.Errorf("spent by %+v, error %v", spent, out.Error)
	}
	stillUp(t, b, eng, out)
}

// rowBreaker is row 33: denials are decisions, however many, and one slow hook is
// not asked any more while its siblings are.
func rowBreaker(t *testing.T, b *processBench) {
	t.Helper()
	cfg := patient(bad(t, "bad", "moods"))
	cfg.Budgets.Phases[phases.PrePolicy] = budget(2 * generous)
	cfg.Plugins[0].Subscriptions["bad.deny"] = phases.Override{Timeout: new(phases.Duration(generous))}
	eng := b.startWith(t, cfg, runtime.Options{})
	for range 20 {
		out := dispatch(t, eng, &phases.PrePolicyInput{})
		if diff := cmp.Diff(states(out), []string{"bad.deny denied denied"}); diff != "" {
			t.Fatalf("ledger (-got +want):\n%s", diff)
		}
	}
	var last *phases.Outcome
	for range 6 {
		last = dispatch(t, eng, &phases.PrePromptCompileInput{})
	}
	checkSame(t, "ledger", sorted(states(last)), []string{"bad.h succeeded", "bad.slow unavailable breaker_open"})
	stillUp(t, b, eng, last)
}

// rowCopies is row 38: whatever a plugin does with what it was given, in a process
// of its own or in the host's, others see what the host gave, and so does the host.
func rowCopies(t *testing.T, b *processBench) {
	t.Helper()
	given := func() (phases.Context, *phases.PrePromptCompileInput) {
		c := host()
		c.Flags, c.Metadata = map[string]bool{"on": true}, map[string]json.RawMessage{"m": raw(`"value"`)}
		return c, &phases.PrePromptCompileInput{ToolCalling: true, AvailableTools: []string{"t1", "t2"}, Sections: []string{"s"}}
	}
	cfg := patient(bad(t, "vandal", "vandal"), config.Plugin{Name: "inside", Grants: allGrants()}, bad(t, "witness", "witness"))
	witness := cfg.Plugins[2].Subscriptions["witness.h"]
	witness.After = &[]string{"vandal.h", "inside.h"}
	cfg.Plugins[2].Subscriptions["witness.h"] = witness
	eng := b.startWith(t, cfg, runtime.Options{InProcess: map[string]runtime.Plugin{"inside": vandal()}})
	c, in := given()
	out := outcome(t)(eng.Dispatch(t.Context(), c, in))
	checkSame(t, "ledger", sorted(states(out)), []string{"inside.h succeeded", "vandal.h succeeded", "witness.h succeeded"})
	wantContext, wantInput := given()
	checkSame(t, "the host's own context", c, wantContext)
	checkSame(t, "the host's own input", in, wantInput)
	const want = `{"flags":{"on":true},"input":{"tool_calling":true,"available_tools":["t1","t2"],"sections":["s"]},"metadata":{"m":"value"},"thread":"t"}`
	if got := contentOf(out, "witness"); got != want {
		t.Errorf("the witness saw %s", got)
	}
}
