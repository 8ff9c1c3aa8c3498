package explain_test

import (
	"strings"
	"testing"

	"github.com/grapnelhq/grapnel/internal/engine/plan"
	"github.com/grapnelhq/grapnel/internal/explain"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
)

// turn has one section of a plugin, a hook that timed out, and one that was filtered.
func turn() *explain.Record {
	m := manifest.Manifest{
		Head: manifest.Head{ManifestID: "m"}, SectionIDs: []string{"house_rules"},
		Sections: []manifest.Section{{SectionID: "house_rules", Owner: "house", Chars: 11, ContentMap: []manifest.Span{
			{Owner: "house", ContributionID: "r", Length: 11},
		}}},
		HookSources: []phases.HookSource{{Plugin: "house", PluginVersion: "1.0.0", SubscriptionID: "house.rules", ContributionID: "r", SectionID: "house_rules"}},
		Runs: []phases.Run{
			{Plugin: "house", Subscription: "house.rules", Phase: phases.PrePromptCompile, State: phases.StateSucceeded},
			{Plugin: "weather", Subscription: "weather.forecast", Phase: phases.PrePromptCompile, State: phases.StateTimedOut, DurationMS: 151},
			{Plugin: "house", Subscription: "house.guard", Phase: phases.ToolPreCall, State: phases.StateFiltered, RewrittenBy: []string{"house.shallow"}},
		},
		Plugins: []phases.PluginRow{{Plugin: "house", State: phases.PluginReady, Version: "1.0.0"}, {Plugin: "weather", State: phases.PluginReady}},
		Omitted: []phases.Omitted{{ID: "persona", Owner: phases.OwnerHost, Reason: "budget"}},
		Tools:   []manifest.Tool{{Name: "measure", Owner: "house", HiddenDomain: "numbers"}},
	}
	m.Complete()
	return &explain.Record{Manifest: m, Grants: map[string]*phases.Grants{
		"weather": {Contribute: []string{"*"}, Sections: []string{"weather_today"}}, "house": {Contribute: []string{"*"}, Sections: []string{"house_rules"}},
	}}
}

func TestAbout(t *testing.T) {
	t.Parallel()

	for _, tt := range []struct {
		id   string
		kind explain.Kind
		in   bool
		why  string
	}{
		{"house_rules", explain.OfSection, true, "it is section 1 of 1, 11 characters by the plugin house"},
		{"persona", explain.OfSection, false, "it was omitted: its text budget is used up (budget) (the host)"},
		{"weather_today", explain.OfSection, false, "weather.forecast, which may write it, gave nothing: it was still working when its time was up, after 151 ms"},
		{"house.rules", explain.OfSubscription, true, "it ran, and 1 of its contributions was kept"},
		{"house.guard", explain.OfSubscription, false, "its condition was false for the input as house.shallow had rewritten it, so it did not run"},
		{"house", explain.OfPlugin, true, "it is ready in the version 1.0.0, its hooks and tools had 2 runs (1 succeeded, 1 filtered), wrote 11 characters in 1 section, answers 1 tool"},
		{"measure", explain.OfTool, false, "it is answered by the plugin house, and hidden until its domain numbers is asked for"},
	} {
		e := turn().About(tt.id)
		if e == nil || e.Kind != tt.kind || e.In != tt.in || e.Why != tt.why {
			t.Errorf("%s: got %+v, want %s", tt.id, e, tt.why)
		}
	}
	if e := turn().About("nothing"); e != nil {
		t.Errorf("an unknown id: %+v", e)
	}
}

// TestAboutDecision: a hook that let a turn go on contributed.
func TestAboutDecision(t *testing.T) {
	t.Parallel()

	r := turn()
	r.Runs = append(r.Runs, phases.Run{Subscription: "house.end", Plugin: "house", Phase: phases.PreEnd, State: phases.StateDenied})
	r.Calls = []manifest.Call{{Phase: phases.PreEnd, Verdict: phases.VerdictDeny, DecidedBy: []manifest.Decider{{Subscription: "house.end", Verdict: phases.VerdictDeny}}}}
	if e := r.About("house.end"); !e.In || len(e.Calls) != 1 || e.Why != "it ran and denied, and 1 of its decisions counted" {
		t.Errorf("got %+v", e)
	}
}

// TestKept: of a kept record nobody knows which hooks may write a section. What ran is not said not to have run.
func TestKept(t *testing.T) {
	t.Parallel()

	const runs = "house.rules (it ran, and reported memory_recalled), weather.forecast (it was still working when its time was up, after 151 ms)"
	for _, tt := range []struct {
		name, id string
		change   func(r *explain.Record)
		why      string
	}{
		{"nothing came", "memory_recall", func(*explain.Record) {}, "no hook contributed it; of those that were expected before the prompt: " + runs},
		{"the host's own is omitted", "memory_recall", func(r *explain.Record) {
			r.Omitted = []phases.Omitted{{ID: "memory_recall", Owner: phases.OwnerHost, Reason: "host_cannot"}}
		}, "it was omitted: the host takes texts of hooks and nothing else (host_cannot) (the host); no hook contributed it: " + runs},
		{"no hook", "memory_recall", func(r *explain.Record) { r.Runs = nil }, "no hook contributed it: there is no run of one that may write it in the record; the built-in plugin memory brings it, with the grant of its id"},
		{"events", "identity", func(r *explain.Record) { r.Kind, r.Sections = manifest.KindEvents, nil }, "the record is not of a prompt (events)"},
		{"blocked", "identity", func(r *explain.Record) { r.Blocked, r.Sections = true, nil }, "the turn was blocked before there was a prompt"},
		{"not sent", "house_rules", func(r *explain.Record) { r.Blocked = true }, "it is section 1 of 1, 11 characters by the plugin house; the turn was blocked, and the prompt was not sent"},
		{"ran, and was filtered later", "house.rules", func(r *explain.Record) {
			r.HookSources, r.Runs = nil, append(r.Runs, phases.Run{Plugin: "house", Subscription: "house.rules", State: phases.StateFiltered})
		}, "2 runs (1 succeeded, 1 filtered); the last: its condition was false for the input as the host gave it, so it did not run"},
		{"another hook's was omitted", "house.rules", func(r *explain.Record) {
			r.HookSources, r.Omitted = nil, []phases.Omitted{{ID: "banner", Owner: "house", Reason: "forbidden"}}
		}, "it ran, and reported memory_recalled, and nothing that it contributed was kept; of its plugin was omitted: banner, since its plugin is not granted it (forbidden)"},
		{"decided", "house.rules", func(r *explain.Record) { r.HookSources, r.Audits, r.Runs[0].Verdict = nil, nil, phases.VerdictAllow }, "it ran and decided allow and contributed nothing that was kept"},
		{"a call in a record of events", "shell", func(r *explain.Record) {
			r.Kind, r.Calls = manifest.KindEvents, []manifest.Call{{Tool: "shell", Owner: phases.OwnerHost}}
		}, "it was called, as one of the host; what the model was offered stands in records of prompts; 1 call of it"},
	} {
		r := turn()
		r.Grants, r.Audits = nil, []manifest.Audit{{SubscriptionID: "house.rules", EventKind: "memory_recalled"}}
		tt.change(r)
		if e := r.About(tt.id); e == nil || e.Why != tt.why {
			t.Errorf("%s: got %q, want %q", tt.name, e.Why, tt.why)
		}
	}
}

// TestManyRuns: a sentence about many runs is short, and says of each hook how often it was.
func TestManyRuns(t *testing.T) {
	t.Parallel()

	r := turn()
	r.Grants, r.Runs, r.Reminders = nil, nil, nil
	for i := range 500 {
		for _, hook := range "abcdefg" {
			r.Runs = append(r.Runs, phases.Run{
				Phase: phases.PrePromptCompile, Plugin: "house", Subscription: "house." + string(hook), State: phases.StateTimedOut, DurationMS: float64(i + 1),
			})
		}
		r.Reminders = append(r.Reminders, manifest.Reminder{Type: "tip", Owner: "house.a", Chars: 3, With: phases.ToolPostCall})
	}
	const each = " (it was still working when its time was up, 500 times), "
	want := "no hook contributed it; of those that were expected before the prompt: house.a" + each + "house.b" + each + "house.c" + each + "house.d" + each + "house.e" + each + "and 2 more"
	if e := r.About("memory_recall"); e.Why != want || len(e.Runs) != 3500 {
		t.Errorf("got %q, want %q", e.Why, want)
	}
	if e, want := r.About("house.a"), "; its reminder tip (3 characters) was handed over with the answer to tool.post_call, 500 times"; !strings.HasSuffix(e.Why, want) {
		t.Errorf("got %q, want %q", e.Why, want)
	}
}

// TestPlanned: a hook that no run is recorded of is off, or its phase was not dispatched.
func TestPlanned(t *testing.T) {
	t.Parallel()

	view := []plan.PhaseView{{
		Phase:  phases.PreCompaction,
		Off:    []plan.OffView{{Subscription: "house.off", Reason: "not_granted"}},
		Stages: []plan.StageView{{Layers: [][]plan.SubscriptionView{{{Subscription: "house.compact"}}}}},
	}}
	for id, want := range map[string]string{
		"house.off":     "it is switched off (not_granted)",
		"house.compact": "it is a hook of turn.pre_compaction",
	} {
		e := turn().Planned(view, id)
		if e == nil || e.In || len(e.Plugins) != 1 || len(e.Why) < len(want) || e.Why[:len(want)] != want {
			t.Errorf("%s: got %+v, want %s", id, e, want)
		}
	}
	if e := turn().Planned(view, "house.rules"); e != nil {
		t.Errorf("a hook that the plan does not have: %+v", e)
	}
}
