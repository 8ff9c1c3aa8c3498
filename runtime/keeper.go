package runtime

import (
	"context"
	"fmt"

	"github.com/grapnelhq/grapnel/compiler"
	"github.com/grapnelhq/grapnel/internal/keeper"
	"github.com/grapnelhq/grapnel/internal/merge"
	"github.com/grapnelhq/grapnel/internal/text"
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
	// codeAuditsNotKept: the sink did not take audit events, or there were too many.
	codeAuditsNotKept = "audits_not_kept"

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
		return manifest.Seal(m, nil, nil)
	}
	own := m.Clone() // a sink that hangs may use it for ever
	err := e.keeper.Append(ctx, &own, r.output.Texts, func() { e.emit(Event{Kind: EventManifest, State: stateKeptLate, Detail: r.id}) })
	if err == nil {
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
// engine, from the sink.
func (r *recording) previous(ctx context.Context) *compiler.Previous {
	t, e := r.turn, r.turn.engine
	m := e.sessions.Previous(t.context)
	if m == nil && e.keeper != nil && t.context.ThreadID != "" {
		var err error
		if m, err = e.keeper.Last(ctx, t.context.WorkspaceID, t.context.ThreadID); err != nil {
			code := e.sinkFailed(codePreviousUnavailable, "the thread's previous manifest cannot be read", r.id, err)
			r.notes = append(r.notes, phases.Diagnostic{
				Code: codePreviousUnavailable, Severity: phases.SeverityWarning,
				Message: "the previous manifest of this thread could not be read (" + string(code) + "): nothing is known of the provider's cache",
			})
			return nil
		}
	}
	return compiler.PreviousOf(m, r.now, t.context.SessionID)
}

// remember makes the prompt the previous one of its thread. Only what the next compilation needs is held.
func (r *recording) remember(m *manifest.Manifest) {
	slim := &manifest.Manifest{Sections: r.output.Sections, Cache: r.output.Cache}
	slim.CreatedAt, slim.SessionID, slim.FingerprintTools = m.CreatedAt, m.SessionID, m.FingerprintTools
	r.turn.engine.sessions.KeepPrompt(r.turn.context, slim)
}

// AuditSink is an optional interface of a [Sink]: it keeps the audit contributions that are in no manifest, those of
// phases after the prompt, of background work, of dispatches outside of a turn, and of turns without a manifest.
type AuditSink interface {
	// KeepAudits keeps all of them or none. It is called like the methods of Sink.
	KeepAudits(ctx context.Context, events []manifest.AuditEvent) error
}

// reportAudits emits the audit contributions of a phase. The event has their details if those are safe for users,
// else a fingerprint.
func (e *Engine) reportAudits(g *generation, phase phases.Phase, merged *merge.Result) []manifest.Audit {
	if len(merged.Audits) == 0 {
		return nil
	}
	key := []byte(g.cfg.Manifest.FingerprintKey.Value)
	rows := make([]manifest.Audit, 0, len(merged.Audits))
	for _, a := range merged.Audits {
		row := manifest.Audit{
			Phase: phase, Plugin: a.Hook.Plugin, PluginVersion: a.Hook.PluginVersion, SubscriptionID: a.Hook.Subscription,
			EventKind: text.Sanitize(a.Value.EventKind, turnstate.MaxWordChars), ContributionHash: a.Hash,
		}
		row.SetDetails(a.Value.Details, a.Value.SafeForUser, key)
		detail := string(row.Details)
		if row.DetailsFingerprint != "" {
			detail = fmt.Sprintf("%d bytes, %s", row.DetailsBytes, row.DetailsFingerprint)
			e.opts.Logger.Info("audit", "plugin", row.Plugin, "subscription", row.SubscriptionID, "event", row.EventKind, "fingerprint", row.DetailsFingerprint, "words", string(a.Value.Details))
		}
		e.emit(Event{Kind: EventAudit, Plugin: row.Plugin, Subscription: row.SubscriptionID, Phase: phase, Code: row.EventKind, Detail: detail})
		rows = append(rows, row)
	}
	return rows
}

// audit reports the audits of a dispatch, and keeps them: for the turn's manifest, or at once. It returns a
// diagnostic if they could not be kept.
func (d *dispatch) audit(ctx context.Context, merged *merge.Result) []phases.Diagnostic {
	rows := d.engine.reportAudits(d.gen, d.phase.Row.Phase, merged)
	if len(rows) == 0 || d.rq.state.AddAudits(d.phase.Row.Phase, rows) {
		return nil
	}
	return d.engine.keepAudits(ctx, d.rq.context, d.gen, rows)
}

func (t *Turn) keepRest(ctx context.Context) []phases.Diagnostic {
	return t.engine.keepAudits(ctx, t.context, t.gen, t.state.RestAudits())
}

// keepAudits hands audits to a sink that takes them, and reports those that are lost.
func (e *Engine) keepAudits(ctx context.Context, c phases.Context, g *generation, rows []manifest.Audit) []phases.Diagnostic {
	if _, ok := e.opts.Sink.(AuditSink); !ok || len(rows) == 0 {
		return nil
	}
	lost := max(0, len(rows)-turnstate.MaxAudits)
	rows = rows[:len(rows)-lost]
	events := make([]manifest.AuditEvent, len(rows))
	for i, row := range rows {
		if g.cfg.Manifest.Labels == "hash" {
			row.HashDetails([]byte(g.cfg.Manifest.FingerprintKey.Value))
		}
		events[i] = manifest.AuditEvent{
			Audit: row, At: e.opts.Now().UTC(),
			WorkspaceID: c.WorkspaceID, ThreadID: c.ThreadID, TurnID: c.TurnID, SessionID: c.SessionID,
		}
	}
	err := e.keeper.KeepAudits(ctx, events)
	if err != nil {
		lost += len(rows)
	}
	if lost == 0 {
		return nil
	}
	return e.lostAudits(lost, err)
}

// lostAudits counts and reports lost audits; err is nil for those that are too many.
func (e *Engine) lostAudits(lost int, err error) []phases.Diagnostic {
	if e.keeper != nil {
		e.keeper.AuditsLost.Add(uint64(lost)) //nolint:gosec // not negative
	}
	code, why := phases.CauseOverloaded, fmt.Sprintf("there are more than %d", turnstate.MaxAudits)
	if err != nil {
		code, why = keeper.Code(err), err.Error()
	}
	e.emit(Event{Kind: EventManifest, State: codeAuditsNotKept, Code: string(code), Detail: fmt.Sprintf("%d audits: %s", lost, why)})
	e.opts.Logger.Error("audits were not kept", "audits", lost, "error", why)
	return []phases.Diagnostic{{
		Code: codeAuditsNotKept, Severity: phases.SeverityError, SafeForUser: true,
		Message: fmt.Sprintf("%d audit events were not kept (%s)", lost, code),
	}}
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
func (t *Turn) reportWhole(ctx context.Context, u phases.Usage, out *phases.Outcome) {
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
