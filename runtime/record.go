package runtime

import (
	"slices"

	"github.com/grapnelhq/grapnel/compiler"
	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/manifest"
)

// manifest writes the record of the turn so far. It is sealed when it is kept.
func (t *Turn) manifest(output *compiler.Output) *manifest.Manifest {
	m := output.Manifest()
	c := t.context
	m.Head.ManifestID, m.Head.CreatedAt, m.Head.Generation = t.newID(), t.engine.opts.Now(), t.gen.number
	m.Head.WorkspaceID, m.Head.ThreadID, m.Head.TurnID, m.Head.SessionID = c.WorkspaceID, c.ThreadID, c.TurnID, c.SessionID

	t.scope.mu.Lock()
	defer t.scope.mu.Unlock()
	m.LeftOut = append(slices.Clone(t.scope.leftOut), m.LeftOut...)
	m.HookSources = t.scope.sources
	m.Runs = t.scope.runs
	m.Plugins = t.gen.rows()
	m.Policies = t.scope.policies
	m.Budgets = t.scope.budgetRows(t.gen.cfg.Budgets.Turn)
	m.Diagnose(t.scope.notes)
	m.Complete()
	if t.gen.cfg.Manifest.Labels == "hash" {
		m = manifest.HashLabels(m, []byte(t.gen.cfg.Manifest.FingerprintKey.Value))
	}
	return &m
}

// budgetRows are the turn's and each phase's budgets; the caller holds the lock.
func (s *scope) budgetRows(b config.TurnBudget) manifest.Budgets {
	granted := b.Time.D()
	if granted == 0 {
		granted = config.DefaultTurnTime
	}
	rows := manifest.Budgets{
		Turn:   manifest.Budget{GrantedMS: millis(granted), UsedMS: millis(granted - s.left), GrantedChars: s.chars},
		Phases: slices.Clone(s.budgets),
	}
	for _, p := range rows.Phases {
		rows.Turn.UsedChars += p.UsedChars
	}
	return rows
}
