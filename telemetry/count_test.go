package telemetry_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
	"github.com/grapnelhq/grapnel/telemetry"
)

// at is what nearly all points of the tests have.
const at = " phase=turn.pre_prompt_compile plugin=house"

func TestCountEvents(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		events []runtime.Event
		want   []string
	}{
		{
			"failures that stopped nothing",
			[]runtime.Event{
				{Kind: runtime.EventFailOpen, Plugin: "house", Subscription: "house.rules", Phase: phases.PrePromptCompile, Code: "timeout"},
				{Kind: runtime.EventFailOpen, Plugin: "house", Subscription: "house.rules", Phase: phases.PrePromptCompile, Code: "timeout"},
				{Kind: runtime.EventFailOpen, Plugin: "house", Subscription: "house.rules", Phase: phases.PrePromptCompile, Code: "a whim"},
			},
			[]string{
				"grapnel.fail_open 1 error.type=_OTHER" + at + " subscription=house.rules",
				"grapnel.fail_open 2 error.type=timeout" + at + " subscription=house.rules",
			},
		},
		{
			"phases",
			[]runtime.Event{
				{Kind: runtime.EventDispatch, Phase: phases.PrePolicy, State: "succeeded", Took: 2 * time.Millisecond},
				{Kind: runtime.EventDispatch, Phase: phases.PrePolicy, State: "failed", Code: "timeout", Took: time.Second},
				{Kind: runtime.EventDispatch, Phase: phases.PrePolicy, State: "cancelled", Code: "cancelled", Took: time.Second},
			},
			[]string{
				"grapnel.dispatch.duration 1×0.002 phase=turn.pre_policy state=succeeded",
				"grapnel.dispatch.duration 1×1 error.type=timeout phase=turn.pre_policy state=failed",
				"grapnel.dispatch.duration 1×1 phase=turn.pre_policy state=cancelled",
			},
		},
		{
			"answers that nobody waits for",
			[]runtime.Event{
				{Kind: runtime.EventDropped, Plugin: "house", Code: "late"}, {Kind: runtime.EventDropped, Plugin: "house", Code: "Dropped(99)"},
			},
			[]string{"grapnel.answers.dropped 1 plugin=house reason=_OTHER", "grapnel.answers.dropped 1 plugin=house reason=late"},
		},
		{
			"manifests",
			[]runtime.Event{{Kind: runtime.EventManifest, State: "not_kept", Detail: "id"}, {Kind: runtime.EventManifest, State: "kept_late"}},
			[]string{"grapnel.manifest.issues 1 state=kept_late", "grapnel.manifest.issues 1 state=not_kept"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, telemetry.Options{})
			for _, ev := range tt.events {
				r.OnEvent(ev)
			}
			if diff := cmp.Diff(r.metrics(t, r.names(t)...), tt.want); diff != "" {
				t.Errorf("metrics (-got +want):\n%s", diff)
			}
		})
	}
}

// TestMaxSeries describes a plugin anew again and again: names fold, numbers do not
// get lost, and what was known before keeps its name.
func TestMaxSeries(t *testing.T) {
	t.Parallel()
	r := newRig(t, telemetry.Options{MaxSeries: 2})
	for i := range 10 {
		r.tell(with(func(r *phases.Run) { r.Subscription = fmt.Sprintf("house.h%d", i) }))
	}
	for range 5 {
		r.tell(with(func(r *phases.Run) { r.Subscription = "house.h1" }))
	}
	r.tell(unasked(phases.StateFiltered, ""))
	got := r.metrics(t, "grapnel.run.count")
	want := []string{
		"grapnel.run.count 1 phase=turn.pre_prompt_compile plugin=_OTHER state=filtered subscription=_OTHER",
		"grapnel.run.count 1" + at + " state=succeeded subscription=house.h0",
		"grapnel.run.count 6" + at + " state=succeeded subscription=house.h1",
		"grapnel.run.count 8 phase=turn.pre_prompt_compile plugin=_OTHER state=succeeded subscription=_OTHER",
	}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("metrics (-got +want):\n%s", diff)
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	if _, err := telemetry.New(telemetry.Options{MaxSeries: -1}); err == nil {
		t.Error("New takes a negative MaxSeries")
	}
}
