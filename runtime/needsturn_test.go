package runtime_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/sdk"
)

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
