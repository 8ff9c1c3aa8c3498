package runtime

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/grapnelhq/grapnel/internal/keeper"
	"github.com/grapnelhq/grapnel/internal/merge"
	"github.com/grapnelhq/grapnel/internal/turnstate"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
)

// Codes of diagnostics about the sink, and the states of an EventManifest.
const (
	// codeNotKept: the sink did not take the manifest.
	codeNotKept = "manifest_not_kept"
	// codePreviousUnavailable: the thread's last manifest could not be read.
	codePreviousUnavailable = "previous_unavailable"
	// codeUsageNotKept: the sink did not take the provider's report.
	codeUsageNotKept = "usage_not_kept"

	stateNotKept  = "not_kept"
	stateKeptLate = "kept_late"
)

// sinkFailed emits and logs a failure of the sink, and returns its cause.
func (e *Engine) sinkFailed(state, message, id string, err error) phases.Cause {
	code := keeper.Code(err)
	e.emit(Event{Kind: EventManifest, State: state, Code: string(code), Detail: id + ": " + err.Error()})
	e.opts.Logger.Error(message, "manifest", id, "error", err) //nolint:sloglint // one of our callers' literals
	return code
}

// keep seals the manifest and hands it to the sink with the texts that the operator wants kept. A failure is always
// reported, and an error if the operator wants the turn refused.
func (r *recording) keep(ctx context.Context, m *manifest.Manifest) error {
	e := r.turn.engine
	if e.keeper == nil {
		r.turn.state.Kept()
		return manifest.Seal(m, nil, nil)
	}
	own := m.Clone() // a sink that hangs may use it for ever
	err := e.append(ctx, &own, slices.Concat(r.output.Texts, r.turn.state.Texts(&own)))
	if err == nil {
		r.turn.state.Kept()
		m.Seq, m.Integrity = own.Seq, own.Integrity
		return nil
	}
	code := e.sinkFailed(stateNotKept, "the manifest was not kept", r.id, err)
	r.output.Diagnostics = append(r.output.Diagnostics, phases.Diagnostic{
		Code: codeNotKept, Severity: phases.SeverityError, Message: "the manifest of this turn was not kept (" + string(code) + ")",
	})
	if r.turn.gen.cfg.Manifest.OnFailure == "refuse" {
		return phases.Errorf(code, "the manifest could not be kept: %w", err)
	}
	return manifest.Seal(m, nil, nil)
}

// previous returns the previous prompt of the turn's thread: from the cache or, for a thread that is new to this
// engine or that others may have continued, from the sink.
func (r *recording) previous(ctx context.Context) *manifest.Outline {
	t, e := r.turn, r.turn.engine
	known := e.sessions.Previous(t.context)
	if e.keeper != nil && (known == nil || e.keeper.Shared()) && t.context.ThreadID != "" {
		m, err := e.keeper.Last(ctx, t.context.WorkspaceID, t.context.ThreadID)
		switch {
		case err != nil:
			code := e.sinkFailed(codePreviousUnavailable, "the thread's previous manifest cannot be read", r.id, err)
			r.notes = append(r.notes, phases.Diagnostic{
				Code: codePreviousUnavailable, Severity: phases.SeverityWarning,
				Message: "the previous manifest of this thread could not be read (" + string(code) + "): nothing is known of the provider's cache",
			})
			return nil
		case m != nil:
			return new(m.Outline())
		}
	}
	return known
}

// reportAudits emits the audit contributions of a phase. The event has their details if those are safe for users,
// else a hash.
func (e *Engine) reportAudits(g *generation, phase phases.Phase, merged *merge.Result) []manifest.Audit {
	if len(merged.Audits) == 0 {
		return nil
	}
	rows := turnstate.AuditRows(phase, merged.Audits, g.key)
	for i := range rows {
		row := &rows[i]
		detail := string(row.Details)
		if row.DetailsHash != "" {
			detail = fmt.Sprintf("%d bytes, %s", row.DetailsBytes, row.DetailsHash)
			e.opts.Logger.Info("audit", "plugin", row.Plugin, "subscription", row.SubscriptionID, "event", row.EventKind, "hash", row.DetailsHash, "words", string(merged.Audits[i].Value.Details))
		}
		e.emit(Event{Kind: EventAudit, Plugin: row.Plugin, Subscription: row.SubscriptionID, Phase: phase, Code: row.EventKind, Detail: detail})
	}
	return rows
}

// keepEvents makes and keeps the record of what a turn, or a dispatch outside of one, has brought since its last record.
func (e *Engine) keepEvents(ctx context.Context, g *generation, c *phases.Context, s *turnstate.State, ends bool) error {
	if e.keeper == nil || !s.Unrecorded(ends) {
		return nil
	}
	m, now := manifest.New(), e.opts.Now()
	id, err := e.newID(now)
	if m.Head = turnstate.Head(g.head, c); err == nil {
		m.ManifestID, m.CreatedAt = id, now
		s.Events(&m, turnstate.AuditedRows(g.rows().rows), g.cfg.Budgets.Turn, ends)
		g.hashLabels(&m)
		err = e.append(ctx, &m, s.Texts(&m))
	}
	if err == nil {
		s.Kept()
	} else {
		e.sinkFailed(stateNotKept, "what happened after the last prompt was not kept", id, err)
	}
	return err
}

// recordOpen ends and reports the open turns of a closed engine, and keeps what happened in them after their prompts.
func (e *Engine) recordOpen(ctx context.Context) {
	until := time.Now().Add(endTime)
	for _, t := range e.open.All() {
		if !t.takeEnd() {
			continue
		}
		unrecorded := e.keeper != nil && t.state.Unrecorded(false)
		t.note(nil, phases.Diagnostic{Code: codeTurnNotEnded, Severity: phases.SeverityWarning, Message: "the engine was closed before the host ended this turn (Turn.End)"})
		switch {
		case !unrecorded:
		case time.Now().Before(until):
			_ = t.keepEvents(ctx, false) // it is reported
		default:
			e.sinkFailed(stateNotKept, "what happened in an open turn was not kept", t.begun.TurnID, ErrClosed)
		}
		t.leave()
	}
}

func (e *Engine) newID(now time.Time) (string, error) {
	id, err := ulid.New(uint64(max(0, now.UnixMilli())), e.opts.Entropy)
	if err != nil {
		return "", fmt.Errorf("an id for the manifest: %w", err)
	}
	return id.String(), nil
}

// append hands a manifest to the sink.
func (e *Engine) append(ctx context.Context, m *manifest.Manifest, texts []manifest.Text) error {
	id := m.ManifestID
	return e.keeper.Append(ctx, m, texts, func() { e.emit(Event{Kind: EventManifest, State: stateKeptLate, Detail: id}) })
}

// ReportUsage keeps what a provider reported for a manifest, for hosts without a Turn. Rounds is 1 and ReportedAt now
// by default. Errors are those of [Turn.ReportUsage].
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
	err := e.keeper.Report(ctx, u)
	if err == nil {
		return nil
	}
	code := e.sinkFailed(codeUsageNotKept, "what the provider reported was not kept", u.ManifestID, err)
	return phases.Errorf(code, "the provider's report for the manifest %s was not kept: %w", u.ManifestID, err)
}

// reportWhole keeps the usage of a turn whose rounds were not reported. A failure is a diagnostic of the turn's end.
func (t *turn) reportWhole(ctx context.Context, u phases.Usage, out *phases.Outcome) {
	id, rounds := t.usage.Whole()
	if rounds == 0 || u == (phases.Usage{}) {
		return
	}
	err := t.engine.ReportUsage(ctx, manifest.Usage{ManifestID: id, Rounds: rounds, Usage: u})
	if err != nil && out != nil {
		out.Diagnostics = append(out.Diagnostics, phases.Diagnostic{
			Code: codeUsageNotKept, Severity: phases.SeverityWarning,
			Message: "what the provider reported for this turn was not kept (" + string(keeper.Code(err)) + ")",
		})
	}
}
