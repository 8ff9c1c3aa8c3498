//go:build unix

package runtime_test

import (
	"slices"
	"testing"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
	process "github.com/grapnelhq/grapnel/sdk/serve"
)

// judgeProgram is a plugin that denies the end of every turn.
func judgeProgram() int {
	if process.Serve(plugin("judge", on("end", phases.PreEnd, reply(deny("not yet")), phases.KindDecision))) != nil {
		return 1
	}
	return 0
}

// TestPreEndOfProcess: a plugin in a process of its own, which always denies, makes a turn go on eight times.
func TestPreEndOfProcess(t *testing.T) {
	if alone(t) {
		return
	}
	b, sink := newBench(t), &memorySink{}
	cfg := patient(bad(t, "judge", "judge"))
	cfg.Plugins[0].Subscriptions = map[string]phases.Override{"judge.end": {Timeout: new(phases.Duration(generous))}}
	cfg.Budgets.Phases[phases.PreEnd] = config.PhaseBudget{Time: phases.Duration(generous)}
	turn := begin(t, b.startWith(t, cfg, runtime.Options{Sink: sink}))
	for i := range phases.MaxForced + 1 {
		prompted(t)(turn.Compile(t.Context(), runtime.CompileInput{}))
		end, err := turn.PreEnd(t.Context(), &phases.PreEndInput{Text: phases.T("done"), Forced: 100})
		if err != nil {
			t.Fatal(err)
		}
		enough := i >= phases.MaxForced
		if end.GoOn == enough || enough != hasCode(end.Outcome.Diagnostics, phases.CodeForcedEnough) || !enough && end.Reason != "not yet" || enough && end.Outcome.Decision.Verdict != phases.VerdictAllow {
			t.Errorf("end %d: %+v, diagnostics %+v", i, end, end.Outcome.Diagnostics)
		}
	}
	b.await(t, "the event", func(e runtime.Event) bool { return e.Code == phases.CodeForcedEnough && e.Subscription == "judge.end" })
	outcome(t)(turn.End(t.Context(), nil))
	if !slices.ContainsFunc(sink.records[len(sink.records)-1].Diagnostics, func(d manifest.Diagnostic) bool { return d.Code == phases.CodeForcedEnough }) {
		t.Error("the record of the turn's end does not say that it was forced enough")
	}
}
