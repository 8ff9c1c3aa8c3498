package runtime

import (
	"fmt"
	"slices"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/grapnelhq/grapnel/compiler"
	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/home"
	"github.com/grapnelhq/grapnel/internal/text"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
)

// maxWordChars bounds a word of a plugin's own in a record.
const maxWordChars = 128

// recording is one manifest on its way: the same id and round, whatever is
// learned until it is kept.
type recording struct {
	turn   *Turn
	id     string
	round  int
	now    time.Time
	output compiler.Output
	// notes are remarks on the way to the output.
	notes []phases.Diagnostic
	// home is the runtime home, once it has been read.
	home *home.Files
}

// newRecording begins the record of one compilation.
func (t *Turn) newRecording() (*recording, error) {
	now := t.engine.opts.Now()
	id, err := ulid.New(uint64(max(0, now.UnixMilli())), t.engine.opts.Entropy)
	if err != nil {
		return nil, fmt.Errorf("an id for the manifest: %w", err)
	}
	return &recording{turn: t, id: id.String(), round: t.scope.nextRound(), now: now}, nil
}

// manifest writes the record of the turn so far. It is sealed when it is kept.
func (r *recording) manifest() *manifest.Manifest {
	t, c := r.turn, &r.turn.context
	m := r.output.Manifest()
	m.ManifestID, m.Round, m.CreatedAt, m.Generation = r.id, r.round, r.now, t.gen.number
	m.Epoch = c.Epoch
	m.WorkspaceID, m.ThreadID, m.TurnID, m.SessionID = c.WorkspaceID, c.ThreadID, c.TurnID, c.SessionID

	t.scope.mu.Lock()
	defer t.scope.mu.Unlock()
	var before []phases.LeftOut
	m.HookSources = nil
	for i := range t.scope.brought {
		m.HookSources = append(m.HookSources, t.scope.brought[i].sources...)
		before = append(before, t.scope.brought[i].leftOut...)
	}
	m.LeftOut = append(before, m.LeftOut...)
	t.scope.placeContexts(&m)
	m.Runs = slices.Clone(t.scope.ledger.runs)
	for i := range m.Runs {
		m.Runs[i].PluginCode = text.Sanitize(m.Runs[i].PluginCode, maxWordChars)
		m.Runs[i].ReasonCode = text.Sanitize(m.Runs[i].ReasonCode, maxWordChars)
	}
	m.Audits = t.scope.takeAudits(t.engine)
	m.Diagnose(t.scope.auditNotes)
	m.Plugins = t.gen.rows()
	for i := range m.Plugins {
		m.Plugins[i].Message, m.Plugins[i].Detail = text.Sanitize(m.Plugins[i].Message, maxNoteChars), ""
	}
	m.Policies = t.scope.policies
	m.Budgets = t.scope.budgetRows(t.gen.cfg.Budgets.Turn)
	m.Diagnose(t.scope.notes.rows())
	m.Diagnose(t.scope.ledger.notes())
	m.Complete()
	if t.gen.cfg.Manifest.Labels == "hash" {
		m = manifest.HashLabels(m, []byte(t.gen.cfg.Manifest.FingerprintKey.Value))
	}
	return &m
}

// contextSection is the section in which the prompt contexts of hooks are
// rendered.
const contextSection = "dynamic_context"

// placeContexts names the section in the sources of contexts whose text stands in
// it: merging does not know what is rendered. The caller holds the lock.
func (s *scope) placeContexts(m *manifest.Manifest) {
	if !slices.ContainsFunc(m.Sections, func(row manifest.Section) bool { return row.SectionID == contextSection }) {
		return
	}
	for i := range m.HookSources {
		h := &m.HookSources[i]
		if h.ContributionKind == phases.KindPromptContext && slices.ContainsFunc(s.contexts, func(c phases.ContextEntry) bool {
			return c.Render && c.Owner == h.SubscriptionID && c.ContributionID == h.ContributionID
		}) {
			h.SectionID = contextSection
		}
	}
}

// budgetRows are the turn's and each phase's budgets; the caller holds the lock.
func (s *scope) budgetRows(b config.TurnBudget) manifest.Budgets {
	granted := b.Time.D()
	if granted == 0 {
		granted = config.DefaultTurnTime
	}
	rows := manifest.Budgets{
		Turn:   manifest.Budget{GrantedMS: millis(granted), UsedMS: millis(granted - s.left), GrantedChars: s.chars},
		Phases: slices.Clone(s.ledger.budgets),
	}
	for i := range s.brought {
		rows.Turn.UsedChars += s.brought[i].chars
	}
	return rows
}
