package gateway

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

// noon is when things fail in these tests.
func noon() time.Time { return time.Date(2026, 2, 3, 12, 0, 0, 0, time.UTC) }

// plug is a plugin in a state.
func plug(name string, state phases.PluginState, code string) runtime.PluginHealth {
	return runtime.PluginHealth{
		PluginRow: phases.PluginRow{Plugin: name, State: state, Code: code, Message: "detail of " + name}, Since: noon(), Concurrency: 4,
	}
}

// hooked is a hook that has failed like this so many times in a row.
func hooked(id string, code phases.Cause, inARow uint64) runtime.HookRow {
	plugin, _, _ := strings.Cut(id, ".")
	return runtime.HookRow{
		Subscription: id, Plugin: plugin, Phase: phases.PrePromptCompile, Breaker: "closed",
		RunStats: runtime.RunStats{
			Runs: 10, Failed: 5, FailedInARow: inARow, FailOpen: 2, Failures: map[phases.Cause]uint64{code: 5},
			LastError: &runtime.LastError{Code: string(code), Message: "message of " + id, At: noon()},
		},
	}
}

// short is an issue in a line.
func short(t *Issue) string {
	name := t.Subscription
	if name == "" {
		name = t.Plugin
	}
	return string(t.Kind) + " " + name + " " + t.Code
}

func TestIssues(t *testing.T) {
	t.Parallel()

	open := hooked("p.h", phases.CauseTimeout, 6)
	open.Breaker, open.LastError.Code = "open", string(phases.CauseBreakerOpen)
	probing := hooked("p.h", phases.CauseTimeout, 6)
	probing.Breaker = "half_open"
	off := hooked("p.h", phases.CauseTimeout, 6)
	off.Off = "operator"
	hanging := plug("p", phases.PluginReady, "")
	hanging.Abandoned = 2
	busy := plug("p", phases.PluginReady, "")
	busy.Working, busy.Waiting = 4, 9
	again := plug("p", phases.PluginStarting, "")
	again.LastError = &runtime.LastError{Code: string(phases.CauseStartTimeout), Message: "no handshake", At: noon()}
	reloaded := again // the name's last error is that of the configuration before
	again.Restarts = 1
	weak := plug("p", phases.PluginReady, "")
	weak.Tier, weak.TierLacks, weak.AbsentPaths = "T1", []string{"no TCP rules"}, []string{"/srv/none"}
	tools := hooked("p.", phases.CausePluginError, 1)
	tools.Subscription, tools.Phase, tools.LastError.PluginCode = "", phases.PhaseToolCall, "bad_day"
	for _, tt := range []struct {
		name    string
		plugins []runtime.PluginHealth
		hooks   []runtime.HookRow
		want    []string
	}{
		{"all is well", []runtime.PluginHealth{plug("p", phases.PluginReady, "")}, []runtime.HookRow{{Subscription: "p.h", Breaker: "closed"}}, nil},
		{"starting is not an issue", []runtime.PluginHealth{plug("p", phases.PluginStarting, "")}, nil, nil},
		{"nor is it with a new configuration", []runtime.PluginHealth{reloaded}, nil, nil},
		{"starting again is", []runtime.PluginHealth{again}, []runtime.HookRow{hooked("p.h", phases.CauseUnavailable, 1)}, []string{"backoff p start_timeout"}},
		{"what recovered is none", nil, []runtime.HookRow{hooked("p.h", phases.CauseTimeout, 0)}, nil},
		{"what is off is none", nil, []runtime.HookRow{off}, nil},
		{"a hook fails", nil, []runtime.HookRow{hooked("p.h", phases.CauseTimeout, 1)}, []string{"failing p.h timeout"}},
		{"an open breaker says why it opened", nil, []runtime.HookRow{open}, []string{"breaker_open p.h timeout"}},
		{"a breaker that probes", nil, []runtime.HookRow{probing}, []string{"failing p.h timeout"}},
		{"tools fail", nil, []runtime.HookRow{tools}, []string{"failing p plugin_error"}},
		{"calls hang", []runtime.PluginHealth{hanging}, nil, []string{"hanging p timeout"}},
		{"calls wait", []runtime.PluginHealth{busy}, nil, []string{"busy p overloaded"}},
		{"degraded", []runtime.PluginHealth{plug("p", phases.PluginDegraded, "session_reset")}, nil, []string{"degraded p session_reset"}},
		{"a sandbox that lacks something", []runtime.PluginHealth{weak}, nil, []string{"sandbox_partial p sandbox_partial"}},
		{
			"hooks of a plugin that is down are its own",
			[]runtime.PluginHealth{plug("p", phases.PluginBackoff, "crash")},
			[]runtime.HookRow{hooked("p.a", phases.CauseUnavailable, 3), hooked("p.b", phases.CauseCrash, 1), hooked("q.c", phases.CauseUnavailable, 1)},
			[]string{"backoff p crash", "failing q.c unavailable"},
		},
		{
			"but not what they failed of before",
			[]runtime.PluginHealth{plug("p", phases.PluginQuarantined, "crash")},
			[]runtime.HookRow{hooked("p.a", phases.CauseInvalidReply, 3)},
			[]string{"quarantined p crash", "failing p.a invalid_reply"},
		},
		{
			"the worst first",
			[]runtime.PluginHealth{busy, plug("q", phases.PluginDegraded, "x"), plug("r", phases.PluginBackoff, "crash"), plug("s", phases.PluginQuarantined, "oom")},
			[]runtime.HookRow{hooked("t.h", phases.CauseConflict, 1), open},
			[]string{"quarantined s oom", "backoff r crash", "breaker_open p.h timeout", "failing t.h conflict", "degraded q x", "busy p overloaded"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, one := range issues(&runtime.Overview{Plugins: tt.plugins, Hooks: tt.hooks}) {
				got = append(got, short(&one))
				if one.Reason == "" || one.Hint == "" || one.At.IsZero() {
					t.Errorf("it says too little: %+v", one)
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	down := issues(&runtime.Overview{
		Plugins: []runtime.PluginHealth{plug("p", phases.PluginBackoff, "crash")},
		Hooks:   []runtime.HookRow{hooked("p.a", phases.CauseUnavailable, 3), hooked("p.b", phases.CauseCrash, 1)},
	})
	if got := issues(&runtime.Overview{Plugins: []runtime.PluginHealth{again}})[0]; got.Reason != "no handshake" || !strings.Contains(got.Hint, "limits.start") {
		t.Errorf("one that is started again says %+v", got)
	}
	if len(down) != 1 || down[0].InARow != 4 || down[0].FailOpen != 4 || down[0].Reason != "detail of p" {
		t.Errorf("its hooks' failures are not its own: %+v", down)
	}
	for _, name := range []string{"bad_day", "message of p."} {
		if got := issues(&runtime.Overview{Hooks: []runtime.HookRow{tools}})[0].Reason; strings.Contains(got, name) != (name == "bad_day") {
			t.Errorf("the reason is %q", got)
		}
	}
}
