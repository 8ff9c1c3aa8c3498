package telemetry_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
	"github.com/grapnelhq/grapnel/telemetry"
)

// overview is a Source.
type overview runtime.Overview

func (o *overview) Overview() runtime.Overview { return runtime.Overview(*o) }

func row(name string, state phases.PluginState, restarts int, memory int64) runtime.PluginHealth {
	return runtime.PluginHealth{PluginRow: phases.PluginRow{Plugin: name, State: state, Restarts: restarts, Message: "secret", Detail: "secret"}, MemoryBytes: memory}
}

func TestWatch(t *testing.T) {
	t.Parallel()
	r := newRig(t, telemetry.Options{})
	src := &overview{}
	if err := r.Watch(src); err != nil {
		t.Fatalf("Watch: %v", err)
	}
	for _, step := range []struct {
		name         string
		rows         []runtime.PluginHealth
		want, memory []string
	}{
		{"nothing declared", nil, []string{}, []string{}},
		{
			"one of each state",
			[]runtime.PluginHealth{row("a", phases.PluginReady, 0, 4096), row("b", phases.PluginDegraded, 1, 1<<40), row("c", phases.PluginBackoff, 4, 0), row("d", phases.PluginQuarantined, 5, 0)},
			[]string{
				"grapnel.plugin.restarts 0 plugin=a", "grapnel.plugin.restarts 1 plugin=b", "grapnel.plugin.restarts 4 plugin=c", "grapnel.plugin.restarts 5 plugin=d",
				"grapnel.plugin.up 0 plugin=c", "grapnel.plugin.up 0 plugin=d", "grapnel.plugin.up 1 plugin=a", "grapnel.plugin.up 1 plugin=b",
			},
			[]string{"grapnel.plugin.memory 1099511627776 plugin=b", "grapnel.plugin.memory 4096 plugin=a"},
		},
		{
			"a reload: a is gone, c is another one of the name, and has been restarted twice",
			[]runtime.PluginHealth{row("c", phases.PluginReady, 2, 0)},
			[]string{"grapnel.plugin.restarts 2 plugin=c", "grapnel.plugin.up 1 plugin=c"},
			[]string{},
		},
		{
			"and once more",
			[]runtime.PluginHealth{row("c", phases.PluginStarting, 3, 0)},
			[]string{"grapnel.plugin.restarts 3 plugin=c", "grapnel.plugin.up 0 plugin=c"},
			[]string{},
		},
	} {
		src.Plugins = step.rows
		if diff := cmp.Diff(r.metrics(t, "grapnel.plugin.up", "grapnel.plugin.restarts"), step.want); diff != "" {
			t.Errorf("%s (-got +want):\n%s", step.name, diff)
		}
		if diff := cmp.Diff(r.metrics(t, "grapnel.plugin.memory"), step.memory); diff != "" {
			t.Errorf("%s: memory (-got +want):\n%s", step.name, diff)
		}
	}
}

// TestWatchCounters: the engine's own counters are exported as they are.
func TestWatchCounters(t *testing.T) {
	t.Parallel()
	r := newRig(t, telemetry.Options{MaxSeries: 1})
	failed := runtime.RunStats{Failed: 3}
	src := &overview{
		Reloads: 2, ReloadsRefused: 1,
		Plugins: []runtime.PluginHealth{{
			PluginRow: row("house", phases.PluginReady, 0, 0).PluginRow, AbandonedTotal: 4, LogLinesDropped: 42, Jobs: map[string]uint64{"done": 8, "lost": 1, "a whim": 2},
		}},
		Hooks: []runtime.HookRow{
			{Plugin: "house", Subscription: "house.well", Breaker: "closed"},
			{Plugin: "house", Subscription: "house.bad", Breaker: "open", RunStats: failed},
			{Plugin: "house", Subscription: "house.beyond", Breaker: "open", RunStats: failed},
			{Plugin: "house", RunStats: failed},
		},
	}
	if err := r.Watch(src); err != nil {
		t.Fatal(err)
	}
	golden(t, "counters", r.metrics(t, r.names(t)...))
}

// TestWatchLife: an engine is watched once, until Close, which may be said again.
func TestWatchLife(t *testing.T) {
	t.Parallel()
	src := &overview{Plugins: []runtime.PluginHealth{row("a", phases.PluginReady, 0, 4096)}}
	r := newRig(t, telemetry.Options{})
	if err := r.Watch(src); err != nil {
		t.Fatalf("Watch: %v", err)
	}
	if err := r.Watch(src); !errors.Is(err, telemetry.ErrWatched) {
		t.Errorf("a second Watch: %v, want ErrWatched", err)
	}
	unused := newRig(t, telemetry.Options{})
	for name, r := range map[string]*rig{"watched": r, "unused": unused} {
		if err := errors.Join(r.Close(), r.Close()); err != nil {
			t.Errorf("Close, %s: %v", name, err)
		}
		if got := r.metrics(t, "grapnel.plugin.up"); len(got) != 0 {
			t.Errorf("after Close there is %q", got)
		}
		if err := r.Watch(src); !errors.Is(err, telemetry.ErrWatched) {
			t.Errorf("Watch after Close, %s: %v, want ErrWatched", name, err)
		}
	}
}

// TestNothingWired is the zero value of Options.
func TestNothingWired(t *testing.T) {
	t.Parallel()
	tel, err := telemetry.New(telemetry.Options{})
	if err != nil {
		t.Fatal(err)
	}
	tel.OnEvent(ran(answered()))
	if err := errors.Join(tel.Watch(&overview{}), tel.Close(), tel.Close()); err != nil {
		t.Error(err)
	}
}
