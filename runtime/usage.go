package runtime

import (
	"context"
	"errors"
	"sync"

	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
)

// ErrNothingCompiled is returned for a report about a turn without a prompt.
var ErrNothingCompiled = errors.New("the turn has compiled no prompt that the numbers could be for")

// turnUsage is what a turn knows of its rounds with the provider.
type turnUsage struct {
	mu sync.Mutex
	// last is the manifest of the last prompt that was handed out, and rounds how
	// many there were.
	last   string
	rounds int
	// reported is set once the host has reported a round by itself.
	reported bool
}

// compiled notes a prompt that goes to the provider.
func (u *turnUsage) compiled(id string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.last = id
	u.rounds++
}

// round returns the manifest that a report about one round is for.
func (u *turnUsage) round() (string, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.rounds == 0 {
		return "", ErrNothingCompiled
	}
	u.reported = true
	return u.last, nil
}

// whole returns the manifest and the number of rounds that a report about the
// whole turn is for; 0 where there is nothing to report.
func (u *turnUsage) whole() (string, int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.reported {
		return "", 0
	}
	return u.last, u.rounds
}

// ReportUsage keeps what the provider reported for the prompt that this turn
// compiled last: call it once a round. A host that knows only the sum says so in
// the input of End instead, and not here.
//
// The numbers stand beside the manifest. An error says that they were not kept;
// it is ErrNothingCompiled, ErrTurnEnded, ErrClosed, that of [manifest.Usage.Check]
// or the sink's, and no reason to fail the turn. Without a sink nothing is kept,
// which is no error.
func (t *Turn) ReportUsage(ctx context.Context, u phases.Usage) error {
	if err := t.enter(); err != nil {
		return err
	}
	defer t.leave()
	id, err := t.usage.round()
	if err != nil {
		return err
	}
	return t.engine.ReportUsage(ctx, manifest.Usage{ManifestID: id, Usage: u})
}

// ReportUsage keeps what a provider reported for a manifest, for hosts that have
// no Turn at hand any more. Rounds counts as 1 and ReportedAt as now where they
// are not set. Errors are those of [Turn.ReportUsage].
func (e *Engine) ReportUsage(ctx context.Context, u manifest.Usage) error {
	if u.Rounds == 0 {
		u.Rounds = 1
	}
	if u.ReportedAt.IsZero() {
		u.ReportedAt = e.opts.Now()
	}
	u.ReportedAt = u.ReportedAt.UTC()
	if err := u.Check(); err != nil {
		return err
	}
	if e.keeper == nil {
		return nil
	}
	err := e.keeper.call(ctx, func(ctx context.Context) error { return e.opts.Sink.Report(ctx, u) }, nil)
	if err == nil {
		e.keeper.counts.usage.Add(1)
		return nil
	}
	e.keeper.counts.usageLost.Add(1)
	e.emit(Event{Kind: EventManifest, State: codeUsageNotKept, Code: string(sinkCode(err)), Detail: u.ManifestID + ": " + err.Error()})
	e.opts.Logger.Error("what the provider reported was not kept", "manifest", u.ManifestID, "error", err)
	return phases.Errorf(sinkCode(err), "the provider's report for the manifest %s was not kept: %w", u.ManifestID, err)
}

// reportWhole keeps the usage of a turn whose rounds were not reported one by
// one. A failure is a diagnostic of the turn's end.
func (t *Turn) reportWhole(ctx context.Context, u phases.Usage, out *phases.Outcome) {
	id, rounds := t.usage.whole()
	if rounds == 0 || u == (phases.Usage{}) {
		return
	}
	err := t.engine.ReportUsage(ctx, manifest.Usage{ManifestID: id, Rounds: rounds, Usage: u})
	if err != nil && out != nil {
		out.Diagnostics = append(out.Diagnostics, phases.Diagnostic{
			Code: codeUsageNotKept, Severity: phases.SeverityWarning,
			Message: "what the provider reported for this turn was not kept (" + string(sinkCode(err)) + ")",
		})
	}
}
