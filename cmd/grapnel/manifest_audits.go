package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/grapnelhq/grapnel/internal/surface"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/store"
)

// auditList is the JSON of manifest audits.
type auditList struct {
	Audits []auditRow `json:"audits" jsonschema:"newest last"`
}

// auditRow is an audit event, and the manifest that it is in.
type auditRow struct {
	ManifestID string `json:"manifest_id" jsonschema:"the manifest that it is in; empty for one that is kept beside the log"`
	manifest.AuditEvent
}

// manifestAuditsCommand lists what plugins brought for the audit trail.
func (a *app) manifestAuditsCommand() *cobra.Command {
	var f filterFlags
	var turn, plugin string
	var limit int
	c := &cobra.Command{
		Use:   "audits",
		Short: "List the audit events that plugins brought",
		Long: "Audits lists audit contributions, newest last: those of phases before a prompt stand in its\n" +
			"manifest; those of tools, of the end of turns, of sessions and of background work are kept\n" +
			"beside the log. What an event says is shown where its plugin called it safe for users; else its\n" +
			"length and fingerprint are.",
		Example: "  grapnel manifest audits --thread t1\n" +
			"  grapnel manifest audits --plugin memory --json",
		Args: noArgs(),
		RunE: func(c *cobra.Command, _ []string) error {
			if limit < 0 {
				return usagef("--limit %d: give a number of events, or 0 for all", limit)
			}
			filter := store.AuditFilter{Workspace: f.workspace, Thread: f.thread, Turn: turn, Plugin: plugin, Limit: limit}
			return a.withStore(c.Context(), store.Options{ReadOnly: true}, func(s *openedStore) error {
				return storeError(a.manifestAudits(c.Context(), s, filter))
			})
		},
	}
	f.register(c)
	c.Flags().StringVar(&turn, "turn", "", "only events of the turn `ID`")
	c.Flags().StringVar(&plugin, "plugin", "", "only events of the plugin `NAME`")
	c.Flags().IntVar(&limit, "limit", surface.ListLimit, "list the newest `N`; 0 lists all")
	return c
}

// manifestAudits prints both kinds.
func (a *app) manifestAudits(ctx context.Context, s *openedStore, f store.AuditFilter) error {
	beside, err := s.Audits(ctx, f)
	if err != nil {
		return err
	}
	list := auditList{Audits: []auditRow{}}
	for _, e := range beside {
		list.Audits = append(list.Audits, auditRow{"", e})
	}
	in, err := auditsInLog(ctx, s, f)
	if err != nil {
		return err
	}
	list.Audits = append(list.Audits, in...)
	slices.SortStableFunc(list.Audits, func(x, y auditRow) int { return x.At.Compare(y.At) })
	if f.Limit > 0 && len(list.Audits) > f.Limit {
		list.Audits = list.Audits[len(list.Audits)-f.Limit:]
	}
	if a.json {
		return a.printJSON(list)
	}
	if len(list.Audits) == 0 {
		a.println("there are no such audit events")
		return nil
	}
	t := newTable("", "at", "thread", "turn", "phase", "subscription", "event", "manifest", "details")
	for i := range list.Audits {
		x := &list.Audits[i]
		t.add(clock(x.At), x.ThreadID, x.TurnID, x.Phase, x.SubscriptionID, x.EventKind, x.ManifestID, auditDetails(&x.Audit))
	}
	a.printTable(t)
	return nil
}

// auditsInLog are the events in manifests. A later round of a turn repeats those of
// the rounds before.
func auditsInLog(ctx context.Context, s *openedStore, f store.AuditFilter) ([]auditRow, error) {
	var all []auditRow
	seen := map[[3]string]int{}
	for r, err := range s.Records(ctx, store.Filter{Workspace: f.Workspace, Thread: f.Thread}) {
		if err != nil {
			return nil, err
		}
		if f.Turn != "" && r.Index.TurnID != f.Turn {
			continue
		}
		m, err := manifest.Parse(r.Data)
		if err != nil {
			return nil, fmt.Errorf("the manifest %s: %w", r.Index.ManifestID, err)
		}
		turn := [3]string{m.WorkspaceID, m.ThreadID, m.TurnID}
		before := 0
		if m.Round > 0 {
			before = min(seen[turn], len(m.Audits))
		}
		seen[turn] = len(m.Audits)
		for _, e := range m.Audits[before:] {
			if f.Plugin == "" || e.Plugin == f.Plugin {
				all = append(all, auditRow{m.ManifestID, manifest.AuditEvent{
					Audit: e, At: m.CreatedAt, WorkspaceID: m.WorkspaceID, ThreadID: m.ThreadID, TurnID: m.TurnID, SessionID: m.SessionID,
				}})
			}
		}
	}
	return all, nil
}

// auditDetails is what an event says, or what is known of it.
func auditDetails(e *manifest.Audit) string {
	switch {
	case len(e.Details) > 0:
		return string(e.Details)
	case e.DetailsFingerprint != "":
		return fmt.Sprintf("%d bytes, %s", e.DetailsBytes, e.DetailsFingerprint)
	}
	return ""
}

// printAudits prints events of one turn.
func (a *app) printAudits(title string, audits []manifest.Audit) {
	t := newTable(title, "phase", "subscription", "event", "details")
	for i := range audits {
		e := &audits[i]
		t.add(e.Phase, e.SubscriptionID, e.EventKind, auditDetails(e))
	}
	a.printTable(t)
}

// printLaterAudits prints the events of a manifest's turn that are kept beside it.
func (a *app) printLaterAudits(ctx context.Context, s *openedStore, m *manifest.Manifest) error {
	if m.TurnID == "" {
		return nil // they could be of any turn
	}
	list, err := s.Audits(ctx, store.AuditFilter{Workspace: m.WorkspaceID, Thread: m.ThreadID, Turn: m.TurnID})
	if err != nil {
		return storeError(err)
	}
	audits := make([]manifest.Audit, 0, len(list))
	for i := range list {
		audits = append(audits, list[i].Audit)
	}
	a.printAudits("audit events of the turn, beside the manifest", audits)
	return nil
}
