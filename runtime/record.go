package runtime

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/grapnelhq/grapnel/compiler"
	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
)

// sinkTime is the longest that keeping a manifest may hold a turn up.
const sinkTime = 500 * time.Millisecond

// recording is one manifest on its way: the same id and round, whatever is
// learned until it is kept.
type recording struct {
	turn   *Turn
	id     string
	round  int
	now    time.Time
	output compiler.Output
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
	m.Runs = slices.Clone(t.scope.runs)
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
	for i := range s.brought {
		rows.Turn.UsedChars += charsOf(s.brought[i].sections)
	}
	return rows
}

// keep seals the manifest and hands it to the sink. A manifest that cannot be
// kept is an error only where the operator wants the turn refused then; it is
// always told.
func (r *recording) keep(ctx context.Context, m *manifest.Manifest) error {
	e := r.turn.engine
	if e.opts.Sink == nil {
		return manifest.Seal(m, nil, nil)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sinkTime)
	defer cancel()
	err := e.opts.Sink.Append(ctx, m)
	if err == nil {
		return nil
	}
	e.emit(Event{Kind: EventManifest, State: "not_kept", Detail: err.Error()})
	e.opts.Logger.Error("the manifest was not kept", "manifest", m.ManifestID, "error", err)
	if r.turn.gen.cfg.Manifest.OnFailure == "refuse" {
		return phases.Errorf(phases.CauseUnavailable, "the manifest could not be kept: %w", err)
	}
	return manifest.Seal(m, nil, nil)
}
