package gateway

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/grapnelhq/grapnel/internal/engine/jobs"
	"github.com/grapnelhq/grapnel/internal/tests/storetest"
	"github.com/grapnelhq/grapnel/internal/tree"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

// get reads a page of a gateway, as a host of any name.
func (s *served) get(tb testing.TB, path, host string) (status int, body string) {
	tb.Helper()
	return s.getAs(tb, path, host, "")
}

func TestHealth(t *testing.T) {
	t.Parallel()

	model := &faulty{Store: storetest.Tree(t, nil)}
	eng := &fakeEngine{plugins: []phases.PluginRow{{Plugin: "p", State: phases.PluginBackoff}}}
	var now atomic.Int64 // in seconds
	s := serve(t, Options{Tree: model, Engine: eng, Now: func() time.Time { return time.Unix(now.Load(), 0) }})
	check := func(what string, status int, want string) {
		t.Helper()
		now.Add(2) // what the database has shown is not kept for so long
		if got, body := s.get(t, "/readyz", ""); got != status || !strings.Contains(body, want) {
			t.Errorf("%s: %d %s, want %d with %s", what, got, body, status, want)
		}
	}
	check("a plugin that is down", http.StatusOK, `{"ready":true,"database":"ok","engine":"ok"}`)
	model.down.Store(true)
	check("a database that is down", http.StatusServiceUnavailable, `{"ready":false,"database":"unavailable","engine":"ok","hint":"look at the gateway's log"}`)
	model.down.Store(false)
	eng.plugins[0].State = phases.PluginDraining
	check("an engine that is closed", http.StatusServiceUnavailable, `{"ready":false,"database":"ok","engine":"stopping"}`)
	if got, body := s.get(t, "/healthz", ""); got != http.StatusOK || body != "ok\n" {
		t.Errorf("healthz: %d %q", got, body)
	}
	if _, body := serve(t, Options{}).get(t, "/readyz", ""); !strings.Contains(body, `{"ready":true,"database":"ok","engine":"none"}`) {
		t.Errorf("without an engine: %s", body)
	}
}

func TestMetrics(t *testing.T) {
	t.Parallel()

	s := serve(t, Options{
		Tree:   treeOf(t, "w"), // made later, its creation could be a third notification
		Engine: &fakeEngine{plugins: []phases.PluginRow{{Plugin: "p", State: phases.PluginReady, Restarts: 2}}},
	})
	c := s.dial(t, "")
	ready(t, c, object{"workspace_id": "w"})
	do[any](t, c, "thread/agents_doc/save", object{"workspace_id": "w", "content": "x"})
	do[any](t, c, "thread/agents_doc/save", object{"workspace_id": "w", "content": "x", "expected_version": 1})
	c.call(t, "thread/agents_doc/save", object{"workspace_id": "w", "content": "y", "expected_version": 7})
	c.call(t, "no/such", nil)
	c.note(t)
	const sent = `grapnel_gateway_notifications_total{outcome="sent"} 2`
	var body string
	for deadline := time.Now().Add(patience); !strings.Contains(body, sent) && time.Now().Before(deadline); {
		_, body = s.get(t, "/metrics", "") // it is counted just behind its writing
	}
	for _, want := range []string{
		`grapnel_gateway_calls_total{code="ok",method="thread/agents_doc/save"} 2`,
		`grapnel_gateway_calls_total{code="version_conflict",method="thread/agents_doc/save"} 1`,
		`grapnel_gateway_calls_total{code="unknown_method",method="unknown"} 1`,
		`grapnel_gateway_call_seconds_count{method="thread/agents_doc/save"} 3`,
		`grapnel_gateway_documents_total{outcome="saved"} 1`,
		`grapnel_gateway_documents_total{outcome="unchanged"} 1`,
		`grapnel_gateway_documents_total{outcome="version_conflict"} 1`,
		sent,
		`grapnel_gateway_connections 1`,
		`grapnel_gateway_watchers 1`,
		`grapnel_plugin_state{plugin="p",state="ready"} 1`,
		`grapnel_plugin_restarts_total{plugin="p"} 2`,
		`grapnel_manifests_total{outcome="kept"} 7`,
	} {
		if !strings.Contains(body, want+"\n") {
			t.Errorf("no %s in\n%s", want, body)
		}
	}
	if status, _ := s.get(t, "/metrics", "evil.example"); status != http.StatusForbidden {
		t.Errorf("metrics by another name: %d", status)
	}
}

func TestStatus(t *testing.T) {
	t.Parallel()

	clock := storetest.NewClock(time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC))
	s := serve(t, Options{Tree: storetest.Tree(t, clock.Now), Engine: &fakeEngine{}, Version: "1.2.3", StoreName: "sqlite:x", Now: clock.Now})
	workspace(t, s.g.opts.Tree, "w")
	c := s.dial(t, "")
	ready(t, c, object{"workspace_id": "w"})
	clock.Add(90 * time.Second)
	got := do[Status](t, c, "status", nil)
	want := Status{
		Version: "1.2.3", StartedAt: clock.Now().Add(-90 * time.Second), UptimeSeconds: 90, Store: "sqlite:x",
		Connections: 1, Watchers: 1, Seq: got.Seq, Turns: TurnsKept{Limit: 1024, IdleSeconds: 600}, Stats: runtime.Stats{ManifestsKept: 7}, Issues: []Issue{},
		Queue: runtime.QueueStatus{Durable: true, Counts: jobs.Counts{Waiting: 3, Scheduled: 2, Running: 4, Dead: 1, OldestSeconds: 1.5}},
	}
	if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) || got.Seq == nil {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// TestThin: old autosaves are thinned at the start and once an hour, and a failure
// is no end of it.
func TestThin(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		thinned := &thinning{Store: storetest.Tree(t, nil)}
		g := must(New(Options{Tree: thinned}))(t)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go g.thin(ctx)
		time.Sleep(3*thinEvery + time.Minute)
		cancel()
		synctest.Wait()
		if thinned.calls != 4 {
			t.Errorf("it was thinned %d times, want 4", thinned.calls)
		}
	})
}

// thinning counts, and fails every second time.
type thinning struct {
	tree.Store

	calls int
}

func (s *thinning) Thin(context.Context, time.Time) (int, error) {
	s.calls++
	if s.calls%2 == 0 {
		return 0, errDown
	}
	return s.calls, nil
}
