package runtime

import (
	"context"
	"fmt"
	"slices"

	"github.com/grapnelhq/grapnel/internal/merge"
	"github.com/grapnelhq/grapnel/internal/text"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
)

// AuditSink is what a [Sink] may be besides: it keeps the audit contributions that
// are in no manifest. Those are of phases after the prompt (tools, the end of the
// turn, compaction, sessions), of background work, of dispatches outside of a turn,
// and of turns that ended without a manifest.
type AuditSink interface {
	// KeepAudits keeps all of them or none. It is called as the methods of Sink are.
	KeepAudits(ctx context.Context, events []manifest.AuditEvent) error
}

// maxAudits bounds the audits of one manifest, and of one dispatch that keeps them
// itself. More are counted as not kept.
const maxAudits = 256

// codeAuditsNotKept is the code of the diagnostic, and the state of the event, that
// tell of lost audits.
const codeAuditsNotKept = "audits_not_kept"

// tellAudits emits the audit contributions of a phase. What they say stands in the
// event where it is safe for users; else its fingerprint does.
func (e *Engine) tellAudits(g *generation, phase phases.Phase, merged *merge.Result) []manifest.Audit {
	if len(merged.Audits) == 0 {
		return nil
	}
	key := []byte(g.cfg.Manifest.FingerprintKey.Value)
	rows := make([]manifest.Audit, 0, len(merged.Audits))
	for _, a := range merged.Audits {
		row := manifest.Audit{
			Phase: phase, Plugin: a.Hook.Plugin, PluginVersion: a.Hook.PluginVersion, SubscriptionID: a.Hook.Subscription,
			EventKind: text.Sanitize(a.Value.EventKind, maxWordChars), ContributionHash: a.Hash,
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

// intoManifest reports whether a phase comes before the prompt, so that its audits
// go into the turn's manifest.
func intoManifest(p phases.Phase) bool {
	return slices.Contains([]phases.Phase{
		phases.PrePolicy, phases.PrePromptContext, phases.PostPreflight, phases.PreTools, phases.PrePromptCompile, phases.PostPromptCompile,
	}, p)
}

// audit tells the audits of a dispatch, and keeps them: for the turn's manifest, or
// at once. It returns a diagnostic where they could not be kept.
func (d *dispatch) audit(ctx context.Context, merged *merge.Result) []phases.Diagnostic {
	rows := d.engine.tellAudits(d.gen, d.phase.Row.Phase, merged)
	if len(rows) == 0 {
		return nil
	}
	if s := d.rq.scope; s.gathers && intoManifest(d.phase.Row.Phase) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.audits = append(s.audits, rows...)
		for i := range rows {
			s.ledger.bytes += 256 + len(rows[i].Details)
		}
		return nil
	}
	return d.engine.keepAudits(ctx, d.rq.context, d.gen, rows)
}

// takeAudits are those of the turn so far, for a manifest. Those beyond its bound are
// told once. The caller holds the lock.
func (s *scope) takeAudits(e *Engine) []manifest.Audit {
	n := min(len(s.audits), maxAudits)
	s.audited = len(s.audits)
	if over := len(s.audits) - n; over > s.auditsOver {
		s.auditNotes = append(s.auditNotes, e.lostAudits(over-s.auditsOver, nil)...)
		s.auditsOver = over
	}
	return slices.Clone(s.audits[:n])
}

// keepRest keeps the audits of a turn that are in no manifest.
func (t *Turn) keepRest(ctx context.Context) []phases.Diagnostic {
	t.scope.mu.Lock()
	rest := t.scope.audits[t.scope.audited:]
	t.scope.audited = len(t.scope.audits)
	t.scope.mu.Unlock()
	return t.engine.keepAudits(ctx, t.context, t.gen, rest)
}

// keepAudits hands audits to a sink that takes them. What it does not take is
// counted and told; without such a sink there is nobody to keep them for.
func (e *Engine) keepAudits(ctx context.Context, c phases.Context, g *generation, rows []manifest.Audit) []phases.Diagnostic {
	if e.keeper == nil || len(rows) == 0 {
		return nil
	}
	sink, ok := e.opts.Sink.(AuditSink)
	if !ok {
		return nil
	}
	lost := max(0, len(rows)-maxAudits)
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
	err := e.keeper.call(ctx, func(ctx context.Context) error { return sink.KeepAudits(ctx, events) }, nil)
	if err != nil {
		lost += len(rows)
	} else {
		e.keeper.counts.audits.Add(uint64(len(rows)))
	}
	if lost == 0 {
		return nil
	}
	return e.lostAudits(lost, err)
}

// lostAudits counts and tells audits that nobody keeps; err is nil for those that
// are too many.
func (e *Engine) lostAudits(lost int, err error) []phases.Diagnostic {
	if e.keeper != nil {
		e.keeper.counts.auditsLost.Add(uint64(lost)) //nolint:gosec // not negative
	}
	code, why := phases.CauseOverloaded, fmt.Sprintf("there are more than %d", maxAudits)
	if err != nil {
		code, why = sinkCode(err), err.Error()
	}
	e.emit(Event{Kind: EventManifest, State: codeAuditsNotKept, Code: string(code), Detail: fmt.Sprintf("%d audits: %s", lost, why)})
	e.opts.Logger.Error("audits were not kept", "audits", lost, "error", why)
	return []phases.Diagnostic{{
		Code: codeAuditsNotKept, Severity: phases.SeverityError, SafeForUser: true,
		Message: fmt.Sprintf("%d audit events were not kept (%s)", lost, code),
	}}
}
