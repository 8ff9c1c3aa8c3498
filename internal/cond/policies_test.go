package cond

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/phases"
)

// TestPolicies: what a condition reads of the policy set is known before it runs,
// whichever way it is written, and nothing else counts as that.
func TestPolicies(t *testing.T) {
	t.Parallel()

	row, _ := phases.Standard().Lookup(phases.ToolPreCall)
	for source, want := range map[string][]string{
		`policy["a/b"] == true`:                           {`policy["a/b"]`},
		`policy["a/b"].c.d == 1 or policy["e/f"] != nil`:  {`policy["a/b"]`, `policy["e/f"]`},
		`tool.name == "policy" and flags.policy`:          nil,
		`input.tool == "x" and (policy["a/b"] ?? 1) == 1`: {`policy["a/b"]`},
		`any([1], # == 1 and policy["a/b"] == nil)`:       {`policy["a/b"]`},
	} {
		c, err := Compile(source, row, nil)
		if err != nil {
			t.Errorf("%s: %v", source, err)
			continue
		}
		if diff := cmp.Diff(c.Policies(), want); diff != "" || c.Source() != source {
			t.Errorf("%s (-got +want):\n%s", source, diff)
		}
	}
	none := (*Condition)(nil)
	if holds, err := none.Eval(Env{}); !holds || err != nil || none.Source() != "" || none.Policies() != nil {
		t.Errorf("no condition: %v, %v, reads %v", holds, err, none.Policies())
	}
}
