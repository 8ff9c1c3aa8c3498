package store_test

import (
	"encoding/json"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/store"
)

// event is an audit event whose fields tell the columns apart.
func event(thread, plugin string, n int, at time.Time) manifest.AuditEvent {
	e := manifest.AuditEvent{
		Audit: manifest.Audit{
			Phase: phases.PostTurn, Plugin: plugin, PluginVersion: "1.2.3", SubscriptionID: plugin + ".observe",
			EventKind: fmt.Sprint("kind-", n), ContributionHash: manifest.Fingerprint(strconv.Itoa(n), nil),
		},
		At: at, WorkspaceID: "w", ThreadID: thread, TurnID: fmt.Sprint("turn-", n), SessionID: "s",
	}
	e.SetDetails(json.RawMessage(`{"n":1}`), n%2 == 0, nil)
	return e
}

func keepAudits(t *testing.T, s *store.Store, events ...manifest.AuditEvent) {
	t.Helper()
	if err := s.KeepAudits(t.Context(), events); err != nil {
		t.Fatal(err)
	}
}

func wantAudits(t *testing.T, s *store.Store, f store.AuditFilter, want ...manifest.AuditEvent) {
	t.Helper()
	got, err := s.Audits(t.Context(), f)
	if err != nil || got == nil {
		t.Fatalf("Audits: %v, %v", got, err)
	}
	if diff := cmp.Diff(got, append([]manifest.AuditEvent{}, want...)); diff != "" {
		t.Errorf("%+v (-got +want):\n%s", f, diff)
	}
}

// testAudits: what was kept comes back as it was, in its order, by every filter.
func (x suite) testAudits(t *testing.T) {
	s := open(t, x.newDSN(t), store.Options{})
	at := epoch()
	wantAudits(t, s, store.AuditFilter{})
	a, b := event("t", "p", 0, at), event("t", "q", 1, at)
	c, d := event("u", "p", 2, at.Add(time.Second)), event("t", "p", 3, at.Add(-time.Second))
	keepAudits(t, s, a, b)
	keepAudits(t, s, c)
	keepAudits(t, s, d)
	wantAudits(t, s, store.AuditFilter{}, d, a, b, c)
	wantAudits(t, s, store.AuditFilter{Limit: 2}, b, c)
	wantAudits(t, s, store.AuditFilter{Thread: "t", Plugin: "p"}, d, a)
	wantAudits(t, s, store.AuditFilter{Workspace: "w", Turn: "turn-1"}, b)
	wantAudits(t, s, store.AuditFilter{Workspace: "v"})
	bad := event("t", "p", 4, time.Date(3000, 1, 1, 0, 0, 0, 0, time.UTC))
	if err := s.KeepAudits(t.Context(), []manifest.AuditEvent{event("t", "p", 5, at), bad}); !store.HasCode(err, store.CodeInvalid) {
		t.Errorf("a time out of range: %v", err)
	}
	wantAudits(t, s, store.AuditFilter{}, d, a, b, c)
}

// testPruneAudits: events go with the manifests of their thread, and by age.
func (x suite) testPruneAudits(t *testing.T) {
	s := open(t, x.newDSN(t), store.Options{})
	fillThread(t, s, "w", "t", 0, 6)
	created := func(n int) time.Time { return sample("w", "t", n).CreatedAt }
	var all []manifest.AuditEvent
	for n := range 6 {
		e := event("t", "p", n, created(n).UTC())
		all = append(all, e)
		keepAudits(t, s, e)
	}
	other := event("u", "p", 7, created(0).UTC())
	keepAudits(t, s, other)
	got, err := s.Prune(t.Context(), store.Retention{Count: 2}, created(5))
	if err != nil || got.Manifests != 4 || got.Audits != 4 {
		t.Fatalf("%+v, %v", got, err)
	}
	wantAudits(t, s, store.AuditFilter{}, other, all[4], all[5])

	var many []manifest.AuditEvent
	for n := range 600 {
		many = append(many, event("", "p", n, created(0).Add(time.Duration(n/3)*time.Nanosecond)))
	}
	keepAudits(t, s, many...)
	got, err = s.Prune(t.Context(), store.Retention{Age: time.Nanosecond}, created(5).Add(time.Nanosecond))
	if err != nil || got.Audits != 602 {
		t.Errorf("%+v, %v", got, err)
	}
	wantAudits(t, s, store.AuditFilter{}, all[5])
}
