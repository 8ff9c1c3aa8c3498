package cedar

import (
	"maps"
	"slices"
	"testing"

	"github.com/cedar-policy/cedar-go/types"
	"github.com/cedar-policy/cedar-go/x/exp/schema/resolved"
	"github.com/cedar-policy/cedar-go/x/exp/schema/validate"

	"github.com/grapnelhq/grapnel/phases"
)

// CompareActions compares the table of actions with the model.
func CompareActions(t *testing.T) {
	t.Helper()
	left := maps.Clone(resolvedModel().Actions)
	for _, a := range actions {
		id, group := actionUID(a.name), actionUID(string(a.phase))
		in := left[id]
		if in.AppliesTo == nil || !slices.Equal(in.AppliesTo.Resources, []types.EntityType{a.resource}) || !in.Entity.Parents.Equal(types.NewEntityUIDSet(group)) {
			t.Errorf("%s: %+v", a.name, in)
		}
		if row, _ := phases.Standard().Lookup(a.phase); !row.Decides() {
			t.Errorf("%s is not a phase that takes decisions", a.phase)
		}
		delete(left, id)
	}
	maps.DeleteFunc(left, func(_ types.EntityUID, a resolved.Action) bool { return a.AppliesTo == nil }) // groups
	if len(left) > 0 {
		t.Errorf("not in the table: %v", left)
	}
}

// CheckScenes compares a call, and a prompt, with the model.
func CheckScenes(t *testing.T, in *phases.ToolPreCallInput, where phases.Context) {
	t.Helper()
	v := validate.New(resolvedModel())
	d := &phases.Dispatch{Context: where}
	for _, sc := range []*scene{newCall(d, in, &in.Facts), newPrompt(d, &phases.PrePolicyInput{})} {
		for i := range actions {
			a := &actions[i]
			if a.phase != sc.phase {
				continue
			}
			for _, id := range a.on(sc) {
				resource := uid(a.resource, id)
				sc.Get(resource)
				if err := v.Request(types.Request{Principal: sc.agent, Action: actionUID(a.name), Resource: resource, Context: sc.context}); err != nil {
					t.Errorf("%s: %v", a.name, err)
				}
			}
		}
		for _, e := range sc.known {
			if err := v.Entity(e); err != nil {
				t.Error(err)
			}
		}
	}
}

// Denies reports whether one rule alone denies a call with such facts.
func Denies(t *testing.T, text string, f *phases.Facts) bool {
	t.Helper()
	rules, problems := parse("x.cedar", text)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	d := &phases.Dispatch{Context: phases.Context{Dir: caseDir}}
	decision, err := newRuleset(rules).judge(t.Context(), newCall(d, &phases.ToolPreCallInput{Tool: "T"}, f), false)
	if err != nil {
		t.Fatal(err)
	}
	return decision != nil && decision.Verdict == phases.VerdictDeny
}
