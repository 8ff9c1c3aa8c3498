package runtime

import (
	"context"

	"github.com/grapnelhq/grapnel/compiler"
	"github.com/grapnelhq/grapnel/internal/engine/turnstate"
	"github.com/grapnelhq/grapnel/manifest"
)

// Observe records a request that an agent compiled and sent by itself, as the prompt of another round of the turn. No
// hook sees it. Usage that is reported afterwards is that request's. An error is as of [Turn.Compile], or the sink's where
// the operator wants the turn refused.
func (t *Turn) Observe(ctx context.Context, in CompileInput, sent *compiler.Request) (*manifest.Manifest, error) {
	release, err := t.takeRound(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	if err := t.enterRound(&in); err != nil {
		return nil, err
	}
	defer t.leave()
	r, err := t.newRecording(&in)
	if err != nil {
		return nil, err
	}
	input := r.known(&in)
	r.before = r.previous(ctx, false)
	input.Previous = compiler.PreviousOf(r.before, r.now, t.context.SessionID)
	r.output = compiler.Observe(sent, &input)
	m := r.observed(sent.Agent)
	if err := r.keep(ctx, m); err != nil {
		return nil, err
	}
	r.outline.Seq = m.Seq
	t.engine.sessions.KeepPrompt(t.context, r.outline)
	t.usage.Compiled(&t.prompt, m)
	t.usage.Prompt(&t.prompt) // what became of it is known
	return m, nil
}

// observed is the record of a request, with what has happened since the turn's last record.
func (r *recording) observed(agent string) *manifest.Manifest {
	t := r.turn
	m := r.output.Manifest()
	known := m.Fingerprints
	m.Head = turnstate.Head(t.gen.head, new(t.Context()))
	m.ManifestID, m.Round, m.CreatedAt, m.Observed, m.TextsKept = r.id, r.round, r.now, agent, len(r.output.Texts) > 0
	m.History = turnstate.History(m.History, t.gen.key)
	t.state.Events(&m, turnstate.AuditedRows(t.gen.rows().rows), t.gen.cfg.Budgets.Turn, false)
	m.Kind, m.Fingerprints = manifest.KindPrompt, known
	if h := m.History; r.before == nil || h.Previous != r.before.ManifestID {
		h.Previous, h.Same = "", 0
	}
	r.outline = m.Judge(r.before)
	t.gen.hashLabels(&m)
	return &m
}
