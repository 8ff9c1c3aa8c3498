package runtime_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/sdk"
)

// TestFilteredByThePlugin: a hook that says that it is not for its input is filtered. It has answered, so a phase that
// requires it goes on, and what was rewritten meanwhile is put to it again.
func TestFilteredByThePlugin(t *testing.T) {
	t.Parallel()

	guard := on("guard", phases.ToolPreCall, func(_ context.Context, _ *sdk.Call, in phases.Input) ([]phases.Contribution, error) {
		if call, ok := in.(*phases.ToolPreCallInput); ok && string(call.Arguments) == `{"n":2}` {
			return sdk.Reply(deny("no"))
		}
		return sdk.Filtered()
	}, phases.KindDecision)
	guard.Role = phases.RoleValidate
	tidy := on("tidy", phases.ToolPreCall, reply(&phases.Rewrite{Path: "/n", Value: raw("2")}), phases.KindRewrite)
	tidy.Role, tidy.When = phases.RoleTransform, `tool.name == "one"`
	two := on("two", phases.ToolPreCall, reply(&phases.Noop{}, &phases.Noop{Common: phases.Common{ContributionID: phases.IDFiltered}}), phases.KindDecision)
	two.Role = phases.RoleValidate
	h := newHosted(plugin("p", tidy, guard, two))
	h.cfg.Budgets.Phases = map[phases.Phase]config.PhaseBudget{phases.ToolPreCall: requiring("p.guard")}
	eng := h.start(t)
	for tool, want := range map[string][]string{
		"none": {"p.tidy filtered", "p.guard filtered", "p.two succeeded"},
		"one":  {"p.tidy succeeded", "p.guard denied denied", "p.two succeeded"},
	} {
		out, err := eng.Dispatch(t.Context(), phases.Context{}, &phases.ToolPreCallInput{Tool: tool, Arguments: raw(`{"n":1}`)})
		if diff := cmp.Diff(states(out), want); diff != "" || err != nil && tool == "none" {
			t.Errorf("%s: %v (-got +want):\n%s", tool, err, diff)
		}
	}
}
