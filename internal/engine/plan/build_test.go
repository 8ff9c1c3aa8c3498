package plan

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/phases"
)

// allKinds grants every kind, and sight of everything.
func allKinds() phases.Grants {
	return phases.Grants{Contribute: []string{"*"}, See: []string{"*"}}
}

// plugin describes a plugin of the given hooks, everything granted.
func plugin(name string, hooks ...phases.Hook) Plugin {
	return Plugin{Name: name, Description: &phases.Description{Name: name, Version: "1.2.3", Hooks: hooks}, Grants: allKinds()}
}

// overriding returns p with one override.
func (p Plugin) overriding(id string, o phases.Override) Plugin {
	p.Overrides = map[string]phases.Override{id: o}
	return p
}

func mustBuild(tb testing.TB, o Options, plugins ...Plugin) (*Plan, []phases.Diagnostic) {
	tb.Helper()
	p, notes, err := Build(plugins, o)
	if err != nil {
		tb.Fatalf("Build: %v", err)
	}
	return p, notes
}

// only is the subscription with an id; it must be there.
func only(t *testing.T, p *Plan, id string) *Subscription {
	t.Helper()
	s := p.Subscription(id)
	if s == nil {
		t.Fatalf("no subscription %s", id)
	}
	return s
}

func budget(phase phases.Phase, t time.Duration, require ...string) Options {
	return Options{Budgets: map[phases.Phase]Budget{phase: {Time: t, Require: require}}}
}

func TestDefaults(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name    string
		hook    phases.Hook
		options Options
		role    phases.Role
		timeout time.Duration
		word    phases.FailureWord
	}{
		{"plain", phases.Hook{Phase: phases.PrePromptContext}, Options{}, phases.RoleContribute, time.Second, phases.BestEffort},
		{"short phase", phases.Hook{Phase: phases.PreTools}, Options{}, phases.RoleContribute, 500 * time.Millisecond, phases.BestEffort},
		{"long budget", phases.Hook{Phase: phases.PreTools}, budget(phases.PreTools, time.Minute), phases.RoleContribute, time.Second, phases.BestEffort},
		{"tiny budget", phases.Hook{Phase: phases.PreTools}, budget(phases.PreTools, time.Millisecond), phases.RoleContribute, time.Millisecond, phases.BestEffort},
		{"queue", phases.Hook{Phase: phases.PostTurn}, Options{}, phases.RoleObserve, 30 * time.Second, phases.BestEffort},
		{"queue, an hour", phases.Hook{Phase: phases.PostTurn, Timeout: phases.Duration(time.Hour)}, Options{}, phases.RoleObserve, time.Hour, phases.BestEffort},
		{"validate", phases.Hook{Phase: phases.ToolPreCall, Role: phases.RoleValidate}, Options{}, phases.RoleValidate, time.Second, phases.FailClosed},
		{"decides", phases.Hook{Phase: phases.PrePolicy, Kinds: []phases.Kind{phases.KindDecision}}, Options{}, phases.RoleContribute, 500 * time.Millisecond, phases.FailClosed},
		{
			"decides, by its own word",
			phases.Hook{Phase: phases.PrePolicy, Kinds: []phases.Kind{phases.KindDecision}, OnFailure: phases.OnFailure{Default: phases.BestEffort}},
			Options{},
			phases.RoleContribute, 500 * time.Millisecond, phases.BestEffort,
		},
		{
			"words by cause get the default",
			phases.Hook{
				Phase: phases.ToolPreCall, Role: phases.RoleValidate,
				OnFailure: phases.OnFailure{ByCause: map[phases.Cause]phases.FailureWord{phases.CauseTimeout: phases.BestEffort}},
			},
			Options{},
			phases.RoleValidate, time.Second, phases.FailClosed,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			tt.hook.Name = "h"
			p, notes := mustBuild(t, tt.options, plugin("a", tt.hook))
			s := only(t, p, "a.h")
			got := []any{s.Role, s.Stage, s.Timeout.D(), s.ProposedTimeout, s.OnFailure.Default, s.Visibility, s.Plugin, s.PluginVersion}
			want := []any{tt.role, tt.role, tt.timeout, tt.timeout, tt.word, phases.VisibilityInternal, "a", "1.2.3"}
			if diff := cmp.Diff(got, want); diff != "" {
				t.Errorf("subscription (-got +want):\n%s", diff)
			}
			if s.FailClosed != (tt.word == phases.FailClosed) || len(notes) > 0 {
				t.Errorf("FailClosed = %v, notes %v", s.FailClosed, notes)
			}
		})
	}
}

func TestOverridesHaveTheLastWord(t *testing.T) {
	t.Parallel()

	proposed := phases.Hook{
		Name: "h", Doc: "d", Phase: phases.PrePolicy, Kinds: []phases.Kind{phases.KindDecision}, Role: phases.RoleValidate, Priority: 1, After: []string{"x.y"},
		Before: []string{"x.z"}, When: "true", Timeout: phases.Duration(100 * time.Millisecond), OnFailure: phases.OnFailure{Default: phases.FailClosed},
		Retry: &phases.Retry{Attempts: 2}, Idempotent: true, Budget: phases.TextBudget{Chars: 1}, Visibility: phases.VisibilityDebug,
	}
	fallback := phases.Contributions{&phases.PromptSection{SectionID: "s", Content: "c"}}
	o := phases.Override{
		Phase: new(phases.PrePromptCompile), Kinds: []phases.Kind{phases.KindPromptSection}, Role: new(phases.RoleContribute), Priority: new(-5),
		After: &[]string{}, Before: &[]string{"q.r?"}, When: new("flags.on"), Timeout: new(phases.Duration(300 * time.Millisecond)),
		OnFailure: &phases.OnFailure{Default: phases.UseInstead}, Fallback: fallback, Retry: &phases.Retry{Attempts: 3},
		Budget: &phases.TextBudget{Chars: 2}, Cache: &phases.Cache{TTL: 5, Vary: []string{"dir"}}, Shadow: new(true), Visibility: new(phases.VisibilityUserVisible),
	}
	p, _ := mustBuild(t, Options{}, plugin("a", proposed).overriding("a.h", o))
	s := only(t, p, "a.h")
	want := phases.Hook{
		Name: "h", Doc: "d", Phase: phases.PrePromptCompile, Kinds: o.Kinds, Role: phases.RoleContribute, Priority: -5, After: []string{}, Before: []string{"q.r?"},
		When: "flags.on", Timeout: phases.Duration(300 * time.Millisecond), OnFailure: phases.OnFailure{Default: phases.UseInstead}, Fallback: fallback,
		Retry: o.Retry, Idempotent: true, Budget: phases.TextBudget{Chars: 2}, Cache: o.Cache, Shadow: true, Visibility: phases.VisibilityUserVisible,
	}
	if diff := cmp.Diff(s.Hook, want); diff != "" {
		t.Errorf("hook (-got +want):\n%s", diff)
	}
	if s.ProposedTimeout != 100*time.Millisecond || s.Condition.Source() != "flags.on" {
		t.Errorf("proposed timeout %v, condition %q", s.ProposedTimeout, s.Condition.Source())
	}
	if p.Phase(phases.PrePolicy).Expected != nil || len(p.Phase(phases.PrePromptCompile).Expected) != 1 {
		t.Error("it is not in the phase that the operator gave it")
	}
}

func TestOff(t *testing.T) {
	t.Parallel()

	section := phases.Hook{Name: "h", Phase: phases.PrePromptCompile, Kinds: []phases.Kind{phases.KindPromptSection, phases.KindReminder, phases.KindNoop}}
	tests := []struct {
		name   string
		grants phases.Grants
		hook   phases.Hook
		o      phases.Override
		reason string
		notes  int
	}{
		{"granted", allKinds(), section, phases.Override{}, "", 0},
		{"one kind not granted", phases.Grants{Contribute: []string{"prompt_section"}}, section, phases.Override{}, ReasonNotGranted, 1},
		{"kinds taken away", phases.Grants{Contribute: []string{"prompt_section"}}, section, phases.Override{Kinds: []phases.Kind{phases.KindPromptSection}}, "", 0},
		{"no kinds need no grants", phases.Grants{}, phases.Hook{Name: "h", Phase: phases.PrePolicy}, phases.Override{}, "", 0},
		{"manifest diagnostics need no grant", phases.Grants{}, phases.Hook{Name: "h", Phase: phases.PrePolicy, Kinds: []phases.Kind{phases.KindManifestDiagnostic, phases.KindNoop}}, phases.Override{}, "", 0},
		{"audit needs a grant", phases.Grants{}, phases.Hook{Name: "h", Phase: phases.PrePolicy, Kinds: []phases.Kind{phases.KindAudit}}, phases.Override{}, ReasonNotGranted, 1},
		{"disabled", allKinds(), section, phases.Override{Enabled: new(false)}, ReasonOperator, 0},
		{"disabled and wrong", phases.Grants{}, phases.Hook{Name: "h", Phase: phases.PrePolicy, Role: phases.RoleTransform, When: "((", After: []string{"no.thing"}}, phases.Override{Enabled: new(false)}, ReasonOperator, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			a := plugin("a", tt.hook).overriding("a.h", tt.o)
			a.Grants = tt.grants
			p, notes := mustBuild(t, Options{}, a)
			ph := p.Phase(tt.hook.Phase)
			if off := ph.Off; (len(off) == 1) != (tt.reason != "") || len(off) == 1 && off[0].Reason != tt.reason {
				t.Errorf("off: %+v, want %q", off, tt.reason)
			}
			if len(notes) != tt.notes || tt.notes > 0 && (notes[0].Code != phases.CodeNotGranted || notes[0].Severity != phases.SeverityWarning || notes[0].Subscription != "a.h") {
				t.Errorf("diagnostics: %v", notes)
			}
			if len(ph.Expected) != 1 || (len(ph.Stages) == 0) != (tt.reason != "") {
				t.Errorf("expected %d, stages %d", len(ph.Expected), len(ph.Stages))
			}
		})
	}
}

// TestProblem: what depends on something broken is not blamed too, and the first problem is in the chain of errors.
func TestProblem(t *testing.T) {
	t.Parallel()

	_, _, err := Build([]Plugin{
		plugin("b", phases.Hook{Name: "h", Phase: phases.PrePolicy, After: []string{"a.h"}}),
		plugin("a", phases.Hook{Name: "h", Phase: "nowhere"}),
	}, budget(phases.PrePolicy, -1, "a.h"))
	if n := strings.Count(fmt.Sprint(err), "\n"); n != 1 {
		t.Errorf("want two problems:\n%v", err)
	}
	if one, ok := errors.AsType[Problem](err); !ok || one.Field != "budgets.phases.turn.pre_policy.time" {
		t.Errorf("the first problem in the chain is %+v", one)
	}
}
