package manifest

import (
	"bytes"
	"slices"

	"github.com/grapnelhq/grapnel/phases"
)

// Clone returns a copy that shares no memory with the record.
func (m *Manifest) Clone() Manifest {
	c := *m
	c.Sections = mapped(m.Sections, func(s *Section) {
		s.Tokens, s.Truncation = pointed(s.Tokens), pointed(s.Truncation)
		s.SourceRefs = slices.Clone(s.SourceRefs)
	})
	c.SectionIDs = slices.Clone(m.SectionIDs)
	c.LeftOut = slices.Clone(m.LeftOut)
	c.HookSources = slices.Clone(m.HookSources)
	c.Runs = mapped(m.Runs, func(r *phases.Run) {
		r.Contributions, r.Cut = slices.Clone(r.Contributions), slices.Clone(r.Cut)
	})
	c.Audits = mapped(m.Audits, func(a *Audit) { a.Details = bytes.Clone(a.Details) })
	c.Plugins = mapped(m.Plugins, func(p *phases.PluginRow) {
		p.TierLacks, p.AbsentPaths = slices.Clone(p.TierLacks), slices.Clone(p.AbsentPaths)
	})
	c.Policies = mapped(m.Policies, func(p *phases.PolicyEntry) { p.Value = bytes.Clone(p.Value) })
	c.Tools = slices.Clone(m.Tools)
	c.Budgets.Phases = slices.Clone(m.Budgets.Phases)
	c.Files = slices.Clone(m.Files)
	c.Diagnostics = slices.Clone(m.Diagnostics)
	c.Cache.Plan.Breakpoints = slices.Clone(m.Cache.Plan.Breakpoints)
	c.Cache.Predicted, c.Cache.Actual = pointed(m.Cache.Predicted), pointed(m.Cache.Actual)
	return c
}

// pointed copies what a pointer points to.
func pointed[T any](p *T) *T {
	if p == nil {
		return nil
	}
	v := *p
	return &v
}
