package runtime

import (
	"context"
	"fmt"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/grapnelhq/grapnel/internal/engine/keeper"
	"github.com/grapnelhq/grapnel/internal/engine/merge"
	"github.com/grapnelhq/grapnel/internal/engine/turnstate"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
)

// Codes of diagnostics about the sink.
const (
	// codeNotKept: the sink did not take the manifest.
	codeNotKept = "manifest_not_kept"
	// codePreviousUnavailable: the thread's last manifest could not be read.
	codePreviousUnavailable = "previous_unavailable"
	// codeUsageNotKept: the sink did not take the provider's report.
	codeUsageNotKept = "usage_not_kept"
)

// sinkFailed emits and logs a failure of the sink, and returns its cause.
func (e *dispatcher) sinkFailed(state, message, id string, err error) phases.Cause {
	code := keeper.Code(err)
	e.emit(Event{Kind: EventManifest, State: state, Code: string(code), Detail: id + ": " + err.Error()})
	e.opts.Logger.Error(message, "manifest", id, "error", err) //nolint:sloglint // one of our callers' literals
	return code
}

// reportAudits emits the audit contributions of a phase. The event has their details if those are safe for users,
// else a hash.
func (e *dispatcher) reportAudits(g *generation, phase phases.Phase, merged *merge.Result) []manifest.Audit {
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
func (e *dispatcher) keepEvents(ctx context.Context, g *generation, c *phases.Context, s *turnstate.State, ends bool) error {
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

func (e *dispatcher) newID(now time.Time) (string, error) {
	id, err := ulid.New(uint64(max(0, now.UnixMilli())), e.opts.Entropy)
	if err != nil {
		return "", fmt.Errorf("an id for the manifest: %w", err)
	}
	return id.String(), nil
}

// lastPrompt returns the last prompt of a thread, one that an agent's request has around it or a whole one: from the cache
// or, for a thread that is new to this engine or that others may have continued, from the sink. It is nil for none.
func (e *dispatcher) lastPrompt(ctx context.Context, c phases.Context, ofAgent bool) (*manifest.Outline, error) {
	known := e.sessions.Previous(c, ofAgent)
	if e.keeper == nil || known != nil && !e.keeper.Shared() || c.ThreadID == "" {
		return known, nil
	}
	m, err := e.keeper.Last(ctx, c.WorkspaceID, c.ThreadID)
	if err != nil || m == nil || m.Cache.OfAgent != ofAgent {
		return known, err
	}
	return new(m.Outline()), nil
}

// append hands a manifest to the sink.
func (e *dispatcher) append(ctx context.Context, m *manifest.Manifest, texts []manifest.Text) error {
	id := m.ManifestID
	return e.keeper.Append(ctx, m, texts, func() { e.emit(Event{Kind: EventManifest, State: stateKeptLate, Detail: id}) })
}
