package plugintest

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/sdk"
)

// TestWithhold: a case withholds what an operator may withhold, and the hook is told,
// in process and over the wire.
func TestWithhold(t *testing.T) {
	t.Parallel()
	p := &sdk.Plugin{Name: "p", Version: "1", Hooks: []sdk.Hook{{
		Name: "guard", Kinds: []phases.Kind{phases.KindDecision}, Role: phases.RoleValidate, Needs: []string{"arguments", "policy"},
		ToolPreCall: func(_ context.Context, c *sdk.Call, in *phases.ToolPreCallInput) ([]phases.Contribution, error) {
			reason := strings.Join(c.Withheld, " ") + " " + string(in.Arguments) + " " + strings.Join(in.TouchedPaths, " ")
			return sdk.Reply(&phases.Decision{Verdict: phases.VerdictDeny, Reason: reason})
		},
	}}}
	c := Case{
		Hook: "guard", Input: &phases.ToolPreCallInput{Tool: "sh", Arguments: json.RawMessage(`{"a":1}`), TouchedPaths: []string{"x"}},
		Policies: []phases.PolicyEntry{{Domain: "d", Key: "k", Value: json.RawMessage(`2`)}},
	}
	for want, withhold := range map[string][]string{
		` {"a":1} x`: nil,
		`arguments policy {"chars":7,"withheld":true} x`: {"arguments", "policy", "metadata"},
		`touched_paths {"a":1} `:                         {"touched_paths", "context"},
	} {
		c.Withhold = withhold
		rec := newRecorder(t)
		got := Run(rec, p, c)
		rec.expect(t)
		d, ok := got.Contributions[0].(*phases.Decision)
		if ok {
			d.Reason = strings.ReplaceAll(d.Reason, `{"withheld":true,"chars":7}`, `{"chars":7,"withheld":true}`)
		}
		if !ok || d.Reason != want {
			t.Errorf("withheld %v: got %+v, want %q", withhold, got.Contributions[0], want)
		}
	}
	c.Withhold = []string{"argument"}
	rec := newRecorder(t)
	Run(rec, p, c)
	rec.expect(t, `the case withholds "argument", which tool.pre_call does not have (did you mean "arguments"?)`)
}
