package plan

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/phases"
)

// guard is a plugin "house" with one hook that decides about tool calls.
func guard(see []string, change func(*phases.Hook)) Plugin {
	h := phases.Hook{Name: "guard", Phase: phases.ToolPreCall, Role: phases.RoleValidate, Kinds: []phases.Kind{phases.KindDecision}, Needs: []string{"arguments"}}
	if change != nil {
		change(&h)
	}
	p := plugin("house", h)
	p.Grants.See = see
	return p
}

// TestNeeds is what becomes of hooks that may not see what they need: a guard that
// allows what it was never shown is worse than none.
func TestNeeds(t *testing.T) {
	t.Parallel()
	const warning = phases.SeverityWarning
	off := phases.Override{WithoutNeeds: new(phases.TurnOff)}
	tests := []struct {
		name   string
		plugin Plugin
		// problem is a part of the mistake; empty for a plan that holds.
		problem string
		// note is a part of a remark with the given severity; empty for none.
		note     string
		severity phases.Severity
		off      string
	}{
		{name: "granted", plugin: guard([]string{"arguments"}, nil)},
		{name: "granted by wildcard", plugin: guard([]string{"*"}, nil)},
		{name: "the tool's name is always there", plugin: guard(nil, func(h *phases.Hook) { h.Needs = []string{"tool"} })},
		{name: "a guard without", plugin: guard(nil, nil), problem: "house.guard decides and needs to see arguments"},
		{name: "a guard by its kinds", plugin: guard(nil, func(h *phases.Hook) { h.Role = phases.RoleContribute }), problem: "house.guard decides and needs to see arguments"},
		{name: "a set", plugin: guard([]string{"arguments"}, func(h *phases.Hook) { h.Needs = []string{"arguments", "policy"} }), problem: "needs to see policy"},
		{name: "off by the operator's word", plugin: guard(nil, nil).overriding("house.guard", off), note: "house.guard is off", severity: warning, off: ReasonNeedsNotGranted},
		{name: "a word that there is not", plugin: guard(nil, nil).overriding("house.guard", phases.Override{WithoutNeeds: new(phases.WithoutNeeds("on"))}), problem: `it takes the word off`},
		{name: "disabled anyway", plugin: guard(nil, nil).overriding("house.guard", phases.Override{Enabled: new(false)}), off: ReasonOperator},
		{name: "in the shadow", plugin: guard(nil, func(h *phases.Hook) { h.Shadow = true }), note: "it runs without", severity: warning},
		{name: "not a guard", plugin: guard(nil, func(h *phases.Hook) { h.Role, h.Kinds = "", []phases.Kind{phases.KindReminder} }), note: "it runs without", severity: warning},
		{name: "a guard that does not say", plugin: guard([]string{"arguments"}, func(h *phases.Hook) { h.Needs = nil }), note: "may not see touched_paths", severity: phases.SeverityInfo},
		{name: "no such field", plugin: guard(nil, func(h *phases.Hook) { h.Needs = []string{"argument"} }), problem: `needs "argument", which is not a field`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p, notes, err := Build([]Plugin{tt.plugin}, Options{})
			if (err != nil) != (tt.problem != "") || err != nil && !strings.Contains(err.Error(), tt.problem) {
				t.Fatalf("Build: %v, want a mistake with %q", err, tt.problem)
			}
			if err != nil {
				return
			}
			found := slices.ContainsFunc(notes, func(n phases.Diagnostic) bool {
				return n.Code == phases.CodeNeedsNotGranted && n.Severity == tt.severity && strings.Contains(n.Message, tt.note)
			})
			if found != (tt.note != "") {
				t.Errorf("remarks %v, want one with %q", notes, tt.note)
			}
			reason := ""
			for _, o := range p.Phase(phases.ToolPreCall).Off {
				reason = o.Reason
			}
			if reason != tt.off {
				t.Errorf("off for %q, want %q", reason, tt.off)
			}
		})
	}
}

// TestConditionsSeeWhatTheirAuthorMaySee: the ledger says which hooks were filtered,
// so that a plugin's own condition could read out what was withheld from it.
func TestConditionsSeeWhatTheirAuthorMaySee(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, when string
		see        []string
		vary       []string
		operator   bool
		problem    string
	}{
		{name: "withheld input", when: `input.arguments.path startsWith "/etc"`, problem: "grant see: [arguments]"},
		{name: "granted", when: `input.arguments.path startsWith "/etc"`, see: []string{"arguments"}},
		{name: "withheld policy", when: `policy["a/b"] == true`, problem: "grant see: [policy]"},
		{name: "in a predicate", when: `any(input.touched_paths, # == "/etc")`, problem: "grant see: [touched_paths]"},
		{name: "within a function", when: `toJSON(input.arguments) contains "x" or any(texts(input.arguments), # == "x")`, problem: "grant see: [arguments]"},
		{name: "by another way of writing it", when: `input["arguments"] != nil`, problem: "grant see: [arguments]"},
		{name: "always sent", when: `tool.name == "sh" && input.tool == "sh" && turn.mode == "chat" && flags.x && dir != "" && actor.id != ""`},
		{name: "withheld facts", when: `call.facts.unparsed`, see: []string{"arguments"}, problem: "grant see: [facts]"},
		{name: "granted facts", when: `call.facts.unparsed`, see: []string{"facts"}},
		{name: "the operator's own", when: `input.arguments.path == "x" && policy["a/b"] == true`, operator: true},
		{name: "varies with what is withheld", vary: []string{"input.arguments"}, problem: `vary "input.arguments" may not be seen`},
		{name: "varies with metadata", vary: []string{"metadata"}, problem: `vary "metadata" may not be seen`},
		{name: "varies with what it sees", vary: []string{"input.arguments", "dir", "input.tool"}, see: []string{"arguments"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h := phases.Hook{Name: "h", Phase: phases.ToolPostCall, Kinds: []phases.Kind{phases.KindReminder}, When: tt.when}
			if tt.vary != nil {
				h.Cache = &phases.Cache{Vary: tt.vary}
			}
			p := plugin("house", h)
			if p.Grants.See = tt.see; tt.operator {
				p = p.overriding("house.h", phases.Override{When: &tt.when})
			}
			_, _, err := Build([]Plugin{p}, Options{})
			if (err != nil) != (tt.problem != "") || err != nil && !strings.Contains(err.Error(), tt.problem) {
				t.Errorf("Build: %v, want a mistake with %q", err, tt.problem)
			}
		})
	}
}

// TestRewritesComeFirst: a hook that rewrites does so before others judge, and who
// decides otherwise is told.
func TestRewritesComeFirst(t *testing.T) {
	t.Parallel()
	rewriter := phases.Hook{Name: "rewrite", Phase: phases.ToolPreCall, Kinds: []phases.Kind{phases.KindRewrite}}
	judge := phases.Hook{Name: "judge", Phase: phases.ToolPreCall, Kinds: []phases.Kind{phases.KindDecision}, Needs: []string{"tool"}}
	with := func(h phases.Hook, role phases.Role) phases.Hook { h.Role = role; return h }
	tests := []struct {
		name            string
		rewriter, judge phases.Hook
		stage           phases.Role
		note            bool
	}{
		{"by default", rewriter, judge, phases.RoleTransform, false},
		{"beside it", with(rewriter, phases.RoleContribute), judge, phases.RoleContribute, true},
		{"beside a validator", with(rewriter, phases.RoleContribute), with(judge, phases.RoleValidate), phases.RoleContribute, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p, notes := mustBuild(t, Options{}, plugin("a", tt.judge), plugin("b", tt.rewriter))
			if got := only(t, p, "b.rewrite").Stage; got != tt.stage {
				t.Errorf("the rewriter's stage is %s, want %s", got, tt.stage)
			}
			found := slices.ContainsFunc(notes, func(n phases.Diagnostic) bool {
				return n.Code == phases.CodeJudgedEarlier && n.Subscription == "a.judge"
			})
			if found != tt.note {
				t.Errorf("remarks %v", notes)
			}
		})
	}
}

// TestRequested: the operator's word on kinds counts, and hooks that are switched off ask for nothing.
func TestRequested(t *testing.T) {
	t.Parallel()

	p := Plugin{
		Name: "p", Overrides: map[string]phases.Override{"p.off": {Enabled: new(false)}, "p.less": {Kinds: []phases.Kind{phases.KindAudit}}},
		Description: &phases.Description{
			Hooks: []phases.Hook{
				{Name: "off", Kinds: []phases.Kind{phases.KindDecision}, Needs: []string{"arguments"}},
				{Name: "less", Kinds: []phases.Kind{phases.KindAudit, phases.KindReminder}, Needs: []string{"tool", "policy"}},
				{Name: "none", Kinds: []phases.Kind{phases.KindNoop, phases.KindManifestDiagnostic}, Needs: []string{phases.NeedsNothing}},
			},
			Tools: []phases.Tool{{Name: "b"}, {Name: "a"}},
		},
	}
	want := &phases.Grants{Contribute: []string{"audit"}, See: []string{"policy"}, Tools: []string{"a", "b"}}
	if diff := cmp.Diff(want, p.Requested()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := (&Plugin{Name: "p"}).Requested(); got != nil {
		t.Errorf("a plugin without a description asks for %+v", got)
	}
}

// TestWhoIsSentFacts: a hook that names them and may see them, of a phase that has them.
func TestWhoIsSentFacts(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name       string
		phase      phases.Phase
		needs, see []string
		want       bool
	}{
		{"needed and granted", phases.ToolPreCall, []string{"arguments", "facts"}, []string{"facts"}, true},
		{"needed, and a wildcard", phases.ToolPostCall, []string{"facts"}, []string{"*"}, true},
		{"not granted", phases.ToolPreCall, []string{"facts"}, []string{"arguments"}, false},
		{"not needed", phases.ToolPreCall, []string{"arguments"}, []string{"facts", "arguments"}, false},
		{"needs unknown, granted by name", phases.ToolPreCall, nil, []string{"facts"}, true},
		{"needs unknown, and a wildcard", phases.ToolPreCall, nil, []string{"*"}, false},
		{"another phase", phases.PreTools, nil, []string{"facts"}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := plugin("house", phases.Hook{Name: "h", Phase: tt.phase, Kinds: []phases.Kind{phases.KindAudit}, Needs: tt.needs})
			p.Grants.See = tt.see
			planned, _, err := Build([]Plugin{p}, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if got := planned.Subscription("house.h").Facts; got != tt.want {
				t.Errorf("facts: %v, want %v", got, tt.want)
			}
		})
	}
}
