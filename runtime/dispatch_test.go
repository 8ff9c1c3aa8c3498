package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/sdk"
)

// TestStages pins the order of the stages and of the layers inside them: what
// each hook sees of those before it, and that observers come last and later.
func TestStages(t *testing.T) {
	t.Parallel()

	var j journal
	rewrite := on("rewrite", phases.ToolPreCall, j.noting("transform", reply(&phases.Rewrite{Path: "/a", Value: raw("2")})), phases.KindRewrite)
	rewrite.Role = phases.RoleTransform
	first := on("first", phases.ToolPreCall, j.noting("contribute 1", reply()))
	second := on("second", phases.ToolPreCall, j.noting("contribute 2", reply()))
	second.After = []string{"p.first"}
	check := on("check", phases.ToolPreCall, func(_ context.Context, _ *sdk.Call, in phases.Input) ([]phases.Contribution, error) {
		call, ok := in.(*phases.ToolPreCallInput)
		j.add(fmt.Sprintf("validate %s %v", call.Arguments, ok))
		return sdk.Reply(allow())
	}, phases.KindDecision)
	check.Role = phases.RoleValidate
	watch := on("watch", phases.ToolPreCall, j.noting("observe", reply()))
	watch.Role = phases.RoleObserve

	eng := newHosted(plugin("p", watch, check, second, first, rewrite)).start(t)
	out := dispatch(t, eng, &phases.ToolPreCallInput{Tool: "x", Arguments: raw(`{"a": 1}`)})
	waitBackground(t, eng)

	want := []string{"transform", "contribute 1", "contribute 2", `validate {"a":2} true`, "observe"}
	checkSame(t, "order", j.all(), want)
	ledger := []string{"p.rewrite succeeded", "p.first succeeded", "p.second succeeded", "p.check succeeded", "p.watch queued"}
	checkSame(t, "ledger", states(out), ledger)
	if second := runOf(t, out, "p.second"); second.Layer != 1 || second.Stage != phases.RoleContribute {
		t.Errorf("p.second is in %s, layer %d", second.Stage, second.Layer)
	}
	if got := out.Decision; got == nil || got.Verdict != phases.VerdictAllow {
		t.Errorf("decision = %+v", got)
	}
}

// TestDependenciesOnlyOrder: what a hook waits for may fail, be filtered or be
// off; the hook runs all the same, and after it.
func TestDependenciesOnlyOrder(t *testing.T) {
	t.Parallel()

	var j journal
	failed := on("failed", phases.PrePromptCompile, j.noting("failed", failing(sdk.Fail("nope", "no"))))
	filtered := on("filtered", phases.PrePromptCompile, j.noting("filtered", reply()))
	filtered.When = "false"
	off := on("off", phases.PrePromptCompile, j.noting("off", reply()))
	last := on("last", phases.PrePromptCompile, j.noting("last", reply()))
	last.After = []string{"p.failed", "p.filtered", "p.off", "gone.hook?"}
	last.Priority = 100

	h := newHosted(plugin("p", last, failed, filtered, off)).override("p.off", phases.Override{Enabled: new(false)})
	out := dispatch(t, h.start(t), &phases.PrePromptCompileInput{})
	checkSame(t, "order", j.all(), []string{"failed", "last"})
	want := []string{"p.failed failed plugin_error", "p.filtered filtered", "p.off disabled operator", "p.last succeeded"}
	checkSame(t, "ledger", states(out), want)
	if run := runOf(t, out, "p.failed"); run.PluginCode != "nope" {
		t.Errorf("plugin code = %q", run.PluginCode)
	}
}

func TestConditions(t *testing.T) {
	t.Parallel()

	// An error at run time: the input is JSON that is not there.
	const broken = `input.recall_plan.deep.value > 1`
	tests := []struct {
		name, when string
		policy     phases.OnFailure
		want       []string
		err        string
	}{
		{name: "true", when: `turn.mode == "agent"`, want: []string{"p.h succeeded"}},
		{name: "false", when: `turn.mode == "chat"`, want: []string{"p.h filtered"}},
		{name: "flag that is not there", when: `flags.x`, want: []string{"p.h filtered"}},
		{name: "false of a fail-closed hook is no failure", when: "false", policy: word(phases.FailClosed), want: []string{"p.h filtered"}},
		{name: "error, best effort", when: broken, want: []string{"p.h failed condition"}},
		{name: "error, fail closed", when: broken, policy: word(phases.FailClosed), want: []string{"p.h failed condition"}, err: "condition p.h"},
		{
			name: "error, by cause", when: broken, want: []string{"p.h failed condition"}, err: "condition p.h",
			policy: phases.OnFailure{Default: phases.BestEffort, ByCause: map[phases.Cause]phases.FailureWord{phases.CauseCondition: phases.FailClosed}},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			h := on("h", phases.PostPreflight, reply())
			h.When, h.OnFailure = tt.when, tt.policy
			out := dispatch(t, newHosted(plugin("p", h)).start(t), &phases.PostPreflightInput{RecallPlan: raw(`{"deep": 1}`)})
			checkSame(t, "ledger", states(out), tt.want)
			if got := errorCode(out); got != tt.err {
				t.Errorf("error = %q, want %q", got, tt.err)
			}
			if open := strings.Contains(strings.Join(codes(out), "\n"), phases.CodeFailOpen+" p.h"); open != (strings.Contains(tt.want[0], "failed") && tt.err == "") {
				t.Errorf("fail-open mark: %v in %v", open, codes(out))
			}
		})
	}
}

func TestInvalidInput(t *testing.T) {
	t.Parallel()

	eng := newHosted().start(t)
	for want, in := range map[string]phases.Input{
		"unknown phase":            &phases.CustomInput{Name: "x.host.other"},
		"input of turn.pre_policy": &phases.PrePolicyInput{UserText: phases.T("\xff")},
	} {
		if out, err := eng.Dispatch(t.Context(), host(), in); out != nil || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Dispatch = %v, %v, want %s", out, err, want)
		}
	}
}

// TestCustomPhase: a host's own phase takes the same path.
func TestCustomPhase(t *testing.T) {
	t.Parallel()

	seen := make(chan string, 1)
	h := newHosted(plugin("p", on("h", "x.host.event", func(_ context.Context, _ *sdk.Call, in phases.Input) ([]phases.Contribution, error) {
		custom, _ := in.(*phases.CustomInput)
		seen <- string(custom.Fields)
		return sdk.Reply(&phases.Reminder{Type: "t", Text: "x"})
	}, phases.KindReminder)))
	h.opts.Phases = []phases.Row{phases.Custom("x.host.event", "", 0, phases.KindReminder)}
	out := dispatch(t, h.start(t), &phases.CustomInput{Name: "x.host.event", Fields: raw(`{"a":1}`)})
	if len(out.Merged.Reminders) != 1 || <-seen != `{"a":1}` {
		t.Errorf("outcome = %+v", out)
	}
}

// guardByPolicy denies where the turn has the policy d/k, which it looks up itself.
func guardByPolicy(_ context.Context, c *sdk.Call, _ phases.Input) ([]phases.Contribution, error) {
	if _, locked := c.Policy("d", "k"); locked {
		return sdk.Reply(deny("locked"))
	}
	return nil, nil
}

// TestDispatchNeedsTurn: a phase with a hook that needs a turn is refused without one,
// before any hook ran, by an error that names the hook; and runs in a turn.
func TestDispatchNeedsTurn(t *testing.T) {
	t.Parallel()

	locked := on("set", phases.PrePolicy, reply(policyOf("k", `true`)), phases.KindPolicy)
	conditional := on("guard", phases.ToolPreCall, reply(deny("locked")), phases.KindDecision)
	conditional.When = `policy["d/k"] == true`
	reading := on("guard", phases.ToolPreCall, guardByPolicy, phases.KindDecision)
	plain := on("guard", phases.ToolPreCall, reply(deny("always")), phases.KindDecision)
	needing := on("guard", phases.ToolPreCall, guardByPolicy, phases.KindDecision)
	needing.Needs = []string{"policy"}
	content := on("guard", phases.ToolPreCall, reply(deny("always")), phases.KindDecision)
	content.Needs = []string{"tool"}
	reminds := on("guard", phases.ToolPreCall, guardByPolicy, phases.KindReminder)
	tests := []struct {
		name string
		hook sdk.Hook
		see  []string
		off  bool
		want string // of the message; empty where the phase is dispatched
	}{
		{"its condition reads a policy", conditional, []string{"policy"}, false, `its condition reads policy["d/k"]`},
		{"it may see policies by name", reading, []string{"policy"}, false, "see: policy"},
		{"it may see contexts by name", reading, []string{"tool", "context"}, false, "see: context"},
		{"it may see everything", reading, []string{"*"}, false, ""},
		{"it sees neither", plain, []string{"arguments"}, false, ""},
		{"it does not decide", reminds, []string{"policy"}, false, ""},
		{"it says that it needs policies", needing, []string{"*"}, false, "it decides and needs to see the turn's state (policy)"},
		{"it says that it needs none", content, []string{"policy"}, false, ""},
		{"it is off", conditional, []string{"policy"}, true, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			var ran journal
			other := on("other", phases.ToolPreCall, ran.noting("other", reply()))
			h := newHosted(plugin("p", locked, tt.hook), plugin("q", other))
			h.plugin("p").Grants.See = tt.see
			if tt.off {
				h.override("p.guard", phases.Override{Enabled: new(false)})
			}
			eng := h.start(t)
			out, err := eng.Dispatch(t.Context(), host(), &phases.ToolPreCallInput{Tool: "x"})
			if tt.want == "" {
				if err != nil || out == nil {
					t.Errorf("refused: %v", err)
				}
				return
			}
			coded, ok := errors.AsType[*phases.Error](err)
			if !ok || out != nil || coded.Code != phases.CauseTurnNeeded || coded.Subscription != "p.guard" || coded.Phase != phases.ToolPreCall || !strings.Contains(coded.Message, tt.want) {
				t.Fatalf("outcome %v, error %v", out, err)
			}
			if coded.Code.Failure() || len(ran.all()) != 0 {
				t.Errorf("it is a failure of a plugin, or hooks ran: %v", ran.all())
			}
			turn := begin(t, eng)
			outcome(t)(turn.Dispatch(t.Context(), &phases.PrePolicyInput{}))
			out = outcome(t)(turn.Dispatch(t.Context(), &phases.ToolPreCallInput{Tool: "x"}))
			if denied := out.Decision != nil && out.Decision.Verdict == phases.VerdictDeny; denied != (tt.see[len(tt.see)-1] != "context") {
				t.Errorf("in a turn: %+v", out.Decision)
			}
		})
	}
}

// TestSessionNeedsNoTurn: phases that belong to no turn are dispatched without one,
// whatever their hooks look at.
func TestSessionNeedsNoTurn(t *testing.T) {
	t.Parallel()

	start := on("start", phases.SessionStart, reply())
	start.When = `policy["d/k"] == nil`
	first := on("first", phases.PrePolicy, reply(allow()), phases.KindDecision)
	first.When = `policy["d/k"] == nil`
	eng := newHosted(plugin("p", start, first)).start(t)
	session := host()
	session.SessionID = "s"
	if _, err := eng.StartSession(t.Context(), session, "startup"); err != nil {
		t.Error(err)
	}
	if out := dispatch(t, eng, &phases.PrePolicyInput{}); out.Decision == nil {
		t.Errorf("not run: %v", states(out))
	}
}
