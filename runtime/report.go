package runtime

import (
	"context"

	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
)

// ReportUsage keeps what the provider reported for the prompt that this agent compiled last: call it once a round, and
// behind hooks ([CompileInput.HooksOnly]) once for each request of the agent: these add up. A host that knows only the
// sum puts it into the input of End instead. An error is ErrNothingCompiled, ErrTurnEnded, ErrClosed, the sink's, or of
// [manifest.Usage.Check], and not a reason to fail the turn. Without a sink nothing is kept, which is not an error.
func (t *Turn) ReportUsage(ctx context.Context, u phases.Usage) error {
	if err := t.enter(); err != nil {
		return err
	}
	defer t.leave()
	id, ok := t.usage.Reported(&t.prompt)
	if !ok {
		return ErrNothingCompiled
	}
	report := manifest.Usage{ManifestID: id, Rounds: 1, ReportedAt: t.engine.opts.Now().UTC(), Usage: u}
	if err := report.Check(); err != nil {
		return err
	}
	t.usage.Add(&t.prompt, &report)
	return t.engine.ReportUsage(ctx, report)
}

// Continue makes this turn the one that goes on with the last prompt of another: reports about that prompt are this
// turn's from now on, and its end is judged as that of the prompt. Call it once, before the turn is shared. It fails with
// ErrNothingCompiled if the other one has no prompt, and if this one has.
func (t *Turn) Continue(of *Turn) error {
	if of == nil || !of.usage.Last(&of.prompt).IsPrompt() {
		return ErrNothingCompiled
	}
	if !t.usage.Take(&t.prompt, of.usage.Last(&of.prompt)) {
		return errHasPrompt
	}
	of.usage.Prompt(&of.prompt) // this turn's reports are no longer missing there
	return nil
}

// Under names the prompt of the agent that a turn without one makes a call for. Call it before the turn is shared.
func (t *Turn) Under(prompt *phases.DecisionRef) { t.prompt.Ref = prompt }

// ReportRequest puts on record how the request for the prompt that this agent compiled last differs from it: the Changes
// of a provider's adapter, nil if it does not. Call it once a round, when the request is sent. They are in the turn's
// next record. It fails with ErrNothingCompiled, ErrTurnEnded or ErrClosed, when the ledger is full, or when
// [manifest.Request.Check] does; none of that is a reason to fail the turn.
func (t *Turn) ReportRequest(changes []manifest.RequestChange) error {
	if err := t.enter(); err != nil {
		return err
	}
	defer t.leave()
	id, ok := t.usage.Prompt(&t.prompt)
	if !ok {
		return ErrNothingCompiled
	}
	return t.state.AddRequest(id, changes)
}

// ReportHost records what the host reports about itself: files that it loaded, settings that changed, who started a call.
// It is in the turn's next record. It fails with ErrTurnEnded or ErrClosed, or when the ledger is full.
func (t *Turn) ReportHost(e manifest.HostEvent) error {
	if err := t.enter(); err != nil {
		return err
	}
	defer t.leave()
	return t.state.AddHostEvent(e)
}
