package runtime

import (
	"cmp"
	"time"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/internal/engine/plan"
	"github.com/grapnelhq/grapnel/internal/engine/pool"
	"github.com/grapnelhq/grapnel/internal/engine/stats"
	"github.com/grapnelhq/grapnel/phases"
)

// The types of an engine's stats.
type (
	// Overview is the state of an engine and all that it has counted, as "grapnel status" prints it: rows for
	// plugins, hooks and phases.
	Overview = stats.Overview
	// PluginHealth is one declared plugin: its state, its slots, what it did.
	PluginHealth = stats.PluginHealth
	// HookRow is one subscription in force, or the tools or model calls of a plugin.
	HookRow = stats.HookRow
	// PhaseRow counts the dispatches of one phase.
	PhaseRow = stats.PhaseRow
	// RunStats counts runs by state and cause, with how long they took.
	RunStats = stats.RunStats
	// LastError is the latest failure of a hook or a process.
	LastError = stats.LastError
	// Latency is a distribution of durations.
	Latency = stats.Latency
	// Sizes is a distribution of sizes, by the bounds of SizeBounds.
	Sizes = stats.Sizes
)

// SizeBounds are the bounds that [Sizes] counts by, in bytes, ascending.
func SizeBounds() []uint64 { return stats.SizeBounds() }

// Stats counts what a host's sink was given since the engine began.
type Stats struct {
	// ManifestsKept were taken by the sink, ManifestsNotKept not in time or not at all. ManifestsKeptLate are those
	// of ManifestsNotKept that it took after their turns had gone on.
	ManifestsKept     uint64 `json:"manifests_kept"`
	ManifestsNotKept  uint64 `json:"manifests_not_kept"`
	ManifestsKeptLate uint64 `json:"manifests_kept_late"`
	// UsageKept and UsageNotKept count reports of providers.
	UsageKept    uint64 `json:"usage_kept"`
	UsageNotKept uint64 `json:"usage_not_kept"`
	// SinkHanging and ModelHanging are how many abandoned calls of the sink, and of Options.Complete, have not
	// returned.
	SinkHanging  int `json:"sink_hanging"`
	ModelHanging int `json:"model_hanging"`
}

// Stats returns the counters. It may be called at any time, also after Close.
func (e *Engine) Stats() Stats {
	var st Stats
	if m := e.model; m != nil {
		st.ModelHanging = m.Hanging()
	}
	if k := e.keeper; k != nil {
		st.ManifestsKept, st.ManifestsNotKept, st.ManifestsKeptLate = k.Kept.Load(), k.NotKept.Load(), k.KeptLate.Load()
		st.UsageKept, st.UsageNotKept, st.SinkHanging = k.Usage.Load(), k.UsageLost.Load(), k.Hanging()
	}
	return st
}

// Overview returns a snapshot of the engine. It may be called at any time, also after Close, but not by
// Options.OnEvent. It takes some microseconds per subscription and does not delay runs.
func (e *Engine) Overview() Overview {
	g := e.current.Load()
	p := g.planned.Load()
	o := Overview{Plugins: make([]PluginHealth, 0, len(g.instances)), Hooks: []HookRow{}}
	memory := e.Memory()
	for _, in := range g.instances {
		row := overviewRow(in, g.number)
		row.MemoryBytes = memory[in.Declared.Name]
		o.Plugins = append(o.Plugins, row)
	}
	for _, phase := range p.plan.Phases() {
		rows := p.phases[phase.Row.Phase]
		for i, sub := range rows.Expected {
			o.Hooks = append(o.Hooks, HookRow{
				Subscription: sub.ID, Hook: sub.Name, Plugin: sub.Plugin, Phase: sub.Phase, Role: sub.Stage,
				Off: rows.runs[i].Code, Breaker: string(rows.hooks[i].breaker.State()),
				TimeoutMS: milliseconds(sub.Timeout.D()), Budget: sub.Budget,
			})
		}
	}
	e.stats.Fill(&o)
	for i := range o.Hooks {
		if row := &o.Hooks[i]; row.Subscription == "" {
			row.TimeoutMS = milliseconds(callLimit(row.Role, &g.byName[row.Plugin].Declared.Limits))
		}
	}
	return o
}

// callLimit is the timeout of calls that have no subscription: of a plugin's tools, or of the host's model.
func callLimit(role phases.Role, limits *config.Limits) time.Duration {
	if role == phases.StageTool {
		return cmp.Or(limits.Tool.D(), config.DefaultTool)
	}
	return cmp.Or(limits.Model.Time.D(), config.DefaultModelTime)
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func overviewRow(in *pool.Instance, generation uint64) PluginHealth {
	st := in.Status()
	declared := plan.Plugin{Name: in.Declared.Name, Description: in.Description(), Overrides: in.Declared.Subscriptions}
	row := PluginHealth{PluginRow: in.Row(generation), Requested: declared.Requested(), Grants: in.Declared.Grants, Since: st.Since.UTC()}
	row.Working, row.Waiting, row.Concurrency, row.Abandoned = in.Busy()
	if !st.NextAttempt.IsZero() {
		row.NextStart = st.NextAttempt.UTC()
	}
	if inc := in.Live(); inc != nil {
		row.StartedAt = inc.Since.UTC()
	}
	return row
}

// Memory returns the resident memory of each plugin's processes and their descendants in bytes, by declared name, as
// of about a second ago. Plugins without a process are absent, and so are all where it cannot be measured.
func (e *Engine) Memory() map[string]int64 { return e.pool.Memory() }
