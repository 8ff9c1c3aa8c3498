package manifest

import (
	"slices"

	"github.com/grapnelhq/grapnel/phases"
)

// content returns the part of the record that equal work has in common. What
// ContentHash promises to leave out has its zero value.
func content(m *Manifest) Manifest {
	c := *m
	c.Head = Head{SchemaVersion: m.SchemaVersion, CompilerVersion: m.CompilerVersion, Profile: m.Profile}
	c.Integrity = Integrity{}
	c.Cache = Cache{}
	c.Runs = mapped(m.Runs, contentOfRun)
	c.HookSources = mapped(m.HookSources, func(h *phases.HookSource) { h.CachedFrom = "" })
	c.Plugins = mapped(m.Plugins, contentOfPlugin)
	c.Budgets.Turn.UsedMS, c.Budgets.Turn.UsedChars = 0, 0
	c.Budgets.Phases = mapped(m.Budgets.Phases, func(b *PhaseBudget) { b.UsedMS, b.UsedChars = 0, 0 })
	c.Diagnostics = mapped(m.Diagnostics, func(d *Diagnostic) { d.Message = "" })
	return c
}

// contentOfRun forgets how and when a hook ran. An answer out of the cache is
// the same answer.
func contentOfRun(r *phases.Run) {
	if r.State == phases.StateCached {
		r.State = phases.StateSucceeded
	}
	r.Generation, r.Incarnation, r.Attempts = 0, 0, 0
	r.QueueMS, r.DurationMS = 0, 0
	r.BytesIn, r.BytesOut = 0, 0
	r.Usage = phases.Usage{}
	r.CachedFrom = ""
}

// contentOfPlugin forgets how a plugin's process came to be and what surrounds it.
func contentOfPlugin(p *phases.PluginRow) {
	p.Generation, p.Restarts, p.Recycled, p.Message = 0, 0, 0, ""
	p.TierLacks, p.AbsentPaths = nil, nil
}

// mapped returns a copy of the list with change applied to each row.
func mapped[T any](list []T, change func(*T)) []T {
	list = slices.Clone(list)
	for i := range list {
		change(&list[i])
	}
	return list
}
