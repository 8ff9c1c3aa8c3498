package runtime_test

import (
	"context"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/sdk"
)

// watched is a plugin that sets a policy, offers the tool "look" and asks for a
// background job of it; what each call of the tool was told goes to seen.
func watched(seen *[]*phases.ToolCall) *sdk.Plugin {
	look := tool("look", func(_ context.Context, c *sdk.ToolCall) (*phases.ToolResult, error) {
		told := *c.ToolCall
		told.Policies = clonedPolicies(c.Policies)
		*seen = append(*seen, &told)
		for i := range c.Policies { // it has copies: nobody else sees this
			c.Policies[i].Value[0] = 'X'
		}
		return sdk.Text("ok"), nil
	})
	p := offering("p", look)
	p.Hooks = append(p.Hooks, on("rule", phases.PrePolicy, reply(
		&phases.Policy{Common: phases.Common{Domain: "memory"}, Key: "turn_policy", Value: raw(`{"recall":"allow"}`)},
		&phases.BackgroundJob{JobKind: "look"},
	), phases.KindPolicy, phases.KindBackgroundJob))
	return p
}

func clonedPolicies(list []phases.PolicyEntry) []phases.PolicyEntry {
	out := slices.Clone(list)
	for i := range out {
		out[i].Value = slices.Clone(out[i].Value)
	}
	return out
}

// TestToolPolicies: a call in a turn, and a job that the turn asked for, have the
// turn's policies by grant; one that the host makes by itself has none and says
// that there is no turn. What the caller claims does not count.
func TestToolPolicies(t *testing.T) {
	t.Parallel()

	entry := phases.PolicyEntry{Domain: "memory", Key: "turn_policy", Value: raw(`{"recall":"allow"}`), Owner: "p.rule"}
	claimed := phases.ToolCall{Tool: "look", Policies: []phases.PolicyEntry{{Domain: "memory", Key: "claimed", Value: raw(`1`)}}}
	tests := []struct {
		name string
		see  []string
		want []phases.PolicyEntry
	}{
		{"granted", []string{"policy"}, []phases.PolicyEntry{entry}},
		{"granted with all", []string{"*"}, []phases.PolicyEntry{entry}},
		{"not granted", []string{"metadata", "user_text"}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			var seen []*phases.ToolCall
			h := newHosted(watched(&seen))
			h.plugin("p").Grants.See = tt.see
			eng := h.start(t)
			turn := begin(t, eng)
			outcome(t)(turn.Dispatch(t.Context(), &phases.PrePolicyInput{}))
			waitBackground(t, eng)
			outcome(t)(turn.Dispatch(t.Context(), &phases.PreToolsInput{}))
			inTurn, outside := claimed, claimed
			inTurn.OutsideTurn = true
			for range 2 { // the second call meets nothing of what the first one did
				if _, err := turn.CallTool(t.Context(), inTurn); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := eng.CallTool(t.Context(), "p", outside); err != nil {
				t.Fatal(err)
			}
			for i, c := range seen {
				if got, want := c.OutsideTurn, i == 3; got != want {
					t.Errorf("call %d: outside a turn %v, want %v", i, got, want)
				}
				want := tt.want
				if i == 3 {
					want = nil
				}
				if diff := cmp.Diff(c.Policies, want); diff != "" {
					t.Errorf("call %d: policies (-got +want):\n%s", i, diff)
				}
			}
			if len(seen) != 4 {
				t.Errorf("%d calls, want a job, two in the turn, and one of the host's own", len(seen))
			}
		})
	}
}
