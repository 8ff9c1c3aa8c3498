package runtime_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
	"github.com/grapnelhq/grapnel/sdk"
)

// hookRow is the row of a subscription; of a plugin's tools by "PLUGIN tool.call".
func hookRow(t testing.TB, eng *runtime.Engine, id string) runtime.HookRow {
	t.Helper()
	o := eng.Overview()
	i := slices.IndexFunc(o.Hooks, func(r runtime.HookRow) bool {
		return r.Subscription == id || r.Subscription == "" && r.Plugin+" "+string(r.Phase) == id
	})
	if i < 0 {
		t.Fatalf("no row %s in %d", id, len(o.Hooks))
	}
	return o.Hooks[i]
}

// TestHookRows: what becomes of the runs of a hook is in its row, by cause.
func TestHookRows(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		h     handler
		hook  func(*sdk.Hook)
		over  phases.Override
		want  runtime.RunStats // but for times
		asked uint64
		off   string
	}{
		{name: "answers", h: reply(), want: runtime.RunStats{Runs: 6}, asked: 6},
		{name: "remembers", h: reply(), hook: func(h *sdk.Hook) { h.Cache = &phases.Cache{} }, want: runtime.RunStats{Runs: 1, Cached: 5}, asked: 1},
		{name: "is-filtered", h: reply(), hook: func(h *sdk.Hook) { h.When = "false" }},
		{
			name: "fails", h: failing(sdk.Fail("x", "the user's secret")),
			want: runtime.RunStats{Runs: 6, Failed: 6, FailedInARow: 6, FailOpen: 6, Failures: map[phases.Cause]uint64{phases.CausePluginError: 6}}, asked: 6,
		},
		{
			name: "fails-closed", h: failing(sdk.Fail("x", "x")), hook: func(h *sdk.Hook) { h.OnFailure = word(phases.FailClosed) },
			want: runtime.RunStats{Runs: 6, Failed: 6, FailedInARow: 6, Failures: map[phases.Cause]uint64{phases.CausePluginError: 6}}, asked: 6,
		},
		{
			name: "hangs", h: taking(time.Hour),
			want: runtime.RunStats{Runs: 6, Failed: 6, FailedInARow: 6, FailOpen: 6, Failures: map[phases.Cause]uint64{phases.CauseTimeout: 5, phases.CauseBreakerOpen: 1}}, asked: 5,
		},
		{name: "is-off", h: reply(), over: phases.Override{Enabled: new(false)}, off: "operator"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				hook := on("h", phases.PrePromptCompile, tt.h, phases.KindPromptSection)
				hook.Timeout = 100 * ms
				if tt.hook != nil {
					tt.hook(&hook)
				}
				eng := newHosted(plugin("p", hook)).override("p.h", tt.over).start(t)
				for range 6 {
					dispatch(t, eng, &phases.PrePromptCompileInput{})
				}
				synctest.Wait() // until what was left has come back
				row := hookRow(t, eng, "p.h")
				checkSame(t, "stats", row.RunStats, tt.want, cmpopts.IgnoreFields(runtime.RunStats{}, "States", "AbandonedTotal", "LastError", "Took"), cmpopts.EquateEmpty())
				if row.Took.Count != tt.asked {
					t.Errorf("asked %d times, want %d", row.Took.Count, tt.asked)
				}
				if row.Off != tt.off || row.Plugin != "p" || row.Hook != "h" || row.Role != phases.RoleContribute || row.Phase != phases.PrePromptCompile {
					t.Errorf("the row is %+v", row)
				}
				if tt.want.Failed == 0 && row.LastError != nil {
					t.Errorf("an error: %+v", row.LastError)
				}
				phase := eng.Overview().Phases[0]
				if phase.Phase != phases.PrePromptCompile || phase.Dispatches != 6 || (phase.Failed > 0) != (tt.name == "fails-closed") {
					t.Errorf("the phase is %+v", phase)
				}
			})
		})
	}
}

// TestAbandoned counts calls that hang now, and those that did. A plugin inside the host cannot be replaced for them: it
// is degraded until they have come back.
func TestAbandoned(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		hook := on("h", phases.PrePromptCompile, deaf(release), phases.KindPromptSection)
		hook.Timeout = 100 * ms
		p := plugin("p", hook)
		p.Tools = []sdk.Tool{{Tool: phases.Tool{Name: "dig", InputSchema: raw(`{"type":"object"}`)}, Call: func(context.Context, *sdk.ToolCall) (*phases.ToolResult, error) {
			<-release
			return sdk.Text("x"), nil
		}}}
		h := newHosted(p)
		h.plugin("p").Limits.Concurrency = 8
		eng := h.start(t)
		for range 3 {
			dispatch(t, eng, &phases.PrePromptCompileInput{})
		}
		synctest.Wait()
		if got := stateOf(eng, "p"); got != "ready" {
			t.Errorf("after three calls: %s", got)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 50*ms)
		defer cancel()
		if _, err := eng.CallTool(ctx, "p", phases.ToolCall{Tool: "dig", Arguments: raw(`{}`)}); err == nil {
			t.Fatal("the tool has answered")
		}
		check := func(what string, left, tools int) {
			t.Helper()
			row, tool, health := hookRow(t, eng, "p.h"), hookRow(t, eng, "p tool.call"), eng.Overview().Plugins[0]
			if row.Abandoned != left || row.AbandonedTotal != 3 || tool.Abandoned != tools || tool.AbandonedTotal != 1 {
				t.Errorf("%s: hooks %d of %d, tools %d of %d", what, row.Abandoned, row.AbandonedTotal, tool.Abandoned, tool.AbandonedTotal)
			}
			if health.Abandoned != left+tools || health.AbandonedTotal != 4 || health.Working != left+tools || health.Concurrency != 8 {
				t.Errorf("%s: the plugin has %d of %d, and works on %d of %d", what, health.Abandoned, health.AbandonedTotal, health.Working, health.Concurrency)
			}
		}
		synctest.Wait()
		check("while they hang", 3, 1)
		if got := stateOf(eng, "p"); got != "degraded abandoned" {
			t.Errorf("after four calls: %s", got)
		}
		close(release)
		synctest.Wait()
		check("when they are back", 0, 0)
		if row := rowOf(t, eng, "p"); row.State != phases.PluginReady || row.Restarts != 0 {
			t.Errorf("afterwards: %+v", row)
		}
	})
}

// TestRowsOfTools: calls of tools are one row a plugin, whatever models call them.
func TestRowsOfTools(t *testing.T) {
	t.Parallel()
	p := plugin("p", on("h", phases.PrePromptCompile, reply()))
	p.Tools = []sdk.Tool{says("dig", "dug"), gives("sigh", &phases.ToolResult{Content: raw(`"oh"`), IsError: true}, nil)}
	h := newHosted(p)
	h.plugin("p").Grants.Tools = []string{"dig", "sigh"}
	eng := h.start(t)
	if rows := eng.Overview().Hooks; len(rows) != 1 {
		t.Errorf("before any call: %d rows", len(rows))
	}
	for _, tool := range []string{"dig", "sigh", "dig", "made up by a model"} {
		_, _ = eng.CallTool(t.Context(), "p", phases.ToolCall{Tool: tool, Arguments: raw(`{}`)}) // one is refused
	}
	row := hookRow(t, eng, "p tool.call")
	if row.Runs != 3 || row.Failed != 0 || row.Took.Count != 3 || row.Role != phases.StageTool {
		t.Errorf("the tools' row: %+v", row)
	}
	if health := eng.Overview().Plugins[0]; health.Took.Count != 3 {
		t.Errorf("the plugin has %d calls", health.Took.Count)
	}
}

// TestRowsOverReloads: figures go on while a subscription stays, also where its plugin
// is started anew, and nothing is kept of what has left.
func TestRowsOverReloads(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHosted(plugin("p", on("h", phases.PrePromptCompile, reply())), plugin("q", on("h", phases.PrePromptCompile, reply())))
		eng := h.start(t)
		turn := func() { dispatch(t, eng, &phases.PrePromptCompileInput{}) }
		runs := func() map[string]uint64 {
			out := map[string]uint64{}
			for _, row := range eng.Overview().Hooks {
				out[row.Subscription] = row.Runs
			}
			return out
		}
		reload := func(change func(*config.Config)) {
			t.Helper()
			cfg := h.cfg
			cfg.Plugins = slices.Clone(h.cfg.Plugins)
			change(&cfg)
			reload(t, eng, &cfg)
			synctest.Wait() // until the one before is retired
		}
		turn()
		reload(func(cfg *config.Config) { cfg.Plugins[0].Limits.Concurrency = 3 }) // another process
		turn()
		checkSame(t, "after a reload", runs(), map[string]uint64{"p.h": 2, "q.h": 2})
		reload(func(cfg *config.Config) { cfg.Plugins = cfg.Plugins[:1] })
		turn()
		checkSame(t, "without q", runs(), map[string]uint64{"p.h": 3})
		if err := eng.Reload(t.Context(), &config.Config{Version: 1, Plugins: []config.Plugin{{Name: "nobody"}}}); err == nil {
			t.Fatal("a plugin that nobody knows is loaded")
		}
		reload(func(*config.Config) {})
		turn()
		checkSame(t, "with q again", runs(), map[string]uint64{"p.h": 4, "q.h": 1})
		if o := eng.Overview(); o.Reloads != 3 || o.ReloadsRefused != 1 || o.Phases[0].Dispatches != 4 {
			t.Errorf("reloads: %d and %d refused, dispatches %d", o.Reloads, o.ReloadsRefused, o.Phases[0].Dispatches)
		}
	})
}
