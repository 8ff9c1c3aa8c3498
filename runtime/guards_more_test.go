package runtime_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
	"github.com/grapnelhq/grapnel/sdk"
)

// rewriting is a hook that rewrites one value, by a role and with a fallback that
// rewrites another one.
func rewriting(name string, role phases.Role, path, value string, fallback ...phases.Contribution) sdk.Hook {
	h := on(name, phases.ToolPreCall, reply(&phases.Rewrite{Path: path, Value: json.RawMessage(value)}), phases.KindRewrite)
	if h.Role = role; len(fallback) > 0 {
		h.OnFailure, h.Fallback = phases.OnFailure{Default: phases.UseInstead}, fallback
	}
	return h
}

// TestGuardsBehindFallbacks: a guard that its condition kept from one input has its say
// about the one that goes on, however that came about.
func TestGuardsBehindFallbacks(t *testing.T) {
	t.Parallel()
	remove := &phases.Rewrite{Path: "/command", Value: json.RawMessage(`"rm -rf /"`)}
	broken := on("broken", phases.ToolPreCall, failing(errors.New("no")), phases.KindRewrite)
	broken.OnFailure, broken.Fallback = phases.OnFailure{Default: phases.UseInstead}, []phases.Contribution{remove}
	tests := []struct {
		name  string
		role  phases.Role
		hooks []sdk.Hook
	}{
		{"a loser's fallback takes another's place", phases.RoleValidate, []sdk.Hook{
			rewriting("a", "", "/x", "1"),
			rewriting("b", "", "/x", "2", &phases.Rewrite{Path: "/y", Value: json.RawMessage("1")}),
			rewriting("d", "", "/y", "2", remove),
		}},
		{"the fallback of a transform", phases.RoleContribute, []sdk.Hook{broken}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			guard := noRemove(func(h *sdk.Hook) {
				h.Role, h.When, h.Priority = tt.role, `input.arguments.command startsWith "rm"`, 5
			})
			out, err := newHosted(guard, &sdk.Plugin{Name: "w", Version: "1", Hooks: tt.hooks}).start(t).Dispatch(t.Context(), phases.Context{}, command("ls"))
			if out == nil {
				t.Fatal(err)
			}
			if verdictOf(out) != phases.VerdictDeny {
				t.Errorf("it goes on as %s: %v", out.Rewritten.(*phases.ToolPreCallInput).Arguments, states(out)) //nolint:forcetypeassert // by the phase
			}
		})
	}
}

// TestVerdictAboutALostRewrite: "allow, I have made it safe" does not stand where the
// rewrite that made it safe lost its place.
func TestVerdictAboutALostRewrite(t *testing.T) {
	t.Parallel()
	evil := rewriting("evil", phases.RoleTransform, "/command", `"rm -rf /"`)
	clean := on("clean", phases.ToolPreCall, reply(&phases.Rewrite{Path: "/command", Value: json.RawMessage(`"ls"`)},
		&phases.Decision{Verdict: phases.VerdictAllow, Reason: "made safe"}), phases.KindRewrite, phases.KindDecision)
	clean.Role, clean.OnFailure = phases.RoleTransform, phases.OnFailure{Default: phases.BestEffort}
	out, err := newHosted(&sdk.Plugin{Name: "w", Version: "1", Hooks: []sdk.Hook{evil}}, &sdk.Plugin{Name: "z", Version: "1", Hooks: []sdk.Hook{clean}}).
		start(t).Dispatch(t.Context(), phases.Context{}, command("x"))
	if err != nil || verdictOf(out) == phases.VerdictAllow {
		t.Errorf("decision %+v, %v, %v", out.Decision, states(out), err)
	}
}

// TestFallbackOfAGuardThatNeverCameUp is used, kinds or not.
func TestFallbackOfAGuardThatNeverCameUp(t *testing.T) {
	t.Parallel()
	h := newHosted(&sdk.Plugin{Name: "ghost", Version: "1", OnConfigure: func(context.Context, *phases.Configuration) (sdk.Setup, error) {
		return sdk.Setup{}, errors.New("not today")
	}}).override("ghost.guard", phases.Override{
		Phase: new(phases.ToolPreCall), OnFailure: &phases.OnFailure{Default: phases.UseInstead},
		Fallback: phases.Contributions{&phases.Decision{Verdict: phases.VerdictDeny, ReasonCode: "down"}},
	})
	out, err := h.start(t).Dispatch(t.Context(), phases.Context{}, command("ls"))
	if err != nil || verdictOf(out) != phases.VerdictDeny {
		t.Errorf("decision %+v, %v, %v", out.Decision, states(out), err)
	}
}

// TestLateGuardThatDoesNotFit: where nobody waited for the plugin, a guard that may not
// see what it needs closes its phase, as soon as it is known.
func TestLateGuardThatDoesNotFit(t *testing.T) {
	t.Parallel()
	release, refused := make(chan struct{}), make(chan struct{}, 8)
	p := noRemove(nil)
	p.OnConfigure = late(release).OnConfigure
	h := newHosted(p)
	h.plugin("house").Grants.See, h.opts.WaitFor = nil, runtime.WaitRequired
	h.opts.OnEvent = func(ev runtime.Event) {
		if ev.Kind == runtime.EventPlugin && ev.State == string(phases.PluginQuarantined) {
			refused <- struct{}{}
		}
	}
	eng := h.start(t)
	close(release)
	<-refused
	out, err := eng.Dispatch(t.Context(), phases.Context{}, command("rm -rf /"))
	if verdictOf(out) != phases.VerdictDeny || err == nil || len(out.Runs) != 1 || out.Runs[0].State != phases.StateUnavailable {
		t.Errorf("decision %+v, %v, %v", out.Decision, states(out), err)
	}
}

// TestPolicyGuardsWaitForPolicies: in a turn whose policies nobody has asked for, a
// guard that goes by them is refused, and not asked.
func TestPolicyGuardsWaitForPolicies(t *testing.T) {
	t.Parallel()
	guard := on("guard", phases.ToolPreCall, reply(deny("locked")), phases.KindDecision)
	guard.When = `policy["d/k"] == true`
	eng := newHosted(plugin("p", on("set", phases.PrePolicy, reply(policyOf("k", `true`)), phases.KindPolicy), guard)).start(t)
	turn := beginAt(t, eng, host())
	if _, err := turn.Dispatch(t.Context(), command("ls")); phases.CodeOf(err) != phases.CauseTurnNeeded {
		t.Errorf("before turn.pre_policy: %v", err)
	}
	outcome(t)(turn.Dispatch(t.Context(), &phases.PrePolicyInput{}))
	if out, err := turn.Dispatch(t.Context(), command("ls")); err != nil || verdictOf(out) != phases.VerdictDeny {
		t.Errorf("after it: %v, %v", out, err)
	}
}

// TestConductOfToolCalls: a call that nobody judged, that is not the one that was judged, or that was denied, is reported.
// The newest verdict about a call counts, once, and numbers are compared as they are written.
func TestConductOfToolCalls(t *testing.T) {
	t.Parallel()
	var verdict phases.Verdict
	tool := phases.Tool{Name: "shell"}
	p := plugin("p",
		on("guard", phases.ToolPreCall, func(context.Context, *sdk.Call, phases.Input) ([]phases.Contribution, error) {
			return []phases.Contribution{&phases.Decision{Verdict: verdict}}, nil
		}, phases.KindDecision),
		on("offer", phases.PreTools, reply(&phases.ToolBundle{BundleID: "b", Tools: []phases.Tool{tool}}), phases.KindToolBundle),
	)
	p.Tools = []sdk.Tool{{Tool: tool, Call: func(context.Context, *sdk.ToolCall) (*phases.ToolResult, error) { return sdk.Text("done"), nil }}}
	eng := newHosted(p).start(t)
	const one = `{"a":1}`
	for _, tt := range []struct {
		name     string
		judged   string
		verdicts []phases.Verdict // of the judged call, one after the other
		made     []string
		want     string // of the last one
	}{
		{"never judged", one, nil, []string{one}, "phase_skipped"},
		{"judged once", one, []phases.Verdict{"allow"}, []string{one, one}, "phase_skipped"},
		{"another one", one, []phases.Verdict{"allow"}, []string{`{"a":2}`}, phases.CodeJudgedEarlier},
		{"another number", `{"a":9007199254740992}`, []phases.Verdict{"allow"}, []string{`{"a":9007199254740993}`}, phases.CodeJudgedEarlier},
		{"denied, then allowed", one, []phases.Verdict{"deny", "allow"}, []string{`{"a":1.0}`}, ""},
		{"allowed, then denied", one, []phases.Verdict{"allow", "deny"}, []string{one}, "deny_ignored p.guard"},
		{"in another order", `{"b":1,"a":2}`, []phases.Verdict{"allow"}, []string{`{"a":2,"b":1}`}, ""},
		{"without arguments", `null`, []phases.Verdict{"allow"}, []string{`{}`}, ""},
	} {
		turn := beginAt(t, eng, host())
		outcome(t)(turn.Dispatch(t.Context(), &phases.PreToolsInput{ToolCalling: true}))
		for _, verdict = range tt.verdicts {
			outcome(t)(turn.Dispatch(t.Context(), &phases.ToolPreCallInput{Tool: "shell", Arguments: raw(tt.judged)}))
		}
		var got string
		for _, made := range tt.made {
			res, err := turn.CallTool(t.Context(), phases.ToolCall{Tool: "shell", Arguments: raw(made)})
			if err != nil {
				t.Fatal(err)
			}
			got = strings.Join(codes(&phases.Outcome{Diagnostics: res.Diagnostics}), " ")
		}
		if got != tt.want {
			t.Errorf("%s: told %q, want %q", tt.name, got, tt.want)
		}
	}
}
