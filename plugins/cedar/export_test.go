package cedar

import (
	"reflect"
	"testing"

	"github.com/cedar-policy/cedar-go/x/exp/schema/resolved"

	"github.com/grapnelhq/grapnel/phases"
)

// CompareSchema compares a schema, but for annotations and names, with the one that rules are checked against.
func CompareSchema(t *testing.T, got *resolved.Schema) {
	t.Helper()
	want := schema()
	if len(got.Entities) != len(want.Entities) || len(got.Actions) != len(want.Actions) {
		t.Errorf("%d entities and %d actions, want %d and %d", len(got.Entities), len(got.Actions), len(want.Entities), len(want.Actions))
	}
	for name, w := range want.Entities {
		g := got.Entities[name]
		if !reflect.DeepEqual(g.ParentTypes, w.ParentTypes) || !sameRecord(g.Shape, w.Shape) || (g.Tags == nil) != (w.Tags == nil) {
			t.Errorf("%s: %+v, want %+v", name, g, w)
		}
	}
	for id, w := range want.Actions {
		g := got.Actions[id]
		if !g.Entity.Parents.Equal(w.Entity.Parents) || (g.AppliesTo == nil) != (w.AppliesTo == nil) {
			t.Fatalf("%s: %+v, want %+v", id, g, w)
		}
		if row, _ := phases.Standard().Lookup(phases.Phase(id.ID)); w.AppliesTo == nil && !row.Decides() {
			t.Errorf("%s is not a phase that takes decisions", id)
		}
		if w.AppliesTo != nil && (!reflect.DeepEqual(g.AppliesTo.Resources, w.AppliesTo.Resources) || !sameRecord(g.AppliesTo.Context, w.AppliesTo.Context)) {
			t.Errorf("%s: %+v, want %+v", id, g.AppliesTo, w.AppliesTo)
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

func sameRecord(a, b resolved.RecordType) bool {
	if len(a) != len(b) {
		return false
	}
	for name, at := range a {
		ra, aok := at.Type.(resolved.RecordType)
		rb, bok := b[name].Type.(resolved.RecordType)
		if aok != bok || aok && !sameRecord(ra, rb) || !aok && !reflect.DeepEqual(at.Type, b[name].Type) {
			return false
		}
	}
	return true
}
